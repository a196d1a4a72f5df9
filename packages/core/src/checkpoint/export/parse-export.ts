/** Parses the text of a thread export: streamed line by line, and checked as a whole before it is returned. */
import { fromBase64 } from "../../base/base64.ts";
import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { computeArtifactKey } from "../../tool/artifacts/artifact.ts";
import {
  artifactShape,
  checkList,
  checkOptional,
  checkpointShape,
  deltaShape,
  effectShape,
  eventShape,
  findViolation,
  inboxMessageShape,
  interruptShape,
  isCount,
  isName,
  prunedDeltaShape,
  type RowShape,
  requestShape,
  runShape,
  timerShape,
  writtenByShape,
} from "../codec/row-shapes.ts";
import { parseOutline } from "../codec/saved-outline.ts";
import type { RunRequest } from "../run-request.ts";
import { checkExport } from "./check-export.ts";
import { createLineSummary, exportFormat, exportVersion } from "./export-format.ts";
import type {
  ArtifactExport,
  CheckpointExport,
  NamespaceExport,
  OutlineExport,
  PrunedRange,
  ThreadExport,
} from "./thread-export.ts";

type Header = Omit<
  ThreadExport,
  "namespaces" | "runs" | "requests" | "events" | "artifacts" | "outlines" | "writtenBy"
> & {
  readonly by: ThreadExport["writtenBy"];
};
type NamespaceHeader = Pick<NamespaceExport, "name" | "from" | "run" | "awaited">;

/** Text of a thread export, as a whole or in chunks. */
export type ExportText = string | Iterable<string> | AsyncIterable<string>;

/** Limits and the pause of `parseExport`. */
export interface ParseExportOptions {
  readonly maxBytes: number;
  /** Lets other work run, between parts of the text. */
  readonly pause: () => Promise<void>;
}

/** Characters that are parsed without a pause. */
const charactersPerTurn = 2 ** 20;

/** Parses and validates the text of a thread export. Throws `invalid_export`, `store_newer`, `invalid_id`. */
export async function parseExport(text: ExportText, { maxBytes, pause }: ParseExportOptions): Promise<ThreadExport> {
  const summary = createLineSummary();
  const parser = new ExportParser();
  let lastLine: string | undefined;
  let characters = 0;
  for await (const line of splitLines(text, maxBytes)) {
    for (const part of lastLine === undefined ? [] : splitText(lastLine)) {
      summary.add(part);
      characters += part.length;
      if (characters < charactersPerTurn) continue;
      characters = 0;
      await pause();
    }
    if (lastLine !== undefined) parser.addLine(lastLine.slice(0, -1));
    lastLine = line;
  }
  const exported = parser.finish(lastLine, summary.createLastLine());
  await checkBodies(exported.artifacts);
  return exported;
}

/** Splits a long line, not inside a surrogate pair. */
function* splitText(text: string): Generator<string, void> {
  for (let start = 0; start < text.length; ) {
    const limit = start + charactersPerTurn;
    const code = text.charCodeAt(limit - 1);
    const end = code >= 0xd800 && code <= 0xdbff ? limit + 1 : limit;
    yield text.slice(start, end);
    start = end;
  }
}

/** Splits chunks into lines, each with its line break; the last line may have none. */
async function* splitLines(text: ExportText, maxBytes: number): AsyncGenerator<string, void> {
  let parts: string[] = [];
  let length = 0;
  for await (const chunk of typeof text === "string" ? [text] : text) {
    if (typeof chunk !== "string") throw createInvalidExportError("a chunk is not a text");
    length += chunk.length;
    if (length > maxBytes) throw createInvalidExportError(`the text is longer than ${maxBytes} bytes`);
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      yield parts.join("") + chunk.slice(start, end + 1);
      parts = [];
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.slice(start));
  }
  if (parts.length > 0) yield parts.join("");
}

/**
 * Collects the rows of the lines. The first invalid line is reported after the last line only, because a changed text
 * is the more precise reason. A newer format is reported first: later checks hold only for this version.
 */
class ExportParser {
  #exported: MutableExport | undefined;
  #lineNumber = 0;
  #failure: { readonly thrown: unknown } | undefined;

