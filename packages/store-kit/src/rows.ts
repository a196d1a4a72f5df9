/** Columns of rows in SQL, conversion to rows of the store, and checksums that detect a modified row (fault F6). */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type {
  CheckpointRow,
  DeltaRow,
  EffectRow,
  EventRow,
  InboxMessage,
  InterruptRow,
  OpenInterruptRow,
  RunRow,
  ThreadRow,
  TimerRow,
} from "@statewright/core/store";
import type { ThreadCipher } from "./cipher.ts";
import { fromUsageColumns, toUsageText, type UsageColumns } from "./usage-columns.ts";

/** SQL value; null when absent. */
type Nullable<Value> = Value | null;

/** Version of the graph that wrote a checkpoint. */
export interface GraphVersion {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

export interface CheckpointColumns extends GraphVersion {
  readonly namespace: number;
  readonly id: number;
  readonly branch: string;
  readonly step: number;
  readonly parent: Nullable<number>;
  readonly source: CheckpointRow["source"];
  readonly nodes: string;
  readonly control: string;
  readonly run: string;
  readonly at: number;
  readonly duration: number;
  readonly seq: number;
  readonly bytes: number;
  readonly hash: string;
  readonly parentHash: Nullable<string>;
}

export interface DeltaColumns {
  readonly channel: string;
  readonly kind: DeltaRow["kind"];
  readonly base: number;
  readonly count: Nullable<number>;
  readonly sum: number;
  readonly text: string;
}

export interface EffectColumns {
  readonly step: number;
  readonly task: string;
  readonly call: string;
  readonly kind: EffectRow["kind"];
  readonly name: string;
  readonly effect: EffectRow["effect"];
  readonly state: EffectRow["state"];
  readonly attempts: number;
  readonly idempotency: string;
  readonly started: number;
  readonly ended: Nullable<number>;
  readonly stage: Nullable<string>;
  readonly args: Nullable<string>;
  readonly sum: Nullable<number>;
  readonly processes: Nullable<number>;
  /** Attempts of an effect with several, as a JSON list. */
  readonly attempt_log: Nullable<string>;
  /** Tokens of the result, as a JSON list. */
  readonly usage: Nullable<string>;
  readonly outcome: Nullable<string>;
}

export interface InterruptColumns {
  readonly id: string;
  readonly branch: string;
  readonly step: number;
  readonly task: string;
  readonly node: string;
  readonly name: string;
  readonly payload: string;
  readonly schema: Nullable<string>;
  readonly raised: number;
  readonly answer: Nullable<string>;
  readonly answered: Nullable<number>;
  readonly expires: Nullable<number>;
  /** Rare properties of an interrupt, as a JSON object. */
  readonly more: Nullable<string>;
  readonly sum: number;
}

export interface OpenInterruptColumns extends InterruptColumns {
  readonly thread: string;
  readonly run: string;
  readonly graph: string;
  readonly position: number;
}

export interface TimerColumns {
  readonly thread: string;
  readonly branch: string;
  readonly id: string;
  readonly kind: TimerRow["kind"];
  readonly generation: number;
  readonly due: number;
  readonly about: string;
  readonly sum: number;
}

export interface EventColumns {
  readonly seq: number;
  readonly branch: string;
  readonly at: number;
  readonly sum: number;
  readonly text: string;
}

export interface InboxMessageColumns {
  readonly id: string;
  readonly branch: string;
  readonly kind: InboxMessage["kind"];
  readonly at: number;
  /** Id of the run that took the message; empty for a waiting message. */
  readonly run: string;
  readonly sum: number;
  readonly messages: string;
}

export interface RunColumns {
  /** Ordered by start or enqueue. */
  readonly key: number;
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly version: number;
  readonly status: RunRow["status"];
  readonly attempt: number;
  readonly started: number;
  readonly ended: Nullable<number>;
  readonly error: Nullable<string>;
  /** Idempotency key. */
  readonly name: Nullable<string>;
  readonly metadata: Nullable<string>;
  readonly input: Nullable<string>;
  /** Rare properties of a run, as a JSON object. */
  readonly more: Nullable<string>;
  readonly tenant: Nullable<string>;
  readonly user: Nullable<string>;
  readonly priority: Nullable<number>;
  /** 1 when the row matches its checksum. */
  readonly intact: number;
}

export interface ThreadColumns {
  readonly key: number;
  readonly id: string;
  readonly graph: Nullable<string>;
  readonly version: Nullable<number>;
  readonly created: number;
  readonly updated: number;
  readonly head: string;
  readonly status: Nullable<RunRow["status"]>;
}

/** Converts the columns of a checkpoint to its row. */
export function toCheckpointRow(columns: CheckpointColumns): CheckpointRow {
  const { id, branch, step, parent, source, nodes, control, run, at, duration, seq, bytes } = columns;
  return {
    id,
    branch,
    step,
    parent: parent ?? undefined,
    source,
    nodes: JSON.parse(nodes),
    control,
    run,
    at,
    durationMs: duration,
    seq,
    bytes,
  };
}

/** Converts the columns of a delta to its row. */
export function toDeltaRow({ channel, kind, base, count, text }: DeltaColumns): DeltaRow {
  return { channel, kind, base: base === 1, ...(count === null ? {} : { count }), text };
}

/** Converts the columns of an effect to its row; absent columns are absent properties. */
export function toEffectRow(columns: EffectColumns): EffectRow {
  const { step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, outcome, stage, args } =
    columns;
  const { processes, attempt_log: attemptLog, usage } = columns;
  return {
    step,
    task,
    key: call,
    kind,
    name,
    effect,
    state,
    attempts,
    idempotencyKey: idempotency,
    startedAt: started,
    ...(ended === null ? {} : { endedAt: ended }),
    ...(outcome === null ? {} : { outcome }),
    ...(stage === null ? {} : { stage }),
    ...(args === null ? {} : { args }),
    ...(processes === null ? {} : { processes }),
    ...(attemptLog === null ? {} : { attemptLog: JSON.parse(attemptLog) as NonNullable<EffectRow["attemptLog"]> }),
    ...(usage === null ? {} : { usage: fromUsageColumns(JSON.parse(usage) as UsageColumns) }),
  };
}

/** Returns the attempts of an effect as JSON text; null for an effect without a list. */
export function toAttemptLogText({ attemptLog }: EffectRow): string | null {
  return attemptLog === undefined ? null : JSON.stringify(attemptLog);
}

/** Converts the columns of an interrupt to its row; absent columns are absent properties. */
export function toInterruptRow(columns: InterruptColumns): InterruptRow {
  const { id, branch, step, task, node, name, payload, schema, raised, expires, answer, answered, more } = columns;
  return {
    id,
    branch,
    step,
    task,
    node,
    key: name,
    payload,
    raisedAt: raised,
    ...(schema === null ? {} : { schema: JSON.parse(schema) }),
    ...(answer === null ? {} : { answer }),
    ...(answered === null ? {} : { answeredAt: answered }),
    ...(expires === null ? {} : { expiresAt: expires }),
    ...(more === null ? {} : (JSON.parse(more) as InterruptExtras)),
  };
}

type InterruptExtras = Pick<
  InterruptRow,
  "onExpire" | "expiredAt" | "answeredBy" | "about" | "tool" | "answerKey" | "answeredRun"
>;

/** Returns the rare properties of an interrupt as JSON text; null if all are undefined. */
export function toInterruptExtrasText({
  onExpire,
  expiredAt,
  answeredBy,
  about,
  tool,
  answerKey,
  answeredRun,
}: InterruptExtras): string | null {
  const text = JSON.stringify({ onExpire, expiredAt, answeredBy, about, tool, answerKey, answeredRun });
  return text === "{}" ? null : text;
}

/** Returns an open interrupt with its waiting run. */
export function toOpenInterruptRow(columns: OpenInterruptColumns): OpenInterruptRow {
  const { thread, run, graph, position } = columns;
  return { ...toInterruptRow(columns), thread, run, graph, position };
}

/** Converts the columns of a timer to its row. */
export function toTimerRow({ thread, branch, id, kind, generation, due, about }: TimerColumns): TimerRow {
  return { thread, branch, id, kind, generation, dueAt: due, about };
}

/** Converts the columns of a run to its row; absent columns are absent properties. */
export function toRunRow(columns: RunColumns): RunRow {
  const { id, thread, branch, graph, version, status, attempt, started, ended, error, name, metadata, input } = columns;
  const { more, tenant, user, priority } = columns;
  return {
    id,
    thread,
    branch,
    graph,
    version,
    status,
    attempt,
    startedAt: started,
    ...(ended === null ? {} : { endedAt: ended }),
    ...(error === null ? {} : { error: JSON.parse(error) }),
    ...(name === null ? {} : { key: name }),
    ...(metadata === null ? {} : { metadata: JSON.parse(metadata) }),
    ...(tenant === null ? {} : { tenant }),
    ...(user === null ? {} : { owner: user }),
    ...(priority === null || priority === 0 ? {} : { priority }),
    ...(input === null ? {} : { input }),
    ...(more === null ? {} : parseRunExtras(more)),
  };
}

type RunExtras = Pick<
  RunRow,
  | "reason"
  | "queuedAt"
  | "stops"
  | "recovered"
  | "breakpoints"
  | "bodyHash"
  | "resumeKey"
  | "startAt"
  | "onBusy"
  | "debounceKey"
  | "wakeAt"
>;

/** Returns the rare properties of a run as JSON text; null if all are undefined. */
export function toRunExtrasText({
  reason,
  queuedAt,
  stops,
  recovered,
  breakpoints,
  bodyHash,
  resumeKey,
  startAt,
  onBusy,
  debounceKey,
  wakeAt,
}: RunExtras): string | null {
  const more = { resumeKey, startAt, onBusy, debounceKey, wakeAt };
  const text = JSON.stringify({ reason, queuedAt, stops, recovered, breakpoints, bodyHash, ...more });
  return text === "{}" ? null : text;
}

function parseRunExtras(text: string): RunExtras {
  const extras = JSON.parse(text) as RunExtras;
  const { reason, queuedAt, stops, recovered, breakpoints, bodyHash, resumeKey } = extras;
  const { startAt, onBusy, debounceKey, wakeAt } = extras;
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(queuedAt === undefined ? {} : { queuedAt }),
    ...(stops === undefined ? {} : { stops }),
    ...(recovered === undefined ? {} : { recovered }),
    ...(breakpoints === undefined ? {} : { breakpoints }),
    ...(bodyHash === undefined ? {} : { bodyHash }),
    ...(resumeKey === undefined ? {} : { resumeKey }),
    ...(startAt === undefined ? {} : { startAt }),
    ...(onBusy === undefined ? {} : { onBusy }),
    ...(debounceKey === undefined ? {} : { debounceKey }),
    ...(wakeAt === undefined ? {} : { wakeAt }),
  };
}

