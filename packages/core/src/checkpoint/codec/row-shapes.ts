/**
 * What rows look like that come from outside: every field of a known kind, no other field, nothing too large. A field that
 * a row gets and this file does not know does not compile.
 */
import { isPlainObject } from "../../base/json.ts";
import type { ArtifactRow } from "../../tool/artifacts/artifact.ts";
import { type CheckpointRow, type DeltaRow, type RunRow, runStatuses } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { CutDelta, WrittenBy } from "../export/thread-export.ts";
import type { LetterRow } from "../inbox-message.ts";
import type { EffectRow, InterruptRow } from "../journal.ts";
import type { TimerRow } from "../timer.ts";

type Check = (value: unknown) => boolean;

/** One check for every field. */
export type RowShape<Row> = { readonly [Field in keyof Required<Row>]: Check };

/** The first thing about a value that no row of this shape has; nothing when it is one. */
export function misfit<Row>(shape: RowShape<Row>, value: unknown): string | undefined {
  if (!isPlainObject(value)) return "is no object";
  for (const field of Object.keys(value)) {
    if (!Object.hasOwn(shape, field)) return `has a field ${JSON.stringify(field)} that is not known`;
  }
  for (const [field, check] of Object.entries<Check>(shape)) {
    const found = Object.hasOwn(value, field) ? value[field] : undefined;
    if (!check(found)) return `has in ${JSON.stringify(field)} what does not belong there`;
  }
  return undefined;
}

const loneSurrogate = /\p{Surrogate}/u;

/** Text of any length: what a codec made of a value. */
const text: Check = (value) => typeof value === "string" && !loneSurrogate.test(value);
/** A name or a key: free text of a bearable length. */
export const name: Check = (value) => text(value) && (value as string).length <= 10_000;
/** A whole number from 0. */
export const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const time: Check = (value) => Number.isSafeInteger(value);
const duration: Check = (value) => typeof value === "number" && Number.isFinite(value);
const flag: Check = (value) => typeof value === "boolean";
const json: Check = (value) => value !== undefined;

export function maybe(check: Check): Check {
  return (value) => value === undefined || check(value);
}

/** A list without holes: `every` alone would pass them over. */
export function list(check: Check): Check {
  return (value) => Array.isArray(value) && [...value].every(check);
}

function oneOf(values: readonly unknown[]): Check {
  return (value) => values.includes(value);
}

function row<Row>(shape: RowShape<Row>): Check {
  return (value) => misfit(shape, value) === undefined;
}

export const writtenByShape: RowShape<WrittenBy> = { graph: name, version: count, shape: name };

export const checkpointShape: RowShape<CheckpointRow> = {
  id: count,
  branch: name,
  step: time,
  parent: maybe(count),
  source: oneOf([
    "input",
    "step",
    "update",
    "fork",
    "interrupt",
    "rollback",
    "migration",
  ] satisfies CheckpointRow["source"][]),
  nodes: list(name),
  control: text,
  run: name,
  at: time,
  durationMs: duration,
  seq: count,
  bytes: count,
};

export const deltaShape: RowShape<DeltaRow> = {
  channel: name,
  kind: oneOf(["append", "replace", "patch", "clear"] satisfies DeltaRow["kind"][]),
  base: flag,
  text,
};

export const cutDeltaShape: RowShape<CutDelta> = { ...deltaShape, checkpoint: count };

export const effectShape: RowShape<EffectRow> = {
  step: time,
  task: name,
  key: name,
  kind: oneOf(["task", "model", "tool", "step"] satisfies EffectRow["kind"][]),
  name,
  effect: oneOf(["pure", "idempotent", "once"] satisfies EffectRow["effect"][]),
  state: oneOf(["started", "ok", "error"] satisfies EffectRow["state"][]),
  attempts: count,
  idempotencyKey: text,
  startedAt: time,
  endedAt: maybe(time),
  outcome: maybe(text),
  stage: maybe(name),
  args: maybe(text),
};

export const interruptShape: RowShape<InterruptRow> = {
  id: name,
  branch: name,
  step: time,
  task: name,
  node: name,
  key: name,
  payload: text,
  schema: maybe(json),
  raisedAt: time,
  expiresAt: maybe(time),
  onExpire: maybe(text),
  expiredAt: maybe(time),
  answer: maybe(text),
  answeredAt: maybe(time),
  answeredBy: maybe(text),
  about: maybe(text),
  tool: maybe(text),
};

export const timerShape: RowShape<TimerRow> = {
  thread: name,
  branch: name,
  id: name,
  kind: oneOf(["after", "expiry"] satisfies TimerRow["kind"][]),
  generation: time,
  dueAt: time,
  about: name,
};

export const letterShape: RowShape<LetterRow> = {
  id: name,
  branch: name,
  kind: oneOf(["steer", "followUp"] satisfies LetterRow["kind"][]),
  taken: maybe(name),
  messages: text,
  at: time,
};

export const artifactShape: RowShape<ArtifactRow> = {
  key: (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value),
  name,
  mimeType: name,
  bytes: count,
  text: flag,
  redaction: oneOf(["done", "skipped", "none"] satisfies ArtifactRow["redaction"][]),
  tool: name,
  run: name,
  branch: name,
  step: time,
  task: name,
  call: name,
  at: time,
};

export const runShape: RowShape<RunRow> = {
  id: name,
  thread: name,
  branch: name,
  graph: name,
  version: count,
  status: oneOf(runStatuses.filter((status) => status !== "crashed")),
  attempt: count,
  startedAt: time,
  endedAt: maybe(time),
  error: maybe(isPlainObject),
  reason: maybe(text),
  key: maybe(name),
  metadata: maybe(isPlainObject),
  input: maybe(text),
  queuedAt: maybe(time),
  stops: maybe(row<NonNullable<RunRow["stops"]>>({ run: name, how: oneOf(["interrupt", "rollback"]) })),
  recovered: maybe(row<NonNullable<RunRow["recovered"]>>({ count, at: time })),
};

export const eventShape: RowShape<EventRow> = { seq: count, branch: name, at: time, text };
