/** What an audit knows: the state of the graph, the context that each process gives it, and the question it asks. */
import { defineContext, defineState, list, messages, record } from "statewright";
import * as z from "zod";

/** Whether there are tests, and a README. */
export const Care = z.object({ tests: z.boolean(), readme: z.boolean() });
export type Care = z.infer<typeof Care>;

/** A package, or a top-level folder where there are no packages: then with what it shares with the whole tree. */
export const Part = z.object({ name: z.string(), folder: z.string(), shared: Care.optional() });
export type Part = z.infer<typeof Part>;

/** One thing that was noticed about a part. */
export const Finding = z.object({
  part: z.string(),
  severity: z.enum(["high", "medium", "low"]),
  text: z.string(),
});
export type Finding = z.infer<typeof Finding>;

/** The state: each channel is saved as what changed in it. */
export const Audit = defineState({
  /** The conversation of the survey. */
  messages: messages(),
  /** What tools measured, a sentence each. */
  facts: record(z.string()),
  parts: z.array(Part).default([]),
  findings: list(Finding),
  verdict: z.object({ grade: z.string(), summary: z.string() }).nullable().default(null),
  decision: z.object({ write: z.boolean(), note: z.string().optional() }).nullable().default(null),
  /** Where the report was written. */
  report: z.string().nullable().default(null),
});

/** The state as the nodes read it. */
export type AuditState = NonNullable<(typeof Audit)["types"]>["state"];

/** The context: what belongs to this process and this host. It is never saved and never shown to the model. */
export const Here = defineContext({
  /** The source tree. */
  root: z.string(),
  /** Where the report goes. */
  report: z.string(),
  /** The effects log, outside the database. */
  log: z.string(),
  /** Make the long tools hold halfway, so that a kill finds them at work. */
  hold: z.boolean().default(false),
  /** Make the first attempt of list_files fail, so that a retry can be seen. */
  hiccup: z.boolean().default(false),
});

/** The question that the audit asks before it writes its report. */
export const interrupts = {
  write_report: {
    payload: z.object({ grade: z.string(), summary: z.string(), findings: z.number() }),
    answer: z.object({ ok: z.boolean(), note: z.string().optional() }),
  },
};
