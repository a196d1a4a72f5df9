/** Answers of the native API: views of the service with times in ISO 8601. */
import type { OpenInterrupt } from "@statewright/core";
import type { ClosedInterrupt } from "@statewright/core/inspect";
import type {
  GraphDetails,
  GraphView,
  Page,
  RunView,
  StateView,
  ThreadView,
  WaitingView,
} from "../service/caller-service.ts";
import type { ArtifactView } from "../service/native/artifacts.ts";
import type { BulkProgress, BulkReport } from "../service/native/bulk.ts";
import type { FileView } from "../service/native/files.ts";
import type { ScheduleView } from "../service/native/schedules.ts";
import { toJson, toJsonObject } from "../service/to-json.ts";
import type { WireArtifact, WireFile } from "./schemas/artifacts.ts";
import type { WireBulkProgress, WireBulkReport } from "./schemas/bulk.ts";
import type { WirePage } from "./schemas/common.ts";
import type { WireGraph, WireGraphDetails } from "./schemas/graphs.ts";
import type { WireInterrupt } from "./schemas/interrupts.ts";
import type { WireRun } from "./schemas/runs.ts";
import type { WireSchedule } from "./schemas/schedules.ts";
import type { WireClosedInterrupt, WireOpenInterrupt, WireState } from "./schemas/states.ts";
import type { WireThread } from "./schemas/threads.ts";

/** Formats a time in milliseconds as ISO 8601 in UTC with milliseconds. */
export function toTime(ms: number): string {
  return new Date(ms).toISOString();
}

function toOptionalTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : toTime(ms);
}

/** Converts the items of a page. */
export function toPage<Item, Wire>({ data, next }: Page<Item>, convert: (item: Item) => Wire): WirePage<Wire> {
  return { data: data.map(convert), next };
}

export function toGraph({ name, version, description, shape }: GraphView): WireGraph {
  return { name, version, description, shape };
}

export function toGraphDetails(details: GraphDetails): WireGraphDetails {
  const { machine, mermaid, schemas, inputChannels, nodes } = details;
  return { ...toGraph(details), machine, mermaid, schemas, inputChannels, nodes };
}

export function toThread({ createdAt, updatedAt, ...thread }: ThreadView): WireThread {
  return { ...thread, createdAt: toTime(createdAt), updatedAt: toTime(updatedAt) };
}

export function toRun({ createdAt, endedAt, ...run }: RunView): WireRun {
  return { ...run, createdAt: toTime(createdAt), endedAt: toOptionalTime(endedAt) };
}

export function toOpenInterrupt({ id, key, node, payload, schema, expiresAt }: OpenInterrupt): WireOpenInterrupt {
  const shown = payload === undefined ? undefined : toJson(payload);
  return { id, key, node, payload: shown, schema, expiresAt: toOptionalTime(expiresAt) };
}

function toClosedInterrupt(interrupt: ClosedInterrupt): WireClosedInterrupt {
  const { answer, answeredAt, answeredBy, expiredAt } = interrupt;
  return {
    ...toOpenInterrupt(interrupt),
    answer: answer === undefined ? undefined : toJson(answer),
    answeredAt: toOptionalTime(answeredAt),
    answeredBy,
    expiredAt: toOptionalTime(expiredAt),
  };
}

/** Converts a state, with all channels or only those of `select`. */
export function toState(
  { at, values, interrupts, answered, ...state }: StateView,
  select?: readonly string[],
): WireState {
  const shown = toJsonObject(values);
  return {
    ...state,
    values:
      select === undefined
        ? shown
        : Object.fromEntries(Object.entries(shown).filter(([name]) => select.includes(name))),
    interrupts: interrupts.map(toOpenInterrupt),
    answered: answered.map(toClosedInterrupt),
    at: toTime(at),
  };
}

export function toInterrupt({ thread, branch, run, graph, raisedAt, interrupt }: WaitingView): WireInterrupt {
  return { ...toOpenInterrupt(interrupt), thread, branch, run, graph, raisedAt: toTime(raisedAt) };
}

export function toArtifact({ at, ...artifact }: ArtifactView): WireArtifact {
  return { ...artifact, at: toTime(at) };
}

export function toFile({ id, name, mimeType, bytes, expiresAt }: FileView): WireFile {
  const type = mimeType.startsWith("image/") ? "image" : "file";
  const shownName = type === "file" ? name : undefined;
  const block = { type, mimeType, uploaded: { thread: id }, name: shownName } as const;
  return { id, name, mimeType, bytes, expiresAt: toTime(expiresAt), block };
}

export function toBulkProgress({ matched, done, skipped, failed }: BulkProgress): WireBulkProgress {
  return { matched, done, skipped, failed };
}

export function toBulkReport(report: BulkReport): WireBulkReport {
  return { ...toBulkProgress(report), isComplete: report.isComplete, errors: report.errors };
}

export function toSchedule(view: ScheduleView): WireSchedule {
  const { until, createdAt, updatedAt, pausedAt, nextAt, last, ...rest } = view;
  return {
    ...rest,
    until: toOptionalTime(until),
    createdAt: toTime(createdAt),
    updatedAt: toTime(updatedAt),
    pausedAt: toOptionalTime(pausedAt),
    nextAt: toOptionalTime(nextAt),
    last: last === undefined ? undefined : { ...last, slot: toTime(last.slot), at: toTime(last.at) },
  };
}
