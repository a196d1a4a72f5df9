/** Parts that the schemas of several topics share. */
import type { Json, JsonObject, OnBusy, RunStatus } from "@statewright/core";
import * as z from "zod";

/** Schemas that the OpenAPI document names. */
export const components: z.core.$ZodRegistry<{ id: string }> = z.registry<{ id: string }>();

/** Adds a schema to the components of the OpenAPI document, and returns it. */
export function nameSchema<Schema extends z.ZodType>(name: string, schema: Schema): Schema {
  components.add(schema, { id: name });
  return schema;
}

const dangerousKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Id of a thread, run, branch or schedule. */
export const id: z.ZodType<string> = z
  .string()
  .regex(/^[A-Za-z0-9_.:-]{1,128}$/)
  .describe("1 to 128 of A-Z a-z 0-9 _ . : -");

/** Time in ISO 8601, UTC, with milliseconds. */
export const time: z.ZodType<string> = z.iso.datetime({ precision: 3 }).describe("ISO 8601 in UTC, with milliseconds");

/** Time in a request: ISO 8601 in UTC, with or without milliseconds. */
export const givenTime: z.ZodType<string> = z.iso.datetime().describe("ISO 8601 in UTC");

/** Any value of JSON. */
export const json: z.ZodType<Json> = z.custom<Json>((value) => value !== undefined).describe("Any value of JSON");

/** Any object of JSON. */
export const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), json);

/** Plain data of a thread or run, for filters of lists. */
export const metadata: z.ZodType<JsonObject> = z
  .record(
    z
      .string()
      .min(1)
      .max(128)
      .refine((key) => !dangerousKeys.has(key)),
    json,
  )
  .describe("Plain data for filters of lists");

/** Metadata of a filter: each key equals its value. */
export const metadataFilter: z.ZodType<Readonly<Record<string, string | number | boolean | null>>> = z.record(
  z.string().min(1).max(128),
  z.union([z.string(), z.number(), z.boolean(), z.null()]),
);

/** Status of a run. */
export const runStatus: z.ZodType<RunStatus> = z.enum([
  "queued",
  "running",
  "waiting",
  "paused",
  "parked",
  "done",
  "failed",
  "cancelled",
  "crashed",
]);

/** Handling of a thread that has an unfinished run. */
export const onBusy: z.ZodType<OnBusy> = z
  .enum(["reject", "enqueue", "cancel", "rollback"])
  .describe("Handling of a thread with an unfinished run. Default `reject`.");

/** Title of a thread. */
export const title: z.ZodType<string> = z.string().min(1).max(500);

/** Number of items of a page, in a query. */
export const limit: z.ZodType<number> = z.coerce.number().int().min(1).max(200).describe("Items per page. Default 50.");

/** Number of a checkpoint or an event, in a query. */
export const queryNumber: z.ZodType<number> = z.coerce.number().int().min(0);

/** Number of a checkpoint of the thread. */
export const checkpoint: z.ZodType<number> = z.number().int().min(0).describe("Checkpoint of the thread");

/** Cursor of a list. */
export const before: z.ZodType<string> = z.string().min(1).max(1_024).describe("`next` of the previous page");

/** Page of a list on the wire. */
export interface WirePage<Item> {
  readonly data: readonly Item[];
  readonly next?: string | undefined;
}

/** Creates the schema of a page of a list. */
export function createPage<Item>(name: string, item: z.ZodType<Item>): z.ZodType<WirePage<Item>> {
  return nameSchema(
    name,
    z.strictObject({
      data: z.array(item),
      next: z.string().optional().describe("Cursor of the next page; absent on the last page"),
    }),
  );
}
