/** What a person may answer about a tool call: an approval when middleware asks, the fact when a call is in doubt. */
import * as z from "zod";

/** A person's answer about a tool call: yes or no, or an object with a reason or other arguments. */
export type ApprovalAnswer =
  | boolean
  | {
      readonly approved: boolean;
      readonly reason?: string | undefined;
      readonly args?: Readonly<Record<string, unknown>> | undefined;
    };

/** The schema of an approval; agents declare it as their interrupt `approve`. */
export const approval: z.ZodType<ApprovalAnswer> = z.union([
  z.boolean(),
  z.strictObject({
    approved: z.boolean(),
    reason: z.string().optional(),
    args: z.record(z.string(), z.unknown()).optional(),
  }),
]);

/** The key of the question about a call that had started when its process died. */
export const inDoubtKey = "in_doubt";

/** What a person found out about such a call: whether it happened, and what it said. */
export interface InDoubtAnswer {
  readonly happened: boolean;
  /** What the model reads as the call's result. */
  readonly content?: string | undefined;
}

/** The schema of that answer. */
export const inDoubtAnswer: z.ZodType<InDoubtAnswer> = z.strictObject({
  happened: z.boolean(),
  content: z.string().optional(),
});
