/** Schemas of runs: start, continue, cancel, and the outcome. */
import type { Json, JsonObject, OnBusy, RunStatus } from "@statewright/core";
import * as z from "zod";
import {
  before,
  checkpoint,
  createPage,
  id,
  json,
  limit,
  metadata,
  nameSchema,
  onBusy,
  runStatus,
  time,
  type WirePage,
} from "./common.ts";
import { state, type WireState } from "./states.ts";

/** Run of a graph on a thread. */
export interface WireRun {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly metadata: JsonObject;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly endedAt?: string | undefined;
  readonly error?: { readonly code: string; readonly title: string } | undefined;
}

/** Run of a graph on a thread. */
export const run: z.ZodType<WireRun> = nameSchema(
  "Run",
  z.strictObject({
    id: z.string(),
    thread: z.string(),
    branch: z.string(),
    graph: z.string(),
    status: runStatus,
    attempt: z.number().int().describe("Number of starts and resumes"),
    metadata,
    owner: z.string().optional().describe("Caller who started the run"),
    createdAt: time,
    endedAt: time.optional(),
    error: z
      .strictObject({ code: z.string(), title: z.string() })
      .optional()
      .describe("Failure of a failed or parked run"),
  }),
);

/** Page of runs. */
export const runPage: z.ZodType<WirePage<WireRun>> = createPage("RunPage", run);

/** Filter of the runs of a thread. */
export interface WireRunQuery {
  readonly status?: readonly RunStatus[] | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Filter of the runs of a thread. */
export const runQuery: z.ZodType<WireRunQuery> = z.strictObject({
  status: z.array(runStatus).optional().describe("Statuses, separated by commas"),
  before: before.optional(),
  limit: limit.optional(),
});

/** Breakpoints of a run. */
export interface WireBreakpoints {
  readonly before?: readonly string[] | undefined;
  readonly after?: readonly string[] | undefined;
}

const breakpoints: z.ZodType<WireBreakpoints> = z
  .strictObject({ before: z.array(id).max(100).optional(), after: z.array(id).max(100).optional() })
  .describe("Nodes before and after which the run pauses");

const key = id.optional().describe("Idempotency key in the thread; the header Idempotency-Key is the same");

/** New run. */
export interface WireNewRun {
  readonly graph: string;
  readonly input?: Json | undefined;
  readonly branch?: string | undefined;
  readonly key?: string | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly breakpoints?: WireBreakpoints | undefined;
  readonly context?: Json | undefined;
}

const context = json.optional().describe("What the client asks for. Only `contextOf` of the server reads it.");

/** New run. */
export const newRun: z.ZodType<WireNewRun> = nameSchema(
  "NewRun",
  z.strictObject({
    graph: id.describe("Name of the graph"),
    input: json.optional().describe("Input by the input schema of the graph"),
    branch: id.optional().describe("Default: the head branch"),
    key,
    onBusy: onBusy.optional(),
    metadata: metadata.optional(),
    breakpoints: breakpoints.optional(),
    context,
  }),
);

/** Continuation of a run. */
export interface WireResume {
  readonly branch?: string | undefined;
  readonly key?: string | undefined;
  readonly breakpoints?: WireBreakpoints | undefined;
  readonly context?: Json | undefined;
}

const resumeFields = { branch: id.optional(), key, breakpoints: breakpoints.optional(), context };

/** Continuation of a paused, failed or crashed run. */
export const resume: z.ZodType<WireResume> = nameSchema("Resume", z.strictObject(resumeFields));

/** Answers to interrupts. */
export interface WireAnswers extends WireResume {
  readonly answers: Readonly<Record<string, Json>>;
  readonly ifCheckpoint?: number | undefined;
}

/** Answers to interrupts. */
export const answers: z.ZodType<WireAnswers> = nameSchema(
  "Answers",
  z.strictObject({
    ...resumeFields,
    answers: z.record(z.string().min(1).max(256), json).describe("By the id of the interrupt, at most 200"),
    ifCheckpoint: checkpoint.optional().describe("Refuses the answers when the head is another checkpoint"),
  }),
);

/** Cancellation or pause of a run. */
export interface WireStop {
  readonly run?: string | undefined;
  readonly branch?: string | undefined;
  readonly reason?: string | undefined;
}

const stopFields = {
  run: id.optional().describe("Default: the run at work"),
  branch: id.optional().describe("Default: the head branch"),
  reason: z.string().max(1_000).optional(),
};

/** Pause of a run. */
export const pause: z.ZodType<WireStop> = nameSchema("Pause", z.strictObject(stopFields));

/** Cancellation of a run. */
export interface WireCancel extends WireStop {
  readonly wait?: boolean | undefined;
}

/** Cancellation of a run. */
export const cancel: z.ZodType<WireCancel> = nameSchema(
  "Cancel",
  z.strictObject({
    ...stopFields,
    wait: z.boolean().optional().describe("Waits for the end of the run, at most 60 seconds. Default false."),
  }),
);

/** Run at rest, with its state. */
export interface WireOutcome {
  readonly run: WireRun;
  readonly state?: WireState | undefined;
}

/** Run at rest, with its state. */
export const outcome: z.ZodType<WireOutcome> = nameSchema(
  "Outcome",
  z.strictObject({ run, state: state.optional().describe("Absent for a run that was cancelled in the queue") }),
);

/** Known run of an idempotency key, or a run at rest with its state. */
export const runOrOutcome: z.ZodType<WireRun | WireOutcome> = nameSchema("RunOrOutcome", z.union([run, outcome]));
