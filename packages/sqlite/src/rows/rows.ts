/** Rows as SQLite gives them, the values they stand for, and the sums by which a changed row is noticed (fault F6). */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type {
  CheckpointRow,
  DeltaRow,
  EffectRow,
  EventRow,
  InterruptRow,
  LetterRow,
  QuestionRow,
  RunRow,
  ThreadRow,
  TimerRow,
} from "@statewright/core";
import type { Seals } from "../encryption/cipher.ts";

/** What a value is when SQLite has read it: absent is null. */
type Nullable<Value> = Value | null;

/** What a checkpoint was written by. */
export interface WrittenBy {
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
}

export interface CheckpointColumns extends WrittenBy {
  readonly line: number;
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
  /** What few questions have, as one object. */
  readonly more: Nullable<string>;
  readonly sum: number;
}

export interface QuestionColumns extends InterruptColumns {
  readonly thread: string;
  readonly run: string;
  readonly graph: string;
  readonly place: number;
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

export interface FactColumns {
  readonly seq: number;
  readonly branch: string;
  readonly at: number;
  readonly sum: number;
  readonly text: string;
}

export interface LetterColumns {
  readonly id: string;
  readonly branch: string;
  readonly kind: LetterRow["kind"];
  readonly at: number;
  /** The run that has taken it in; empty while it waits. */
  readonly taken: string;
  readonly sum: number;
  readonly messages: string;
}

export interface RunColumns {
  /** Grows in the order in which runs began or were queued. */
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
  /** The idempotency key. */
  readonly name: Nullable<string>;
  readonly metadata: Nullable<string>;
  readonly input: Nullable<string>;
  /** What few runs have, as one object. */
  readonly more: Nullable<string>;
  /** Whether the row has the sum that it was written with. */
  readonly intact: number;
}

export interface ThreadColumns {
  readonly key: number;
  readonly id: string;
  readonly graph: string;
  readonly version: number;
  readonly created: number;
  readonly updated: number;
  readonly head: string;
  readonly status: Nullable<RunRow["status"]>;
}

export function checkpointRow(columns: CheckpointColumns): CheckpointRow {
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

export function deltaRow({ channel, kind, base, text }: DeltaColumns): DeltaRow {
  return { channel, kind, base: base === 1, text };
}

export function effectRow(columns: EffectColumns): EffectRow {
  const { step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, outcome, stage, args } =
    columns;
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
  };
}

export function interruptRow(columns: InterruptColumns): InterruptRow {
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
    ...(more === null ? {} : (JSON.parse(more) as MoreOfQuestion)),
  };
}

type MoreOfQuestion = Pick<InterruptRow, "onExpire" | "expiredAt" | "answeredBy" | "about" | "tool">;

/** What few questions have, as text; nothing where a question has none of it. */
export function moreOfQuestion({ onExpire, expiredAt, answeredBy, about, tool }: MoreOfQuestion): string | null {
  const text = JSON.stringify({ onExpire, expiredAt, answeredBy, about, tool });
  return text === "{}" ? null : text;
}

/** An open question with what waits for it. */
export function questionRow(columns: QuestionColumns): QuestionRow {
  const { thread, run, graph, place } = columns;
  return { ...interruptRow(columns), thread, run, graph, place };
}

export function timerRow({ thread, branch, id, kind, generation, due, about }: TimerColumns): TimerRow {
  return { thread, branch, id, kind, generation, dueAt: due, about };
}

export function runRow(columns: RunColumns): RunRow {
  const { id, thread, branch, graph, version, status, attempt, started, ended, error, name, metadata, input, more } =
    columns;
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
    ...(input === null ? {} : { input }),
    ...(more === null ? {} : moreOf(more)),
  };
}

type MoreOfRun = Pick<RunRow, "reason" | "queuedAt" | "stops" | "recovered">;

/** What few runs have, as text; nothing where a run has none of it. */
export function moreText({ reason, queuedAt, stops, recovered }: MoreOfRun): string | null {
  if (reason === undefined && queuedAt === undefined && stops === undefined && recovered === undefined) return null;
  return JSON.stringify({ reason, queuedAt, stops, recovered });
}

function moreOf(text: string): MoreOfRun {
  const { reason, queuedAt, stops, recovered } = JSON.parse(text) as MoreOfRun;
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(queuedAt === undefined ? {} : { queuedAt }),
    ...(stops === undefined ? {} : { stops }),
    ...(recovered === undefined ? {} : { recovered }),
  };
}

export function threadRow({ id, graph, version, created, updated, head, status }: ThreadColumns): ThreadRow {
  return { id, graph, version, createdAt: created, updatedAt: updated, headBranch: head, status: status ?? undefined };
}

/** The hash of a checkpoint: its content, its deltas, and through its parent's hash all that led to it. */
export function checkpointHash(
  row: CheckpointRow,
  { graph, version, shape }: WrittenBy,
  deltas: readonly DeltaRow[],
  parentHash: string | undefined,
  seals?: Pick<Seals, "hash">,
): string {
  const { id, branch, step, parent, source, nodes, run, at, durationMs, seq, bytes, control } = row;
  const sorted = deltas.length < 2 ? deltas : deltas.toSorted((one, other) => (one.channel < other.channel ? -1 : 1));
  const parts = sorted.map(({ channel, kind, base, text }) => [channel, kind, base, text.length]);
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
  return seals === undefined ? hash("sha256", text, "base64") : seals.hash(text);
}

/** The sum of one delta and its place, by which a state is checked without the rest of each checkpoint. */
export function deltaSum(line: string, checkpoint: number, { channel, kind, base, text }: DeltaRow): number {
  return crc32(`${line} ${checkpoint} ${channel} ${kind} ${base}${text}`);
}

/** The sum of an effect, over all that the row holds. */
export function effectSum(row: EffectRow): number {
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
  ]);
  return crc32(head + (outcome ?? ""));
}

/** The sum of a question and its answer. */
export function interruptSum(interrupt: InterruptRow): number {
  const { id, step, task, node, key, payload, schema, raisedAt, answer, answeredAt, expiresAt } = interrupt;
  const more = moreOfQuestion(interrupt);
  return crc32(
    JSON.stringify([id, step, task, node, key, payload, schema, raisedAt, answer, answeredAt, expiresAt, more]),
  );
}

/** The sum of a timer. */
export function factSum({ seq, branch, at, text }: EventRow): number {
  return crc32(JSON.stringify([seq, branch, at, text]));
}

export function letterSum({ branch, id, kind, at, messages, taken }: LetterRow): number {
  return crc32(JSON.stringify([branch, id, kind, at, messages, taken ?? ""]));
}

export function timerSum({ id, kind, generation, dueAt, about }: Omit<TimerRow, "thread" | "branch">): number {
  return crc32(JSON.stringify([id, kind, generation, dueAt, about]));
}
