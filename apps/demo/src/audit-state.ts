/** Schemas of the audit: graph state, context of each process, and interrupt. */
import { channel, defineContext, defineState } from "statewright";
import * as z from "zod";

/**
 * Package, or top-level folder of a tree without packages. `excluded` holds the folders of other parts. `tested` is
 * true when the tree has tests outside of its packages.
 */
export const Part = z.object({
  name: z.string(),
  folder: z.string(),
  excluded: z.array(z.string()),
  isPackage: z.boolean(),
  tested: z.boolean(),
});
export type Part = AuditState["parts"][number];

/** Finding about one file or folder. */
export const Finding = z.object({
  severity: z.enum(["high", "medium", "low"]),
  /** Path relative to the root of the tree; "." is the root. */
  path: z.string(),
  title: z.string(),
});
export type Finding = z.infer<typeof Finding>;

/** Graph state. A checkpoint stores only the changes of each channel. */
export const Audit = defineState({
  /** Conversation of the survey. */
  messages: channel.messages(),
  /** Measurements of the tools, one sentence per tool. */
  facts: channel.record(z.string()),
  /** Numbers of the tools: `filesListed` and `filesRead`. */
  counts: channel.record(z.number()),
  /** Path of the README at the root of the tree. */
  readme: z.string().nullable().default(null),
  parts: z.array(Part).default([]),
  findings: channel.list(Finding),
  verdict: z.object({ grade: z.string(), summary: z.string() }).nullable().default(null),
  decision: z.object({ write: z.boolean(), note: z.string().optional() }).nullable().default(null),
  /** Path of the written report. */
  report: z.string().nullable().default(null),
});

/** Type of the state in nodes. */
export type AuditState = NonNullable<(typeof Audit)["types"]>["state"];

/** Context: values of this process and host. Not stored, and not visible to the model. */
export const AuditContext = defineContext({
  /** Root of the source tree. */
  root: z.string(),
  /** Path of the report. */
  report: z.string(),
  /** Path of the effects log, outside the database. */
  log: z.string(),
  /** Suspends the long tools halfway, so that a kill interrupts running tool calls. */
  hold: z.boolean().default(false),
  /** Fails the first attempt of list_files, to show a retry. */
  failFirstAttempt: z.boolean().default(false),
});

/** Interrupt before the report is written. */
export const interrupts = {
  write_report: {
    payload: z.object({ grade: z.string(), summary: z.string(), findings: z.number() }),
    answer: z.object({ ok: z.boolean(), note: z.string().optional() }),
  },
};
