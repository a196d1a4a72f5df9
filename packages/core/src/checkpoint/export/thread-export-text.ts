/**
 * Text format of a thread export: one JSON object per line. The first line is a header with the format, its version
 * and the graph, then one line per row; the last line has the row count and the SHA-256 of all previous lines.
 *
 * The hash detects accidental changes only: an attacker can compute a new hash. Import a thread only from sources
 * trusted like a store file.
 */

import { fromBase64, toBase64 } from "../../base/base64.ts";
import { StatewrightError } from "../../base/errors.ts";
import { hashSha256 } from "../../base/hash-sha256.ts";
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
  runShape,
  timerShape,
  writtenByShape,
} from "../codec/row-shapes.ts";
import { checkExport } from "./check-export.ts";
import type { ArtifactExport, CheckpointExport, NamespaceExport, PrunedRange, ThreadExport } from "./thread-export.ts";

const format = "statewright.thread";
const version = 1;

type Header = Omit<ThreadExport, "namespaces" | "runs" | "events" | "artifacts" | "writtenBy"> & {
  readonly by: ThreadExport["writtenBy"];
};
type NamespaceHeader = Pick<NamespaceExport, "name" | "from" | "run" | "awaited">;

/** Serializes a thread export. */
export async function stringifyExport(exported: ThreadExport): Promise<string> {
  const { namespaces, runs, events, artifacts, writtenBy, ...thread } = exported;
  const header = { format, version, ...thread, by: writtenBy };
  const records: string[] = [JSON.stringify(header)];
  const add = (kind: string, row: object): void => {
    records.push(JSON.stringify({ row: kind, ...row }));
  };
  for (const run of runs) add("run", { run });
  for (const { checkpoints, prunedRanges, effects, interrupts, timers, inbox, ...namespace } of namespaces) {
    add("namespace", { namespace });
    for (const checkpoint of checkpoints) add("checkpoint", { checkpoint });
    for (const prunedRange of prunedRanges) add("prunedRange", { prunedRange });
    for (const effect of effects) add("effect", { effect });
    for (const interrupt of interrupts) add("interrupt", { interrupt });
    for (const timer of timers) add("timer", { timer });
    for (const inboxMessage of inbox) add("inboxMessage", { inboxMessage });
  }
  for (const event of events) add("event", { event });
  for (const { row, body } of artifacts)
    add("artifact", { artifact: body === undefined ? { row } : { row, body: toBase64(body) } });
  const body = `${records.join("\n")}\n`;
  return body + (await createLastLine(body));
}

/** Parses and validates the text of a thread export. Throws `invalid_export`, `store_newer`, `invalid_id`. */
export async function parseExport(text: string, maxBytes: number): Promise<ThreadExport> {
  if (text.length > maxBytes) throw createInvalidExportError(`the text is longer than ${maxBytes} bytes`);
  const body = await checkBody(text);
  const [first, ...rest] = body.slice(0, -1).split("\n");
  const header = parseHeader(parseLine(first ?? "", 1));
  const exported = { ...header, namespaces: [], runs: [], events: [], artifacts: [] } satisfies MutableExport;
  for (const [index, record] of rest.entries()) addRecord(exported, parseLine(record, index + 2), index + 2);
  checkExport(exported, createInvalidExportError);
  await checkBodies(exported.artifacts);
  return exported;
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

/** Returns the text before the last line, after checking the hash and the row count. */
async function checkBody(text: string): Promise<string> {
  const end = text.lastIndexOf("\n", text.length - 2) + 1;
  const body = text.slice(0, end);
  // A newer format is reported first: later checks hold only for this version.
  if (body !== "") checkFormat(parseLine(body.slice(0, body.indexOf("\n")), 1));
  const last = end === 0 || !text.endsWith("\n") ? undefined : parseLine(text.slice(end), 0);
  if (!isPlainObject(last) || last["row"] !== "end") throw createInvalidExportError("the last line is missing");
  if (text.slice(end) !== (await createLastLine(body)))
    throw createInvalidExportError("the hash does not match: the text was changed");
  return body;
}

/** Creates the last line of a text: row count and hash. */
async function createLastLine(body: string): Promise<string> {
  const rows = body.split("\n").length - 1;
  return `${JSON.stringify({ row: "end", rows, sha256: await hashSha256(body) })}\n`;
}

function checkFormat(first: unknown): Record<string, unknown> {
  if (!isPlainObject(first) || first["format"] !== format)
    throw createInvalidExportError("the first line does not name the format");
  const found = first["version"];
  if (typeof found === "number" && found > version) {
    throw new StatewrightError("store_newer", {
      what: `the export has format version ${found}; this version of Statewright reads up to ${version}`,
      next: "Update Statewright, or import with the version that wrote the export",
    });
  }
  if (found !== version) throw createInvalidExportError("the first line does not name a supported version");
  return first;
}

const headerShape: RowShape<Header> = {
  id: isName,
  keySalt: isName,
  createdAt: isCount,
  updatedAt: isCount,
  headBranch: isName,
  by: (value) => findViolation(writtenByShape, value) === undefined,
  seq: isCount,
  checkpoint: isCount,
  run: checkOptional(isName),
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
type MutableExport = Omit<MutableRows<ThreadExport>, "namespaces"> & { namespaces: MutableRows<NamespaceExport>[] };

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
