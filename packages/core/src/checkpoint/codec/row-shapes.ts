/**
 * Shapes of untrusted rows: every field has a known type and a bounded size, and unknown fields are rejected. A new
 * field without a check is a compile error.
 */
import { isPlainObject } from "../../base/json.ts";
import type { Usage } from "../../model/message.ts";
import type { ArtifactRow } from "../../tool/artifacts/artifact.ts";
import { type CheckpointRow, type DeltaRow, type RunRow, runStatuses, type SavedBreakpoints } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { GraphVersion, PrunedDelta } from "../export/thread-export.ts";
import type { InboxMessage } from "../inbox-message.ts";
import type { EffectAttempt, EffectRow, EffectUsage, InterruptRow } from "../journal.ts";
import type { RunRequest } from "../run-request.ts";
import { type TimerRow, timerKinds } from "../timer.ts";

type Check = (value: unknown) => boolean;

/** Check of every field of a row. */
export type RowShape<Row> = { readonly [Field in keyof Required<Row>]: Check };

/** Returns the first violation of a row shape; undefined for a valid row. */
export function findViolation<Row>(shape: RowShape<Row>, value: unknown): string | undefined {
  if (!isPlainObject(value)) return "is not an object";
  for (const field of Object.keys(value)) {
    if (!Object.hasOwn(shape, field)) return `has an unknown field ${JSON.stringify(field)}`;
  }
  for (const [field, check] of Object.entries<Check>(shape)) {
    const found = Object.hasOwn(value, field) ? value[field] : undefined;
    if (!check(found)) return `has an invalid value in ${JSON.stringify(field)}`;
  }
  return undefined;
}

/** Text of any length, as encoded by a codec. */
const isText: Check = (value) => typeof value === "string" && value.isWellFormed();
/** Name or key: free text of limited length. */
export const isName: Check = (value) => isText(value) && (value as string).length <= 10_000;
/** Integer ≥ 0. */
export const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isInteger: Check = (value) => Number.isSafeInteger(value);
const isTime: Check = isInteger;
const isDuration: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isFlag: Check = (value) => typeof value === "boolean";
const isDefined: Check = (value) => value !== undefined;

export function checkOptional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

/** Checks a list without holes: `every` alone skips holes. */
export function checkList(check: Check): Check {
  return (value) => Array.isArray(value) && [...value].every(check);
}

function checkAlternatives(values: readonly unknown[]): Check {
  return (value) => values.includes(value);
}

function checkRow<Row>(shape: RowShape<Row>): Check {
  return (value) => findViolation(shape, value) === undefined;
}

export const writtenByShape: RowShape<GraphVersion> = { graph: isName, version: isCount, shape: isName };

export const checkpointShape: RowShape<CheckpointRow> = {
  id: isCount,
  branch: isName,
  step: isTime,
  parent: checkOptional(isCount),
  source: checkAlternatives([
    "input",
    "step",
    "update",
    "fork",
    "cancel",
    "rollback",
    "migration",
  ] satisfies CheckpointRow["source"][]),
  nodes: checkList(isName),
  control: isText,
  run: isName,
  at: isTime,
  durationMs: isDuration,
  seq: isCount,
  bytes: isCount,
};

export const deltaShape: RowShape<DeltaRow> = {
  channel: isName,
  kind: checkAlternatives(["append", "replace", "patch", "clear"] satisfies DeltaRow["kind"][]),
  base: isFlag,
  count: checkOptional(isCount),
  text: isText,
};

export const prunedDeltaShape: RowShape<PrunedDelta> = { ...deltaShape, checkpoint: isCount };

const usageShape: RowShape<Usage> = {
  inputTokens: checkOptional(isDuration),
  outputTokens: checkOptional(isDuration),
  cachedTokens: checkOptional(isDuration),
  cacheWriteTokens: checkOptional(isDuration),
  reasoningTokens: checkOptional(isDuration),
};

const effectUsageShape: RowShape<EffectUsage> = { ...usageShape, model: checkOptional(isName) };

const attemptShape: RowShape<EffectAttempt> = {
  startedAt: isTime,
  endedAt: checkOptional(isTime),
  error: checkOptional(isName),
  model: checkOptional(isName),
  usage: checkOptional(checkRow(usageShape)),
};

