/** What a person may answer: an approval when middleware asks about a tool call, the fact when a call or a node is in doubt. */
import { booleanOr, plainObject } from "../base/plain-object.ts";
import type { Schema } from "../base/schema.ts";

/** A person's answer about a tool call: yes or no, or an object with a reason or other arguments. */
export type ApprovalAnswer =
  | boolean
  | {
      readonly approved: boolean;
      readonly reason?: string | undefined;
      readonly args?: Readonly<Record<string, unknown>> | undefined;
    };

/** The schema of an approval; agents declare it as their interrupt `approve`. */
export const approval: Schema<ApprovalAnswer> = booleanOr(
  plainObject<Exclude<ApprovalAnswer, boolean>>({ approved: "boolean" }, { reason: "string", args: "object" }),
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
