/** Golden files of the LangGraph mappers: recorded tapes, and the wire events that they give. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@statewright/core";

/** Events of a thread, over all its runs. */
export interface Tape {
  readonly name: string;
  readonly graph: string;
  readonly events: readonly RunEvent[];
}

const folder = join(import.meta.dirname, "../golden/langgraph");

/** Path of a recorded tape. */
export function getTapeFile(name: string): string {
  return join(folder, `${name}.tape.jsonl`);
}

/** Path of the wire events of a tape in the legacy stream. */
export function getGoldenFile(name: string): string {
  return join(folder, `${name}.legacy.txt`);
}

/** Reads a recorded tape: a line with its name and graph, and a line for each event. */
export function readTape(name: string): Tape {
  const [head = "", ...lines] = readFileSync(getTapeFile(name), "utf8").trim().split("\n");
  const events: RunEvent[] = lines.map((line) => JSON.parse(line));
  return { ...JSON.parse(head), events };
}

/** Formats a tape as the text of its file. */
export function formatTapeFile({ name, graph, events }: Tape): string {
  return [{ name, graph }, ...events].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** Lists the runs of a tape, in the order of their starts. */
export function listTapeRuns({ events }: Pick<Tape, "events">): readonly string[] {
  return [...new Set(events.flatMap((event) => (event.type === "run.started" ? [event.run] : [])))];
}
