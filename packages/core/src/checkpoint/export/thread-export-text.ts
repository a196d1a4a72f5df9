/**
 * A thread as text that describes itself: one JSON object a line. The first names the format, its version and the graph,
 * then one line a row, the last counts them and holds the SHA-256 of everything before it.
 *
 * The hash finds what was changed by accident or in passing. Who can write the text can write a hash too: a thread is
 * imported from where one would take a file of the store.
 */

import { fromBase64, toBase64 } from "../../base/base64.ts";
import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { keyOfBody } from "../../tool/artifacts/artifact.ts";
import {
  artifactShape,
  checkpointShape,
  count,
  cutDeltaShape,
  deltaShape,
  effectShape,
  eventShape,
  interruptShape,
  letterShape,
  list,
  maybe,
  misfit,
  name,
  type RowShape,
  runShape,
  timerShape,
  writtenByShape,
} from "../codec/row-shapes.ts";
import { checkImage } from "./check-export.ts";
import type { ArtifactImage, CheckpointImage, CutImage, LineImage, ThreadImage } from "./thread-export.ts";

const format = "statewright.thread";
const version = 1;

type Header = Omit<ThreadImage, "lines" | "runs" | "events" | "artifacts" | "writtenBy"> & {
  readonly by: ThreadImage["writtenBy"];
};
type LineHead = Pick<LineImage, "name" | "from" | "run" | "awaited">;

/** The text of a thread. */
export async function textOfImage(image: ThreadImage): Promise<string> {
  const { lines, runs, events, artifacts, writtenBy, ...thread } = image;
  const header = { format, version, ...thread, by: writtenBy };
  const records: string[] = [JSON.stringify(header)];
  const add = (kind: string, row: object): void => {
    records.push(JSON.stringify({ row: kind, ...row }));
  };
  for (const run of runs) add("run", { run });
  for (const { checkpoints, cuts, effects, interrupts, timers, letters, ...line } of lines) {
    add("line", { line });
    for (const checkpoint of checkpoints) add("checkpoint", { checkpoint });
    for (const cut of cuts) add("cut", { cut });
    for (const effect of effects) add("effect", { effect });
    for (const interrupt of interrupts) add("interrupt", { interrupt });
    for (const timer of timers) add("timer", { timer });
    for (const letter of letters) add("letter", { letter });
  }
  for (const event of events) add("event", { event });
  for (const { row, body } of artifacts)
    add("artifact", { artifact: body === undefined ? { row } : { row, body: toBase64(body) } });
  const body = `${records.join("\n")}\n`;
  return body + (await endOf(body));
}

/** The image that a text holds, checked whole. Throws `invalid_export`, `store_newer`, `invalid_id`. */
export async function imageOfText(text: string, maxBytes: number): Promise<ThreadImage> {
  if (text.length > maxBytes) throw invalid(`it is longer than ${maxBytes} bytes`);
  const body = await checkedBody(text);
  const [first, ...rest] = body.slice(0, -1).split("\n");
  const header = readHeader(parsed(first ?? "", 1));
  const image = { ...header, lines: [], runs: [], events: [], artifacts: [] } satisfies Mutable;
  for (const [index, record] of rest.entries()) addRecord(image, parsed(record, index + 2), index + 2);
  checkImage(image, invalid);
  await checkBodies(image.artifacts);
  return image;
}

/** The first row of each body has it, and it is what its key says. */
async function checkBodies(artifacts: readonly ArtifactImage[]): Promise<void> {
  const seen = new Set<string>();
  for (const { row, body } of artifacts) {
    const fits = seen.has(row.key)
      ? body === undefined
      : body?.length === row.bytes && (await keyOfBody(body)) === row.key;
    if (!fits) throw invalid(`the artifact ${row.key} is not what was kept`);
    seen.add(row.key);
  }
}

/** What stands before the last line, when that holds its hash and the count of its lines. */
async function checkedBody(text: string): Promise<string> {
  const end = text.lastIndexOf("\n", text.length - 2) + 1;
  const body = text.slice(0, end);
  // A newer format is told before anything that only this one promises.
  if (body !== "") readFormat(parsed(body.slice(0, body.indexOf("\n")), 1));
  const last = end === 0 || !text.endsWith("\n") ? undefined : parsed(text.slice(end), 0);
  if (!isPlainObject(last) || last["row"] !== "end") throw invalid("its end is missing");
  if (text.slice(end) !== (await endOf(body))) throw invalid("it was changed since it was written");
  return body;
}

/** The last line of a text: how many are before it, and their hash. */
async function endOf(body: string): Promise<string> {
  const rows = body.split("\n").length - 1;
  return `${JSON.stringify({ row: "end", rows, sha256: await sha256(body) })}\n`;
}

