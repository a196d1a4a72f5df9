/** Recording file: read once, rewritten completely after each new answer. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { ModelDelta, ModelReply, StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";

/**
 * `replay`: answers come from the file only. `record`: answers come from the model, and the file is rewritten.
 * `auto`: requests missing in the file go to the model and are added.
 */
export type RecordingMode = "replay" | "record" | "auto";

/** Request with the answer and the streamed deltas. */
export interface RecordedEntry {
  readonly digest: string;
  readonly request: unknown;
  readonly reply: ModelReply;
  readonly deltas: readonly ModelDelta[];
}

/** Open recording. */
export interface Recording {
  /** File name, for error messages. */
  readonly name: string;
  /** Id of the recorded model. */
  readonly model: string;
  readonly entries: () => readonly RecordedEntry[];
  /** Adds an answer and writes the file. */
  readonly add: (entry: RecordedEntry) => void;
}

/** Version of the file format. */
const formatVersion = 1;

/** Entries by file: models of a process that record to the same file share its entries. */
const sharedEntries = new Map<string, RecordedEntry[]>();

/**
 * Opens the recording at a path. Throws `invalid_option` for a required file that is missing, and for an invalid
 * file.
 */
export function openRecording(path: string | URL, mode: RecordingMode, modelId: string | undefined): Recording {
  const file = path instanceof URL ? fileURLToPath(path) : resolve(path);
  const name = basename(file);
  const found = mode === "record" ? undefined : readRecording(file, name, mode);
  const model = modelId ?? found?.model ?? "recorded";
  const shared = mode === "replay" ? undefined : sharedEntries.get(file);
  const entries = shared ?? [...(found?.entries ?? [])];
  if (mode !== "replay") sharedEntries.set(file, entries);
  if (mode === "record") entries.length = 0;
  return {
    name,
    model,
    entries: () => entries,
    add: (entry) => {
      entries.push(entry);
      writeRecording(file, model, entries);
    },
  };
}

/** Writes the file atomically: a reader sees either the old or the complete new content. */
function writeRecording(file: string, model: string, entries: readonly RecordedEntry[]): void {
  mkdirSync(dirname(file), { recursive: true });
  const part = `${file}.${process.pid}.part`;
  writeFileSync(part, `${JSON.stringify({ form: formatVersion, model, entries }, undefined, 2)}\n`);
  renameSync(part, file);
}

function readRecording(
  file: string,
  name: string,
  mode: RecordingMode,
): { readonly model: string; readonly entries: readonly RecordedEntry[] } | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (mode === "auto" && isMissing(cause)) return undefined;
    throw createRecordingError(name, "a file that cannot be read", cause);
  }
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (cause) {
    throw createRecordingError(name, "invalid JSON", cause);
  }
  if (!isPlainObject(found) || found["form"] !== formatVersion) throw createRecordingError(name, "another format");
  const { model, entries } = found;
  if (typeof model !== "string" || !Array.isArray(entries) || !entries.every(isEntry))
    throw createRecordingError(name, "a file without a model and its answers");
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

function createRecordingError(name: string, found: string, cause?: unknown): StatewrightError {
  return invalidOption({
    where: "recordedModel",
    expected: `a recording of format version ${formatVersion} in ${name}`,
    found,
    fix: 'Record the file with recordedModel(path, { model, mode: "record" })',
    cause,
  });
}
