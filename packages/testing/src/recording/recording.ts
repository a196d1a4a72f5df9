/** The file of a recording: read once, written whole after each new answer, never in parts. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type ModelDelta, type ModelReply, StatewrightError } from "@statewright/core";

/** `replay`: from the file alone. `record`: ask the model, the file is written anew. `auto`: what the file lacks is asked and added. */
export type RecordingMode = "replay" | "record" | "auto";

/** One request, what was answered, and how that streamed. */
export interface RecordedEntry {
  readonly digest: string;
  readonly request: unknown;
  readonly reply: ModelReply;
  readonly deltas: readonly ModelDelta[];
}

/** An open recording. */
export interface Recording {
  /** What errors call it. */
  readonly name: string;
  /** The id of the model that was recorded. */
  readonly model: string;
  readonly entries: () => readonly RecordedEntry[];
  /** Add an answer and write the file. */
  readonly add: (entry: RecordedEntry) => void;
}

/** The version of the form of the file. */
const form = 1;

/** Models of one process that record into one file share what is in it. */
const atWork = new Map<string, RecordedEntry[]>();

/** Open the recording at a path. Throws `invalid_option` for a file that is missing where it is needed, or is no recording. */
export function recordingOf(path: string | URL, mode: RecordingMode, asked: string | undefined): Recording {
  const file = path instanceof URL ? fileURLToPath(path) : resolve(path);
  const name = basename(file);
  const found = mode === "record" ? undefined : read(file, name, mode);
  const model = asked ?? found?.model ?? "recorded";
  const shared = mode === "replay" ? undefined : atWork.get(file);
  const entries = shared ?? [...(found?.entries ?? [])];
  if (mode !== "replay") atWork.set(file, entries);
  if (mode === "record") entries.length = 0;
  return {
    name,
    model,
    entries: () => entries,
    add: (entry) => {
      entries.push(entry);
      write(file, model, entries);
    },
  };
}

/** Whoever reads the file sees all of it or what stood there before. */
function write(file: string, model: string, entries: readonly RecordedEntry[]): void {
  mkdirSync(dirname(file), { recursive: true });
  const part = `${file}.${process.pid}.part`;
  writeFileSync(part, `${JSON.stringify({ form, model, entries }, undefined, 2)}\n`);
  renameSync(part, file);
}

function read(
  file: string,
  name: string,
  mode: RecordingMode,
): { readonly model: string; readonly entries: readonly RecordedEntry[] } | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (mode === "auto" && isMissing(cause)) return undefined;
    throw unfit(name, "cannot be read", cause);
  }
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (cause) {
    throw unfit(name, "is no JSON", cause);
  }
  if (!isPlainObject(found) || found["form"] !== form) throw unfit(name, `is no recording of the form ${form}`);
  const { model, entries } = found;
  if (typeof model !== "string" || !Array.isArray(entries) || !entries.every(isEntry))
    throw unfit(name, "holds something else than a model and its answers");
  return { model, entries };
}

function isEntry(entry: unknown): entry is RecordedEntry {
  return (
    isPlainObject(entry) &&
    typeof entry["digest"] === "string" &&
    isPlainObject(entry["reply"]) &&
    Array.isArray(entry["deltas"])
  );
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function unfit(name: string, why: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the recording ${name} ${why}`,
    next: 'Record it: recordedModel(path, { model, mode: "record" })',
    cause,
  });
}
