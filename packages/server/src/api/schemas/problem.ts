/** Schema of a failure, in the form of RFC 9457. */
import * as z from "zod";
import { nameSchema } from "./common.ts";

/** Failure of a request. */
export interface WireProblem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail?: string | undefined;
  readonly instance?: string | undefined;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[] | undefined;
}

/** Failure of a request. Further fields may come with later versions. */
export const problem: z.ZodType<WireProblem> = nameSchema(
  "Problem",
  z.looseObject({
    type: z.string().describe("Stable name of the failure, such as urn:statewright:error:thread_busy"),
    title: z.string(),
    status: z.number().int(),
    code: z.string().describe("Stable code, the last part of `type`"),
    detail: z.string().optional(),
    instance: z.string().optional().describe("Id of the request"),
    errors: z
      .array(z.strictObject({ pointer: z.string().describe("JSON pointer into the body"), detail: z.string() }))
      .optional(),
  }),
);