/** Converts the columns of a thread to its row in lists, without its title, metadata, tenant and owner. */
export function toThreadRow({ id, graph, version, created, updated, head, status }: ThreadColumns): ThreadRow {
  return {
    id,
    ...(graph === null || version === null ? {} : { graph, version }),
    createdAt: created,
    updatedAt: updated,
    headBranch: head,
    status: status ?? undefined,
  };
}

/** Hash of the parent of a checkpoint, and the cipher of the thread. */
export interface CheckpointChain {
  readonly parentHash: string | undefined;
  readonly cipher: Pick<ThreadCipher, "hash"> | undefined;
}

/** Hashes a checkpoint: its content, its deltas and the hash of its parent, and so the whole chain. */
export function hashCheckpoint(
  row: CheckpointRow,
  { graph, version, shape }: GraphVersion,
  deltas: readonly DeltaRow[],
  { parentHash, cipher }: CheckpointChain,
): string {
  const { id, branch, step, parent, source, nodes, run, at, durationMs, seq, bytes, control } = row;
  const sorted = deltas.length < 2 ? deltas : deltas.toSorted((left, right) => (left.channel < right.channel ? -1 : 1));
  const parts = sorted.map(({ channel, kind, base, count, text }) => [channel, kind, base, count, text.length]);
  const head = [
    id,
    branch,
    step,
    parent,
    source,
    nodes,
    run,
    at,
    durationMs,
    seq,
    bytes,
    graph,
    version,
    shape,
    parentHash,
    control.length,
    parts,
  ];
  let text = `${JSON.stringify(head)}\n${control}`;
  for (const delta of sorted) text += delta.text;
  return cipher === undefined ? hash("sha256", text, "base64") : cipher.hash(text);
}