export const effectShape: RowShape<EffectRow> = {
  step: isTime,
  task: isName,
  key: isName,
  kind: checkAlternatives(["task", "model", "tool", "step"] satisfies EffectRow["kind"][]),
  name: isName,
  effect: checkAlternatives(["pure", "idempotent", "once"] satisfies EffectRow["effect"][]),
  state: checkAlternatives(["started", "ok", "error"] satisfies EffectRow["state"][]),
  attempts: isCount,
  idempotencyKey: isText,
  startedAt: isTime,
  endedAt: checkOptional(isTime),
  outcome: checkOptional(isText),
  stage: checkOptional(isName),
  args: checkOptional(isText),
  processes: checkOptional(isCount),
  attemptLog: checkOptional(checkList(checkRow(attemptShape))),
  usage: checkOptional(checkRow(effectUsageShape)),
};

export const interruptShape: RowShape<InterruptRow> = {
  id: isName,
  branch: isName,
  step: isTime,
  task: isName,
  node: isName,
  key: isName,
  payload: isText,
  schema: checkOptional(isDefined),
  raisedAt: isTime,
  expiresAt: checkOptional(isTime),
  onExpire: checkOptional(isText),
  expiredAt: checkOptional(isTime),
  answer: checkOptional(isText),
  answeredAt: checkOptional(isTime),
  answeredBy: checkOptional(isText),
  answerKey: checkOptional(isName),
  answeredRun: checkOptional(isName),
  about: checkOptional(isText),
  tool: checkOptional(isText),
};

export const timerShape: RowShape<TimerRow> = {
  thread: isName,
  branch: isName,
  id: isName,
  kind: checkAlternatives(timerKinds),
  generation: isTime,
  dueAt: isTime,
  about: isName,
};

export const inboxMessageShape: RowShape<InboxMessage> = {
  id: isName,
  branch: isName,
  kind: checkAlternatives(["steer", "followUp", "event"] satisfies InboxMessage["kind"][]),
  deliveredTo: checkOptional(isName),
  messages: isText,
  at: isTime,
};

export const requestShape: RowShape<RunRequest> = {
  id: isName,
  branch: isName,
  run: isName,
  kind: checkAlternatives(["cancel", "pause"] satisfies RunRequest["kind"][]),
  reason: checkOptional(isText),
  by: checkOptional(isText),
  until: checkOptional(isTime),
  key: checkOptional(isName),
  at: isTime,
  handled: checkOptional(isFlag),
};

export const artifactShape: RowShape<ArtifactRow> = {
  key: (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value),
  name: isName,
  mimeType: isName,
  bytes: isCount,
  text: isFlag,
  redaction: checkAlternatives(["done", "skipped", "none"] satisfies ArtifactRow["redaction"][]),
  tool: isName,
  run: isName,
  branch: isName,
  step: isTime,
  task: isName,
  call: isName,
  at: isTime,
};

export const runShape: RowShape<RunRow> = {
  id: isName,
  thread: isName,
  branch: isName,
  graph: isName,
  version: isCount,
  status: checkAlternatives(runStatuses.filter((status) => status !== "crashed")),
  attempt: isCount,
  startedAt: isTime,
  endedAt: checkOptional(isTime),
  error: checkOptional(isPlainObject),
  reason: checkOptional(isText),
  key: checkOptional(isName),
  bodyHash: checkOptional(isName),
  resumeKey: checkOptional(isName),
  metadata: checkOptional(isPlainObject),
  tenant: checkOptional(isName),
  owner: checkOptional(isName),
  breakpoints: checkOptional(checkRow<SavedBreakpoints>({ before: checkList(isName), after: checkList(isName) })),
  input: checkOptional(isText),
  queuedAt: checkOptional(isTime),
  priority: checkOptional(isInteger),
  startAt: checkOptional(isTime),
  onBusy: checkOptional(checkAlternatives(["reject", "cancel", "rollback"] satisfies RunRow["onBusy"][])),
  debounceKey: checkOptional(isName),
  wakeAt: checkOptional(isTime),
  stops: checkOptional(
    checkRow<NonNullable<RunRow["stops"]>>({ run: isName, how: checkAlternatives(["cancel", "rollback"]) }),
  ),
  recovered: checkOptional(checkRow<NonNullable<RunRow["recovered"]>>({ count: isCount, at: isTime })),
};

export const eventShape: RowShape<EventRow> = { seq: isCount, branch: isName, at: isTime, text: isText };