  addLine(line: string): void {
    this.#lineNumber += 1;
    if (this.#lineNumber === 1) checkFormat(parseLine(line, 1));
    if (this.#failure !== undefined) return;
    try {
      if (this.#exported === undefined) this.#exported = createEmptyExport(parseHeader(parseLine(line, 1)));
      else addRecord(this.#exported, parseLine(line, this.#lineNumber), this.#lineNumber);
    } catch (thrown) {
      this.#failure = { thrown };
    }
  }

  /** Returns the export after checking the last line. */
  finish(lastLine: string | undefined, expected: string): ThreadExport {
    const isComplete = this.#lineNumber > 0 && lastLine?.endsWith("\n") === true;
    const last = isComplete ? parseLine(lastLine, 0) : undefined;
    if (!isPlainObject(last) || last["row"] !== "end") throw createInvalidExportError("the last line is missing");
    if (lastLine !== expected) throw createInvalidExportError("the hash does not match: the text was changed");
    if (this.#failure !== undefined) throw this.#failure.thrown;
    if (this.#exported === undefined) throw createInvalidExportError("the first line is missing");
    checkExport(this.#exported, createInvalidExportError);
    return this.#exported;
  }
}

function createEmptyExport(header: ReturnType<typeof parseHeader>): MutableExport {
  return { ...header, namespaces: [], runs: [], events: [], artifacts: [], outlines: [] };
}

/** Checks that the first row of each body includes the body, and that the body matches its key. */
async function checkBodies(artifacts: readonly ArtifactExport[]): Promise<void> {
  const seen = new Set<string>();
  for (const { row, body } of artifacts) {
    const isValid = seen.has(row.key)
      ? body === undefined
      : body?.length === row.bytes && (await computeArtifactKey(body)) === row.key;
    if (!isValid) throw createInvalidExportError(`the body of artifact ${row.key} does not match its key`);
    seen.add(row.key);
  }
}

function checkFormat(first: unknown): Record<string, unknown> {
  if (!isPlainObject(first) || first["format"] !== exportFormat)
    throw createInvalidExportError("the first line does not name the format");
  const found = first["version"];
  if (typeof found === "number" && found > exportVersion) {
    throw new StatewrightError("store_newer", {
      what: `the export has format version ${found}; this version of Statewright reads up to ${exportVersion}`,
      next: "Update Statewright, or import with the version that wrote the export",
    });
  }
  if (found !== exportVersion) throw createInvalidExportError("the first line does not name a supported version");
  return first;
}

const headerShape: RowShape<Header> = {
  id: isName,
  keySalt: isName,
  createdAt: isCount,
  updatedAt: isCount,
  headBranch: isName,
  by: checkOptional((value) => findViolation(writtenByShape, value) === undefined),
  title: checkOptional(isName),
  metadata: checkOptional(isPlainObject),
  tenant: checkOptional(isName),
  owner: checkOptional(isName),
  seq: isCount,
  checkpoint: isCount,
  run: checkOptional(isName),
};

const outlineShape: RowShape<OutlineExport> = {
  ...writtenByShape,
  outline: (value) => typeof value === "string" && parseOutline(value) !== undefined,
};

const namespaceShape: RowShape<NamespaceHeader> = {
  name: isName,
  from: checkOptional(isCount),
  run: checkOptional(isName),
  awaited: checkList(isName),
};

const checkpointExportShape: RowShape<CheckpointExport> = {
  row: (value) => findViolation(checkpointShape, value) === undefined,
  deltas: checkList((value) => findViolation(deltaShape, value) === undefined),
  writtenBy: (value) => findViolation(writtenByShape, value) === undefined,
};

const prunedRangeShape: RowShape<PrunedRange> = {
  id: isCount,
  seq: isCount,
  deltas: checkList((value) => findViolation(prunedDeltaShape, value) === undefined),
};

/** Artifact row in the text format. */
interface ArtifactRecord {
  readonly row: ArtifactExport["row"];
  readonly body?: string;
}

const artifactRecordShape: RowShape<ArtifactRecord> = {
  row: (value) => findViolation(artifactShape, value) === undefined,
  body: checkOptional(
    (value) => typeof value === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0,
  ),
};

function parseHeader(
  first: unknown,
): Pick<ThreadExport, Exclude<keyof Header, "by">> & Pick<ThreadExport, "writtenBy"> {
  const { format: _format, version: _version, ...fields } = checkFormat(first);
  const { by, ...header } = parseRow<Header>(headerShape, fields, 1);
  return { ...header, run: header.run, writtenBy: by };
}

type MutableRows<Image> = {
  -readonly [Field in keyof Image]: Image[Field] extends readonly (infer Row)[] ? Row[] : Image[Field];
};
type MutableExport = Omit<MutableRows<ThreadExport>, "namespaces" | "outlines" | "requests"> & {
  requests?: RunRequest[];
  namespaces: MutableRows<NamespaceExport>[];
  outlines: OutlineExport[];
};

function addRecord(exported: MutableExport, record: unknown, lineNumber: number): void {
  if (!isPlainObject(record) || typeof record["row"] !== "string")
    throw createInvalidExportError(`line ${lineNumber} has no row kind`);
  const { row: kind, ...rest } = record;
  const [onlyKey, ...others] = Object.keys(rest);
  if (onlyKey !== kind || others.length > 0)
    throw createInvalidExportError(`line ${lineNumber} has an unknown row kind`);
  const value = rest[onlyKey];
  const namespace = exported.namespaces[exported.namespaces.length - 1];
  switch (kind) {
    case "run":
      exported.runs.push(parseRow(runShape, value, lineNumber));
      return;
    case "outline":
      exported.outlines.push(parseRow(outlineShape, value, lineNumber));
      return;
    case "request":
      exported.requests = [...(exported.requests ?? []), parseRow(requestShape, value, lineNumber)];
      return;
    case "event":
      exported.events.push(parseRow(eventShape, value, lineNumber));
      return;
    case "artifact": {
      const { row, body } = parseRow<ArtifactRecord>(artifactRecordShape, value, lineNumber);
      exported.artifacts.push(body === undefined ? { row } : { row, body: fromBase64(body) });
      return;
    }
    case "namespace": {
      const { name, from, run, awaited } = parseRow<NamespaceHeader>(namespaceShape, value, lineNumber);
      const rows = { checkpoints: [], prunedRanges: [], effects: [], interrupts: [], timers: [], inbox: [] };
      exported.namespaces.push({ name, from, run, awaited: [...awaited], ...rows });
      return;
    }
  }
  if (namespace === undefined)
    throw createInvalidExportError(`line ${lineNumber} precedes the first namespace of the thread`);
  switch (kind) {
    case "checkpoint": {
      const { row, ...checkpoint } = parseRow<CheckpointExport>(checkpointExportShape, value, lineNumber);
      namespace.checkpoints.push({ ...checkpoint, row: { ...row, parent: row.parent } });
      return;
    }
    case "prunedRange":
      namespace.prunedRanges.push(parseRow(prunedRangeShape, value, lineNumber));
      return;
    case "effect":
      namespace.effects.push(parseRow(effectShape, value, lineNumber));
      return;
    case "interrupt":
      namespace.interrupts.push(parseRow(interruptShape, value, lineNumber));
      return;
    case "timer":
      namespace.timers.push(parseRow(timerShape, value, lineNumber));
      return;
    case "inboxMessage":
      namespace.inbox.push(parseRow(inboxMessageShape, value, lineNumber));
      return;
    default:
      throw createInvalidExportError(`line ${lineNumber} has an unknown row kind`);
  }
}

function parseRow<Row>(shape: RowShape<Row>, value: unknown, lineNumber: number): Row {
  const violation = findViolation(shape, value);
  if (violation !== undefined) throw createInvalidExportError(`the row in line ${lineNumber} ${violation}`);
  return value as Row;
}

/** Maximum depth and number of values of a row (rule R15). */
const maxDepth = 64;
const maxValues = 100_000;

function parseLine(line: string, lineNumber: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw createInvalidExportError(
      lineNumber === 0 ? "the last line is missing" : `line ${lineNumber} is not JSON`,
      cause,
    );
  }
  let values = 0;
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    values += level.length;
    if (depth > maxDepth || values > maxValues)
      throw createInvalidExportError(`line ${lineNumber} is nested too deeply or has too many values`);
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
  return value;
}

function createInvalidExportError(what: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_export", {
    what: `the text is not a valid export of exportThread: ${what}`,
    next: "Export the thread again; nothing was imported",
    cause,
  });
}
