/**
 * Compares recordings of the gate `clients` with the golden files of a LangGraph mapper, or writes the golden files:
 * `node compare-golden-tapes.ts <folder> legacy|v2 [--write]`. The folder has for each tape the events of the runs, the
 * events that the streams have read, and the frames that the unmodified client has received: they must be those of the
 * mapper. Not exported by the package, so the gate starts this program beside the mapper.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "@statewright/core";
import { isDurable } from "@statewright/core/adapter";
import { formatTapeFile, getGoldenFile, getTapeFile, listTapeRuns, type Tape } from "./golden-tapes.ts";
import { createTapeMemory, formatTape, mapTape, type NumberedEvent, selectRun } from "./map-tape.ts";
import { createTapeGraph, tapeNames } from "./tape-graphs.ts";
import { formatV2Tape, mapV2Tape } from "./v2-tape.ts";

const [folder = "", protocol = "", mode] = process.argv.slice(2);

type Kind = "tape" | "events" | "frames";

function readText(name: string, kind: Kind): string {
  return readFileSync(join(folder, `${name}.${kind}.jsonl`), "utf8");
}

function parseLines(text: string): readonly unknown[] {
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Reads a recording, with equal ids and times for equal runs. */
function readRecording(name: string, kind: Kind): readonly unknown[] {
  const tape = readText(name, "tape");
  let text = readText(name, kind);
  const ids = { run: /run_[0-9a-z]{20}/g, branch: /fork_[0-9a-z]{20}/g };
  for (const [prefix, pattern] of Object.entries(ids))
    for (const [index, id] of [...new Set(tape.match(pattern))].entries())
      text = text.replaceAll(id, `${prefix}_${index + 1}`).replaceAll(id.slice(-12), `${prefix}${index + 1}`);
  text = text
    .replaceAll(/"(durationMs|elapsedMs)":[0-9.e-]+/g, '"$1":0')
    .replaceAll(/"at":\d+/g, '"at":1735689600000')
    .replaceAll(/\bt1\/[0-9a-z]{12}\//g, "t1/attempt/");
  return parseLines(text);
}

function toTape(name: string, events: readonly unknown[]): Tape {
  return { name, graph: createTapeGraph(name).name, events: events as readonly RunEvent[] };
}

type Read = (name: string, kind: Kind) => readonly unknown[];

const readRaw: Read = (name, kind) => parseLines(readText(name, kind));

/** Events of all runs, with the durable events that no run has emitted, such as a fork. */
function readThread(name: string, read: Read): readonly RunEvent[] {
  const events = [...(read(name, "tape") as readonly RunEvent[])];
  for (const event of read(name, "events") as readonly RunEvent[]) {
    if (!isDurable(event) || events.some(({ seq }) => seq === event.seq)) continue;
    events.splice(
      events.findIndex(({ seq }) => seq > event.seq),
      0,
      event,
    );
  }
  return events;
}

/** Events that the streams of a recording have read: without repeated durable events, and without snapshots of no run. */
function toStreamTape(name: string): Tape {
  let newest = 0;
  const events = (readRecording(name, "events") as readonly RunEvent[]).filter((event) => {
    if (!isDurable(event)) return event.type !== "snapshot" || event.run !== undefined;
    const isNew = event.seq > newest;
    newest = Math.max(newest, event.seq);
    return isNew;
  });
  return toTape(name, events);
}

function mapRuns(tape: Tape): readonly (readonly NumberedEvent[])[] {
  return listTapeRuns(tape).map((run) => mapTape(selectRun(tape.events, run), createTapeMemory(run, tape.graph)));
}

/** Throws if the legacy client has received other frames than the mapper gives for the first run of a tape. */
function checkLegacyFrames(name: string): void {
  const hideAssistant = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll(/"assistant_id":"[^"]*"/g, '"assistant_id":""'));
  const wire = mapRuns(toStreamTape(name))[0] ?? [];
  const mapped = wire.map(({ event, namespace, data }) => hideAssistant({ event: `${event}${namespace}`, data }));
  const received = readRecording(name, "frames").slice(0, mapped.length).map(hideAssistant);
  compareFrames(name, mapped, received);
}

/** Throws if the streaming client has received other frames than the mapper gives for the events of all runs. */
function checkV2Frames(name: string): void {
  // The ids of frames are hashes of the ids of runs: they are compared as recorded.
  const mapped = mapV2Tape(readThread(name, readRaw)).map(({ seq, eventId, method, namespace, node, data }) => ({
    ...{ seq, event_id: eventId, method, namespace },
    ...(node === undefined ? {} : { node }),
    data,
  }));
  compareFrames(name, JSON.parse(JSON.stringify(mapped)), readRaw(name, "frames"));
}

function compareFrames(name: string, mapped: readonly unknown[], received: readonly unknown[]): void {
  const length = Math.max(mapped.length, received.length);
  const index = Array.from({ length }).findIndex((_, at) => !isDeepStrictEqual(mapped[at], received[at]));
  if (index === -1) return;
  const [expected, got] = [mapped[index], received[index]].map((frame) => JSON.stringify(frame));
  throw new Error(`tape ${name}, frame ${index}: expected ${expected}, got ${got}. Check the mapper and the stream.`);
}

/** Lines without the places that they have in a stream, sorted: calls of a step run at once, and either may be first. */
function toComparable(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.replace(/^\d+(\.\d+)? /, ""))
    .toSorted();
}

/** Writes a golden file, or throws if its lines differ. */
function keepGolden(file: string, text: string): void {
  if (mode === "--write") {
    writeFileSync(file, text);
    return;
  }
  const [expected, got] = [toComparable(readFileSync(file, "utf8")), toComparable(text)];
  const missing = expected.find((line, index) => line !== got[index]);
  if (missing === undefined && expected.length === got.length) return;
  const other = got.find((line, index) => line !== expected[index]);
  const fix = "Review the change, then write the golden files: STATEWRIGHT_GOLDEN=write npm run gates -- clients.";
  throw new Error(`golden file ${basename(file)}: expected the line ${missing}, got ${other}. ${fix}`);
}

for (const name of tapeNames) {
  if (protocol === "v2") {
    checkV2Frames(name);
    const tape = toTape(name, readThread(name, readRecording));
    keepGolden(getTapeFile(name, "v2"), formatTapeFile(tape));
    keepGolden(getGoldenFile(name, "v2"), formatV2Tape(mapV2Tape(tape.events)));
  } else {
    checkLegacyFrames(name);
    const tape = toTape(name, readRecording(name, "tape"));
    keepGolden(getTapeFile(name, "legacy"), formatTapeFile(tape));
    keepGolden(getGoldenFile(name, "legacy"), mapRuns(tape).map(formatTape).join(""));
  }
}