/** Computes the checksum of a delta and its location, to verify a state without loading whole checkpoints. */
export function computeDeltaSum(
  namespace: string,
  checkpoint: number,
  { channel, kind, base, count, text }: DeltaRow,
): number {
  return crc32(`${namespace} ${checkpoint} ${channel} ${kind} ${base} ${count ?? ""}${text}`);
}

/** Computes the checksum of an effect over all columns of the row. */
export function computeEffectSum(row: EffectRow): number {
  const { step, task, key, kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt, outcome, stage } =
    row;
  const { args } = row;
  const head = JSON.stringify([
    step,
    task,
    key,
    kind,
    name,
    effect,
    state,
    attempts,
    idempotencyKey,
    startedAt,
    endedAt,
    stage,
    args,
    row.processes,
    row.attemptLog,
    toUsageText(row),
  ]);
  return crc32(head + (outcome ?? ""));
}

/** Computes the checksum of an interrupt and its answer. */
export function computeInterruptSum(interrupt: InterruptRow): number {
  const { id, step, task, node, key, payload, schema, raisedAt, answer, answeredAt, expiresAt } = interrupt;
  const more = toInterruptExtrasText(interrupt);
  return crc32(
    JSON.stringify([id, step, task, node, key, payload, schema, raisedAt, answer, answeredAt, expiresAt, more]),
  );
}

/** Computes the checksum of the outline of a graph version. */
export function computeOutlineSum({ graph, version, shape }: GraphVersion, outline: string): number {
  return crc32(`${JSON.stringify([graph, version, shape])}${outline}`);
}

/** Computes the checksum of a durable event. */
export function computeEventSum({ seq, branch, at, text }: EventRow): number {
  return crc32(JSON.stringify([seq, branch, at, text]));
}

/** Computes the checksum of an inbox message. */
export function computeInboxMessageSum({ branch, id, kind, at, messages, deliveredTo }: InboxMessage): number {
  return crc32(JSON.stringify([branch, id, kind, at, messages, deliveredTo ?? ""]));
}

/** Computes the checksum of a timer. */
export function computeTimerSum({ id, kind, generation, dueAt, about }: Omit<TimerRow, "thread" | "branch">): number {
  return crc32(JSON.stringify([id, kind, generation, dueAt, about]));
}
