/**
 * Checks recordings of the gate `clients`, and writes the golden files of the LangGraph mappers from them:
 * `node write-golden-tapes.ts <folder> [--write]`. The folder has for each tape the events of the runs, the events that the
 * streams have read, and the frames that the unmodified client has received: they must be the wire events of the mapper.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import type { RunEvent } from "@statewright/core";
import { isDurable } from "@statewright/core/adapter";
import { formatTapeFile, getGoldenFile, getTapeFile, listTapeRuns, type Tape } from "./golden-tapes.ts";
import { createTapeMemory, formatTape, mapTape, type NumberedEvent, selectRun } from "./map-tape.ts";
import { createTapeGraph, tapeNames } from "./tape-graphs.ts";
import { formatV2Tape, getV2GoldenFile, mapV2Tape } from "./v2-tape.ts";

const [folder = "", mode] = process.argv.slice(2);

/** Reads a recording, with equal ids and times for equal runs. */
function readRecording(name: string, kind: "tape" | "events" | "frames"): readonly unknown[] {
  const tape = readFileSync(join(folder, `${name}.tape.jsonl`), "utf8");
  let text = readFileSync(join(folder, `${name}.${kind}.jsonl`), "utf8");
  const ids = { run: /run_[0-9a-z]{20}/g, branch: /fork_[0-9a-z]{20}/g };
  for (const [prefix, pattern] of Object.entries(ids))
    for (const [index, id] of [...new Set(tape.match(pattern))].entries())
      text = text.replaceAll(id, `${prefix}_${index + 1}`).replaceAll(id.slice(-12), `${prefix}${index + 1}`);
  text = text.replaceAll(/"(durationMs|elapsedMs)":[0-9.e-]+/g, '"$1":0').replaceAll(/"at":\d+/g, '"at":1735689600000');
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function toTape(name: string): Tape {
  const events = readRecording(name, "tape") as readonly RunEvent[];
  return { name, graph: createTapeGraph(name).name, events };
}

/** Events that the streams of a recording have read, with their snapshots, and without repeated durable events. */
function toStreamTape(name: string): Tape {
  let newest = 0;
  const events = (readRecording(name, "events") as readonly RunEvent[]).filter((event) => {
    if (!isDurable(event)) return true;
    const isNew = event.seq > newest;
    newest = Math.max(newest, event.seq);
    return isNew;
  });
  return { name, graph: createTapeGraph(name).name, events };
}

function mapRuns(tape: Tape): readonly (readonly NumberedEvent[])[] {
  return listTapeRuns(tape).map((run) => mapTape(selectRun(tape.events, run), createTapeMemory(run, tape.graph)));
}

/** Throws if the client has received other frames than the mapper gives for the first run of a tape. */
function checkFrames(name: string, wire: readonly NumberedEvent[]): void {
  const hideAssistant = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value).replaceAll(/"assistant_id":"[^"]*"/g, '"assistant_id":""'));
  const mapped = wire.map(({ event, namespace, data }) => hideAssistant({ event: `${event}${namespace}`, data }));
  const received = readRecording(name, "frames").slice(0, mapped.length).map(hideAssistant);
  const index = mapped.findIndex((frame, at) => !isDeepStrictEqual(frame, received[at]));
  if (index === -1) return;
  const [expected, got] = [mapped[index], received[index]].map((frame) => JSON.stringify(frame));
  throw new Error(`tape ${name}, frame ${index}: expected ${expected}, got ${got}. Check the mapper and the stream.`);
}

for (const name of tapeNames) {
  checkFrames(name, mapRuns(toStreamTape(name))[0] ?? []);
  if (mode !== "--write") continue;
  const tape = toTape(name);
  const runs = mapRuns(tape);
  writeFileSync(getTapeFile(name), formatTapeFile(tape));
  writeFileSync(getGoldenFile(name), runs.map(formatTape).join(""));
  writeFileSync(getV2GoldenFile(name), formatV2Tape(mapV2Tape(tape.events)));
}
