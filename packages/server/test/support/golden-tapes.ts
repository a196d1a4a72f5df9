/** Golden files of the LangGraph mappers: recorded tapes of each protocol, and the wire events that they give. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@statewright/core";

/** Events of a thread, over all its runs. */
export interface Tape {
  readonly name: string;
  readonly graph: string;
  readonly events: readonly RunEvent[];
}

/** Protocol whose client played the conversation of a tape. */
export type TapeProtocol = "legacy" | "v2";

const folders: Readonly<Record<TapeProtocol, string>> = { legacy: "langgraph", v2: "langgraph-v2" };

/** Path of a recorded tape. */
export function getTapeFile(name: string, protocol: TapeProtocol): string {
  return join(import.meta.dirname, "../golden", folders[protocol], `${name}.tape.jsonl`);
}

/** Path of the wire events that a tape gives. */
export function getGoldenFile(name: string, protocol: TapeProtocol): string {
  return join(import.meta.dirname, "../golden", folders[protocol], `${name}.wire.txt`);
}

/** Reads the wire events that a tape should give. */
export function readGolden(name: string, protocol: TapeProtocol): string {
  return readFileSync(getGoldenFile(name, protocol), "utf8");
}

/** Reads a recorded tape: a line with its name and graph, and a line for each event. */
export function readTape(name: string, protocol: TapeProtocol): Tape {
  const [head = "", ...lines] = readFileSync(getTapeFile(name, protocol), "utf8").trim().split("\n");
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