function readFormat(first: unknown): Record<string, unknown> {
  if (!isPlainObject(first) || first["format"] !== format) throw invalid("its first line does not name the format");
  const found = first["version"];
  if (typeof found === "number" && found > version) {
    throw new StatewrightError("store_newer", {
      what: `the export was written by a newer version (format ${found}, this one knows ${version})`,
      next: "Update Statewright, or import it with the version that wrote it",
    });
  }
  if (found !== version) throw invalid("its first line does not name a version");
  return first;
}

const headerShape: RowShape<Header> = {
  id: name,
  createdAt: count,
  updatedAt: count,
  headBranch: name,
  by: (value) => misfit(writtenByShape, value) === undefined,
  seq: count,
  checkpoint: count,
  run: maybe(name),
};

const lineShape: RowShape<LineHead> = { name, from: maybe(count), run: maybe(name), awaited: list(name) };

const checkpointImageShape: RowShape<CheckpointImage> = {
  row: (value) => misfit(checkpointShape, value) === undefined,
  deltas: list((value) => misfit(deltaShape, value) === undefined),
  writtenBy: (value) => misfit(writtenByShape, value) === undefined,
};

const cutShape: RowShape<CutImage> = {
  id: count,
  seq: count,
  deltas: list((value) => misfit(cutDeltaShape, value) === undefined),
};

/** An artifact as the text has it. */
interface ArtifactRecord {
  readonly row: ArtifactImage["row"];
  readonly body?: string;
}

const artifactRecordShape: RowShape<ArtifactRecord> = {
  row: (value) => misfit(artifactShape, value) === undefined,
  body: maybe((value) => typeof value === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0),
};

function readHeader(first: unknown): Pick<ThreadImage, Exclude<keyof Header, "by">> & Pick<ThreadImage, "writtenBy"> {
  const { format: _format, version: _version, ...fields } = readFormat(first);
  const { by, ...header } = readRow<Header>(headerShape, fields, 1);
  return { ...header, run: header.run, writtenBy: by };
}

type Growing<Image> = {
  -readonly [Field in keyof Image]: Image[Field] extends readonly (infer Row)[] ? Row[] : Image[Field];
};
type Mutable = Omit<Growing<ThreadImage>, "lines"> & { lines: Growing<LineImage>[] };

function addRecord(image: Mutable, record: unknown, at: number): void {
  if (!isPlainObject(record) || typeof record["row"] !== "string") throw invalid(`line ${at} names no kind of row`);
  const { row: kind, ...rest } = record;
  const [only, ...others] = Object.keys(rest);
  if (only !== kind || others.length > 0) throw invalid(`line ${at} is no row of a kind that is known`);
  const value = rest[only];
  const line = image.lines[image.lines.length - 1];
  switch (kind) {
    case "run":
      image.runs.push(readRow(runShape, value, at));
      return;
    case "event":
      image.events.push(readRow(eventShape, value, at));
      return;
    case "artifact": {
      const { row, body } = readRow<ArtifactRecord>(artifactRecordShape, value, at);
      image.artifacts.push(body === undefined ? { row } : { row, body: fromBase64(body) });
      return;
    }
    case "line": {
      const { name, from, run, awaited } = readRow<LineHead>(lineShape, value, at);
      const rows = { checkpoints: [], cuts: [], effects: [], interrupts: [], timers: [], letters: [] };
      image.lines.push({ name, from, run, awaited: [...awaited], ...rows });
      return;
    }
  }
  if (line === undefined) throw invalid(`line ${at} stands before the first line of the thread`);
  switch (kind) {
    case "checkpoint": {
      const { row, ...checkpoint } = readRow<CheckpointImage>(checkpointImageShape, value, at);
      line.checkpoints.push({ ...checkpoint, row: { ...row, parent: row.parent } });
      return;
    }
    case "cut":
      line.cuts.push(readRow(cutShape, value, at));
      return;
    case "effect":
      line.effects.push(readRow(effectShape, value, at));
      return;
    case "interrupt":
      line.interrupts.push(readRow(interruptShape, value, at));
      return;
    case "timer":
      line.timers.push(readRow(timerShape, value, at));
      return;
    case "letter":
      line.letters.push(readRow(letterShape, value, at));
      return;
    default:
      throw invalid(`line ${at} is no row of a kind that is known`);
  }
}

function readRow<Row>(shape: RowShape<Row>, value: unknown, at: number): Row {
  const why = misfit(shape, value);
  if (why !== undefined) throw invalid(`the row in line ${at} ${why}`);
  return value as Row;
}

/** Deeper data, or more parts in one row, no row of ours has (rule R15). */
const deepest = 64;
const mostParts = 100_000;

function parsed(line: string, at: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw invalid(at === 0 ? "its end is missing" : `line ${at} is not JSON`, cause);
  }
  let parts = 0;
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    parts += level.length;
    if (depth > deepest || parts > mostParts) throw invalid(`line ${at} is too deep or has too many parts`);
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
  return value;
}

async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function invalid(what: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_export", {
    what: `the text is not a thread that exportThread wrote: ${what}`,
    next: "Export the thread again; nothing was imported",
    cause,
  });
}
