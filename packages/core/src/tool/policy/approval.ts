/** What a person may answer: an approval when middleware asks about a tool call, the fact when a call or a node is in doubt. */
import { booleanOr, plainObject } from "../../base/plain-object-schema.ts";
import type { Schema } from "../../base/schema.ts";

/** The key under which people are asked about tool calls. A graph whose middleware asks declares it: `interrupts: { approve: approval }`. */
export const approveKey = "approve";

/** Yes or no, with the reason that the model reads after a no, or with other arguments for a yes. */
export interface ApprovalVerdict {
  readonly approved: boolean;
  readonly reason?: string | undefined;
  /** The call is made with these. They are parsed, and the before hooks decide about them, as about the model's. */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
}

/** A person's answer about a tool call: yes or no, yes with other arguments, or the tool's answer in its place. */
export type ApprovalAnswer =
  | boolean
  | ApprovalVerdict
  | {
      /** The model reads this as the call's result; the tool is not run. */
      readonly respond: string;
    };

/** The schema of an approval; agents declare it as their interrupt `approve`. */
export const approval: Schema<ApprovalAnswer> = booleanOr<Exclude<ApprovalAnswer, boolean>>(
  plainObject<ApprovalVerdict>({ approved: "boolean" }, { reason: "string", args: "object" }),
  plainObject<{ readonly respond: string }>({ respond: "string" }, {}),
);

/** The key of the question about a call or a `once` node that had started and has no result. */
export const inDoubtKey = "in_doubt";

/** What a person found out about such a call: whether it happened, and what it said. */
export interface InDoubtAnswer {
  readonly happened: boolean;
  /** What the model reads as the call's result. */
  readonly content?: string | undefined;
}

/** The schema of that answer. */
export const inDoubtAnswer: Schema<InDoubtAnswer> = plainObject({ happened: "boolean" }, { content: "string" });

/** What a person found out about a `once` node that had started: whether it happened, and what it should have returned. */
export interface NodeInDoubtAnswer {
  readonly happened: boolean;
  /** The partial state that stands in for the node's result, when it happened. */
  readonly update?: Readonly<Record<string, unknown>> | undefined;
  /** Where control goes then, for a node whose edge is `gotos`. */
  readonly goto?: string | undefined;
}

/** The schema of that answer. */
export const nodeInDoubtAnswer: Schema<NodeInDoubtAnswer> = plainObject(
  { happened: "boolean" },
  { update: "object", goto: "string" },
);
