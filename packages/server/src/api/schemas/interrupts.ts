/** Schemas of open interrupts of all threads. */
import * as z from "zod";
import { before, createPage, id, limit, nameSchema, time, type WirePage } from "./common.ts";
import { openInterruptFields, type WireOpenInterrupt } from "./states.ts";

/** Open interrupt with its thread and run. */
export interface WireInterrupt extends WireOpenInterrupt {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly raisedAt: string;
}

/** Open interrupt with its thread and run. */
export const interrupt: z.ZodType<WireInterrupt> = nameSchema(
  "Interrupt",
  z.strictObject({
    ...openInterruptFields,
    thread: z.string(),
    branch: z.string(),
    run: z.string(),
    graph: z.string(),
    raisedAt: time,
  }),
);

/** Page of open interrupts. */
export const interruptPage: z.ZodType<WirePage<WireInterrupt>> = createPage("InterruptPage", interrupt);

/** Filter of open interrupts. */
export interface WireInterruptQuery {
  readonly thread?: string | undefined;
  readonly graph?: string | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Filter of open interrupts. */
export const interruptQuery: z.ZodType<WireInterruptQuery> = z.strictObject({
  thread: id.optional(),
  graph: id.optional(),
  before: before.optional(),
  limit: limit.optional(),
});

/** Interrupt that is not open any more. */
export interface WireInterruptEnd {
  readonly id: string;
  readonly thread: string;
}

/** Interrupt that is not open any more: answered, expired, or its run has ended. Frame `interrupt.closed`. */
export const interruptEnd: z.ZodType<WireInterruptEnd> = nameSchema(
  "InterruptEnd",
  z.strictObject({ id: z.string(), thread: z.string() }),
);
