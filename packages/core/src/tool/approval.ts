/** Approval: what a person may answer when middleware asks about a tool call. */
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
