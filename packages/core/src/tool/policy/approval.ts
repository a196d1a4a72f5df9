/** Schemas of people's answers: approvals of tool calls, and outcomes of calls, nodes and steps in doubt. */
import { createBooleanOrSchema, createPlainObjectSchema } from "../../base/plain-object-schema.ts";
import type { Schema } from "../../base/schema.ts";

/**
 * Interrupt key of approvals. A graph whose middleware requests approval declares the key: `interrupts: { approve:
 * approval }`.
 */
export const approveKey = "approve";

/** Approval or denial. `reason` is shown to the model after a denial. */
export interface ApprovalVerdict {
  readonly approved: boolean;
  readonly reason?: string | undefined;
  /** Replacement arguments of an approved call. Parsed and passed to the before hooks, like arguments of the model. */
  readonly args?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * A person's answer to the approval of a tool call: approval, denial, approval with other arguments, or a result in
 * place of the call.
 */
export type ApprovalAnswer =
  | boolean
  | ApprovalVerdict
  | {
      /** Result of the call for the model; the tool does not run. */
      readonly respond: string;
    };

/** Schema of an approval; agents declare it as their interrupt `approve`. */
export const approval: Schema<ApprovalAnswer> = createBooleanOrSchema<Exclude<ApprovalAnswer, boolean>>(
  createPlainObjectSchema<ApprovalVerdict>({ approved: "boolean" }, { reason: "string", args: "object" }),
  createPlainObjectSchema<{ readonly respond: string }>({ respond: "string" }, {}),
);

/** Interrupt key of a tool call, `once` node or `once` step in doubt: started, without a result. */
export const inDoubtKey = "in_doubt";

/** A person's answer about a call in doubt: its occurrence and its result. */
export interface InDoubtAnswer {
  readonly happened: boolean;
  /** Result of the call for the model. */
  readonly content?: string | undefined;
}

/** Schema of {@link InDoubtAnswer}. */
export const inDoubtAnswer: Schema<InDoubtAnswer> = createPlainObjectSchema(
  { happened: "boolean" },
  { content: "string" },
);

/** A person's answer about a `once` node in doubt: its occurrence and its result. */
export interface NodeInDoubtAnswer {
  readonly happened: boolean;
  /** Partial state in place of the node's result, if the node ran. */
  readonly update?: Readonly<Record<string, unknown>> | undefined;
  /** Next node, for a node whose edge is `commandTargets`. */
  readonly goto?: string | undefined;
}

/** Schema of {@link NodeInDoubtAnswer}. */
export const nodeInDoubtAnswer: Schema<NodeInDoubtAnswer> = createPlainObjectSchema(
  { happened: "boolean" },
  { update: "object", goto: "string" },
);

/** A person's answer about a `once` step in doubt: its occurrence and its result. */
export interface StepInDoubtAnswer {
  readonly happened: boolean;
  /** Result of the step, if the step ran. Default: undefined, or the outcome recorded on another branch. */
  readonly value?: unknown;
}

/** Schema of {@link StepInDoubtAnswer}. */
export const stepInDoubtAnswer: Schema<StepInDoubtAnswer> = createPlainObjectSchema(
  { happened: "boolean" },
  { value: "anything" },
);
