/** Schemas of the events of a thread. */
import * as z from "zod";
import { id, nameSchema, queryNumber, time } from "./common.ts";

/** Views of the events of a thread. */
export type WireView = "messages" | "tools" | "steps" | "tasks" | "custom" | "all";

/** Place and filter of a stream of events. */
export interface WireEventQuery {
  readonly after?: number | undefined;
  readonly branch?: string | undefined;
  readonly views?: readonly WireView[] | undefined;
  readonly end?: "never" | "idle" | undefined;
}

/** Place and filter of a stream of events. */
export const eventQuery: z.ZodType<WireEventQuery> = z.strictObject({
  after: queryNumber
    .optional()
    .describe("Number of the last event that was read. The header Last-Event-ID wins. Default 0: all."),
  branch: id.optional().describe("Default: all branches"),
  views: z
    .array(z.enum(["messages", "tools", "steps", "tasks", "custom", "all"]))
    .optional()
    .describe("Kinds of events, separated by commas: `steps` are the durable events. Default `all`."),
  end: z
    .enum(["never", "idle"])
    .optional()
    .describe("`idle` ends the stream when no run is at work or queued. Default `never`."),
});

/** Data of a frame: an event of a run. */
export interface WireEvent {
  readonly type: string;
  readonly seq: number;
  readonly at: string;
  readonly branch: string;
}

/** Data of a frame: an event of a run, with the fields of its type. */
export const event: z.ZodType<WireEvent> = nameSchema(
  "Event",
  z
    .looseObject({
      type: z.string().describe("Type of the event, also the `event` of the frame"),
      seq: z.number().int().describe("Number of the event; of the newest durable event for an event without an id"),
      at: time,
      branch: z.string(),
    })
    .describe("Event of a run, with the fields of its type"),
);

/** Data of the frame `gap`: durable events that were removed. */
export interface WireGap {
  readonly from: number;
  readonly to: number;
}

/** Data of the frame `gap`: durable events that were removed by retention. */
export const gap: z.ZodType<WireGap> = nameSchema(
  "Gap",
  z.strictObject({ from: z.number().int(), to: z.number().int() }),
);
