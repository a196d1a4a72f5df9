/** Schemas of acts on many runs. */
import type { RunStatus } from "@statewright/core";
import * as z from "zod";
import { givenTime, id, metadataFilter, nameSchema, runStatus } from "./common.ts";

/** Act on all runs that match a filter. */
export interface WireBulkRequest {
  readonly action: "cancel" | "resume" | "retry" | "delete";
  readonly filter: {
    readonly graph?: string | undefined;
    readonly thread?: string | undefined;
    readonly status?: RunStatus | readonly RunStatus[] | undefined;
    readonly owner?: string | undefined;
    readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
    readonly since?: string | undefined;
    readonly until?: string | undefined;
  };
  readonly dryRun?: boolean | undefined;
  readonly reason?: string | undefined;
}

/** Act on all runs of the tenant that match a filter. */
export const bulkRequest: z.ZodType<WireBulkRequest> = nameSchema(
  "BulkRequest",
  z.strictObject({
    action: z
      .enum(["cancel", "resume", "retry", "delete"])
      .describe("`retry` continues failed and parked runs; `delete` deletes the threads of the runs"),
    filter: z
      .strictObject({
        graph: id.optional(),
        thread: id.optional(),
        status: z.union([runStatus, z.array(runStatus).min(1)]).optional(),
        owner: z.string().min(1).max(128).optional(),
        metadata: metadataFilter.optional().describe("Metadata of the runs"),
        since: givenTime.optional().describe("Start or queueing, inclusive"),
        until: givenTime.optional().describe("Start or queueing, exclusive"),
      })
      .describe("All conditions hold. `{}` matches all runs of the tenant; `delete` needs a condition."),
    dryRun: z.boolean().optional().describe("Counts the runs and changes nothing. Default false."),
    reason: z.string().max(1_000).optional().describe("Reason of a cancellation"),
  }),
);

/** Progress of an act. */
export interface WireBulkProgress {
  readonly matched: number;
  readonly done: number;
  readonly skipped: number;
  readonly failed: number;
}

const progressFields = {
  matched: z.number().int().describe("Runs, or threads of a `delete`, that matched at the start"),
  done: z.number().int(),
  skipped: z.number().int().describe("Ended or changed before the act reached them"),
  failed: z.number().int(),
};

/** Progress of an act. Frame `progress`. */
export const bulkProgress: z.ZodType<WireBulkProgress> = nameSchema("BulkProgress", z.strictObject(progressFields));

/** Result of an act. */
export interface WireBulkReport extends WireBulkProgress {
  readonly isComplete: boolean;
  readonly errors: readonly {
    readonly thread: string;
    readonly run?: string | undefined;
    readonly code: string;
    readonly title: string;
  }[];
}

/** Result of an act. Last frame, `report`. */
export const bulkReport: z.ZodType<WireBulkReport> = nameSchema(
  "BulkReport",
  z.strictObject({
    ...progressFields,
    isComplete: z.boolean().describe("False for a dry run and for an act that stopped"),
    errors: z
      .array(z.strictObject({ thread: z.string(), run: z.string().optional(), code: z.string(), title: z.string() }))
      .describe("Failures of single runs, at most 100"),
  }),
);
