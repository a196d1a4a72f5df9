/** Schemas of threads. */
import type { JsonObject, RunStatus } from "@statewright/core";
import * as z from "zod";
import {
  before,
  createPage,
  id,
  json,
  limit,
  metadata,
  metadataFilter,
  nameSchema,
  runStatus,
  time,
  title,
  type WirePage,
} from "./common.ts";

/** Thread: a conversation or case, with all its runs. */
export interface WireThread {
  readonly id: string;
  readonly graph?: string | undefined;
  readonly status?: RunStatus | undefined;
  readonly title?: string | undefined;
  readonly metadata: JsonObject;
  readonly branch: string;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Thread: a conversation or case, with all its runs. */
export const thread: z.ZodType<WireThread> = nameSchema(
  "Thread",
  z.strictObject({
    id: z.string(),
    graph: z.string().optional().describe("Graph of the newest run"),
    status: runStatus.optional().describe("Status of the newest run; absent before the first run"),
    title: z.string().optional(),
    metadata,
    branch: z.string().describe("Head branch"),
    owner: z.string().optional().describe("Caller who made the thread"),
    createdAt: time,
    updatedAt: time,
  }),
);

/** Page of threads. */
export const threadPage: z.ZodType<WirePage<WireThread>> = createPage("ThreadPage", thread);

/** Filter of threads. */
export interface WireThreadQuery {
  readonly graph?: string | undefined;
  readonly status?: readonly RunStatus[] | undefined;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  readonly q?: string | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Filter of threads. */
export const threadQuery: z.ZodType<WireThreadQuery> = z.strictObject({
  graph: id.optional().describe("Name of the graph"),
  status: z.array(runStatus).optional().describe("Statuses of the newest run, separated by commas"),
  metadata: metadataFilter.optional().describe("`metadata.<key>=<value>`: threads with this value"),
  q: z.string().min(1).max(256).optional().describe("Start of an id, name of a graph, or a value of the metadata"),
  before: before.optional(),
  limit: limit.optional(),
});

/** New thread. */
export interface WireNewThread {
  readonly id?: string | undefined;
  readonly title?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly ifExists?: "throw" | "keep" | undefined;
}

/** New thread. */
export const newThread: z.ZodType<WireNewThread> = nameSchema(
  "NewThread",
  z.strictObject({
    id: id.optional().describe("Default: a new id"),
    title: title.optional(),
    metadata: metadata.optional(),
    ifExists: z.enum(["throw", "keep"]).optional().describe("`keep` returns an existing thread. Default `throw`."),
  }),
);

/** Change of a thread. */
export interface WireThreadPatch {
  readonly title?: string | null | undefined;
  readonly metadata?: JsonObject | undefined;
}

/** Change of a thread. */
export const threadPatch: z.ZodType<WireThreadPatch> = nameSchema(
  "ThreadPatch",
  z.strictObject({
    title: title.nullable().optional().describe("Null removes the title"),
    metadata: metadata.optional().describe("Keys to set; null removes a key; other keys are kept"),
  }),
);

/** Copy of a thread. */
export interface WireThreadCopy {
  readonly id?: string | undefined;
}

/** Copy of a thread. */
export const threadCopy: z.ZodType<WireThreadCopy> = nameSchema(
  "ThreadCopy",
  z.strictObject({ id: id.optional().describe("Id of the copy. Default: a new id.") }),
);

/** Query of an import. */
export const importQuery: z.ZodType<WireThreadCopy> = z.strictObject({
  id: id.optional().describe("Id of the imported thread. Default: the exported id."),
});

/** Difference of two checkpoints. */
export interface WireDiff {
  readonly from: number;
  readonly to: number;
  readonly patch: readonly JsonObject[];
}

/** Difference of two checkpoints, without private channels. */
export const diff: z.ZodType<WireDiff> = nameSchema(
  "Diff",
  z.strictObject({
    from: z.number().int(),
    to: z.number().int(),
    patch: z
      .array(z.record(z.string(), json))
      .describe("Operations by RFC 6902 that turn the state at `from` into the state at `to`"),
  }),
);
