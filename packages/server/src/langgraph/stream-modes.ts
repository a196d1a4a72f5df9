/** Stream modes of a run: what a client wants to read. */
import { createInputProblem } from "./create-problem.ts";

const modes = [
  "values",
  "updates",
  "messages",
  "messages-tuple",
  "custom",
  "tasks",
  "checkpoints",
  "debug",
  "tools",
  "events",
  "lifecycle",
] as const;

/** A selection of wire events. `events` is accepted and selects nothing. */
export type StreamMode = (typeof modes)[number];

const known: ReadonlySet<string> = new Set(modes);

function isStreamMode(mode: string): mode is StreamMode {
  return known.has(mode);
}

/**
 * Reads stream modes: names, or a list of names as JSON, which older clients send in a query. Throws a problem for an
 * unknown mode.
 */
export function parseStreamModes(given: readonly string[]): readonly StreamMode[] {
  return [...new Set(given.flatMap(listNames))].map((mode) => {
    if (isStreamMode(mode)) return mode;
    throw createInputProblem("/stream_mode", `expected one of ${modes.join(", ")}, got ${JSON.stringify(mode)}`);
  });
}

function listNames(text: string): readonly string[] {
  return text.startsWith("[") ? (text.match(/[a-z-]+/g) ?? []) : [text];
}
