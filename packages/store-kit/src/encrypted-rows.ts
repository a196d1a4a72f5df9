/**
 * Rows with plain or encrypted columns. The checksum of an encrypted row covers its plain columns only: encrypted
 * values are authenticated, and a checksum would leak information about them.
 */
import type { DeltaRow, EffectRow, EventRow, InboxMessage, InterruptRow, RunRow } from "@statewright/core/store";
import { decryptPayload, type Payload, type ThreadCipher, type ValueContext } from "./cipher.ts";
import { createCorruptError } from "./corrupt-error.ts";
import {
  computeDeltaSum,
  computeEffectSum,
  computeEventSum,
  computeInboxMessageSum,
  computeInterruptSum,
  type DeltaColumns,
  type EffectColumns,
  type EventColumns,
  type InboxMessageColumns,
  type InterruptColumns,
  type RunColumns,
  toDeltaRow,
  toEffectRow,
  toInterruptExtrasText,
  toInterruptRow,
  toRunExtrasText,
  toRunRow,
} from "./rows.ts";

/** Location of a delta. */
export interface DeltaLocation {
  readonly thread: string;
  readonly namespace: string;
  readonly checkpoint: number;
}

/** Returns the columns of a delta that depend on encryption. */
export function toDeltaColumns(
  cipher: ThreadCipher | undefined,
  location: DeltaLocation,
  row: DeltaRow,
): { readonly sum: number; readonly text: Payload } {
  if (cipher === undefined)
    return { sum: computeDeltaSum(location.namespace, location.checkpoint, row), text: row.text };
  return {
    sum: computeDeltaSum(location.namespace, location.checkpoint, { ...row, text: "" }),
    text: cipher.encrypt(row.text, toDeltaContext(location, row)),
  };
}

/** Reads and verifies a delta. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readDelta(cipher: ThreadCipher | undefined, location: DeltaLocation, columns: DeltaColumns): DeltaRow {
  const stored = toDeltaRow(columns);
  const { thread, namespace, checkpoint } = location;
  const text = decryptPayload(cipher, thread, columns.text, () => toDeltaContext(location, stored));
  const [row, plain] =
    cipher === undefined
      ? [stored, stored]
      : [
          { ...stored, text },
          { ...stored, text: "" },
        ];
  if (computeDeltaSum(namespace, checkpoint, plain) === columns.sum) return row;
  throw createCorruptError(`a change of checkpoint ${checkpoint} does not match its checksum`, { thread }, undefined, {
    checkpoint,
  });
}

function toDeltaContext(
  { namespace, checkpoint }: DeltaLocation,
  { channel, kind, base }: Omit<DeltaRow, "text">,
): ValueContext {
  return ["deltas.text", namespace, checkpoint, channel, kind, base];
}

/** Columns of an effect that depend on encryption. */
export interface EffectPayload {
  readonly sum: number;
  readonly args: Payload | null;
  readonly outcome: Payload | null;
}

/** Returns the columns of an effect that depend on encryption. */
export function toEffectPayload(cipher: ThreadCipher | undefined, namespace: string, row: EffectRow): EffectPayload {
  const { args, outcome } = row;
  if (cipher === undefined) return { sum: computeEffectSum(row), args: args ?? null, outcome: outcome ?? null };
  return {
    sum: computeEffectSum({ ...row, args: undefined, outcome: undefined }),
    args: args === undefined ? null : cipher.encrypt(args, toEffectContext("args", namespace, row)),
    outcome: outcome === undefined ? null : cipher.encrypt(outcome, toEffectContext("outcome", namespace, row)),
  };
}

/** Reads and verifies an effect. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readEffect(
  cipher: ThreadCipher | undefined,
  { thread, namespace }: Omit<DeltaLocation, "checkpoint">,
  columns: EffectColumns,
): EffectRow {
  const stored = toEffectRow(columns);
  const { args, outcome, ...plain } = stored;
  const row =
    cipher === undefined
      ? stored
      : {
          ...stored,
          ...(args === undefined ? {} : { args: cipher.decrypt(args, toEffectContext("args", namespace, plain)) }),
          ...(outcome === undefined
            ? {}
            : { outcome: cipher.decrypt(outcome, toEffectContext("outcome", namespace, plain)) }),
        };
  if (computeEffectSum(cipher === undefined ? row : plain) === columns.sum) return row;
  const { step, task, key } = row;
  throw createCorruptError(`the effect "${key}" of step ${step} does not match its checksum`, {
    thread,
    branch: namespace,
    task,
  });
}

function toEffectContext(column: string, namespace: string, row: Omit<EffectRow, "args" | "outcome">): ValueContext {
  const { step, task, key, kind, name, effect, state, attempts, idempotencyKey } = row;
  return [`effects.${column}`, namespace, step, task, key, kind, name, effect, state, attempts, idempotencyKey];
}

/** Columns of an interrupt that depend on encryption. */
export interface InterruptPayload {
  readonly sum: number;
  readonly payload: Payload;
  readonly answer: Payload | null;
  readonly more: Payload | null;
}

/** Returns the columns of an interrupt that depend on encryption. */
export function toInterruptPayload(
  cipher: ThreadCipher | undefined,
  namespace: string,
  row: InterruptRow,
): InterruptPayload {
  const { payload, answer } = row;
  const more = toInterruptExtrasText(row);
  if (cipher === undefined) return { sum: computeInterruptSum(row), payload, answer: answer ?? null, more };
  return {
    sum: computeInterruptSum(omitEncrypted(row)),
    payload: cipher.encrypt(payload, toInterruptContext("payload", namespace, row)),
    answer: answer === undefined ? null : cipher.encrypt(answer, toInterruptContext("answer", namespace, row)),
    more: more === null ? null : cipher.encrypt(more, toInterruptContext("more", namespace, row)),
  };
}

/** Returns the verified columns of an interrupt, decrypted. Throws `store_corrupt`, `missing_key`. */
export function readInterrupt<Columns extends InterruptColumns>(
  cipher: ThreadCipher | undefined,
  thread: string,
  columns: Columns,
): Columns {
  const { branch, id, step, task, node, name: key, payload, answer, more } = columns;
  const identity = { id, step, task, node, key };
  const decrypted =
    cipher === undefined
      ? columns
      : {
          ...columns,
          payload: cipher.decrypt(payload, toInterruptContext("payload", branch, identity)),
          answer: answer === null ? null : cipher.decrypt(answer, toInterruptContext("answer", branch, identity)),
          more: more === null ? null : cipher.decrypt(more, toInterruptContext("more", branch, identity)),
        };
  const row = toInterruptRow(decrypted);
  if (computeInterruptSum(cipher === undefined ? row : omitEncrypted(row)) === columns.sum) return decrypted;
  throw createCorruptError(`the interrupt "${id}" does not match its checksum`, { thread, branch, task });
}

/** Removes the encrypted properties of an interrupt. */
function omitEncrypted({
  answer: _a,
  onExpire: _o,
  expiredAt: _e,
  answeredBy: _b,
  about: _c,
  answerKey: _k,
  answeredRun: _r,
  ...row
}: InterruptRow): InterruptRow {
  return { ...row, payload: "" };
}

function toInterruptContext(
  column: string,
  namespace: string,
  { id, step, task, node, key }: Pick<InterruptRow, "id" | "step" | "task" | "node" | "key">,
): ValueContext {
  return [`interrupts.${column}`, namespace, id, step, task, node, key];
}

/** Columns of a run that depend on encryption. */
export interface RunPayload {
  readonly error: Payload | null;
  readonly input: Payload | null;
  readonly more: Payload | null;
}

/** Returns the columns of a run that depend on encryption. */
export function toRunPayload(cipher: ThreadCipher | undefined, row: RunRow): RunPayload {
  const { id, error, input } = row;
  const plain = {
    error: error === undefined ? null : JSON.stringify(error),
    input: input ?? null,
    more: toRunExtrasText(row),
  };
  if (cipher === undefined) return plain;
  const encrypt = (column: keyof RunPayload): Payload | null => {
    const text = plain[column];
    return text === null ? null : cipher.encrypt(text, [`runs.${column}`, id]);
  };
  return { error: encrypt("error"), input: encrypt("input"), more: encrypt("more") };
}

/** Reads and verifies a run. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readRun(cipher: ThreadCipher | undefined, columns: RunColumns): RunRow {
  if (columns.intact !== 1)
    throw createCorruptError(`the run "${columns.id}" does not match its checksum`, {
      thread: columns.thread,
      branch: columns.branch,
    });
  if (cipher === undefined) return toRunRow(columns);
  const decrypt = (column: keyof RunPayload): string | null => {
    const value = columns[column];
    return value === null ? null : cipher.decrypt(value, [`runs.${column}`, columns.id]);
  };
  return toRunRow({ ...columns, error: decrypt("error"), input: decrypt("input"), more: decrypt("more") });
}

/** Returns the columns of a durable event that depend on encryption. */
export function toEventColumns(
  cipher: ThreadCipher | undefined,
  row: EventRow,
): { readonly sum: number; readonly text: Payload } {
  if (cipher === undefined) return { sum: computeEventSum(row), text: row.text };
  return {
    sum: computeEventSum({ ...row, text: "" }),
    text: cipher.encrypt(row.text, ["events.text", row.seq, row.branch, row.at]),
  };
}

/** Reads and verifies a durable event. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readEvent(cipher: ThreadCipher | undefined, thread: string, columns: EventColumns): EventRow {
  const { seq, branch, at, sum } = columns;
  const text = decryptPayload(cipher, thread, columns.text, () => ["events.text", seq, branch, at]);
  const row = { seq, branch, at, text };
  if (computeEventSum(cipher === undefined ? row : { ...row, text: "" }) === sum) return row;
  throw createCorruptError(`the event ${seq} does not match its checksum`, { thread, branch });
}

/** Returns the columns of an inbox message that depend on encryption. */
export function toInboxMessageColumns(
  cipher: ThreadCipher | undefined,
  row: InboxMessage,
): { readonly sum: number; readonly messages: Payload } {
  if (cipher === undefined) return { sum: computeInboxMessageSum(row), messages: row.messages };
  return {
    sum: computeInboxMessageSum({ ...row, messages: "" }),
    messages: cipher.encrypt(row.messages, toInboxMessageContext(row)),
  };
}

/** Reads and verifies an inbox message. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readInboxMessage(
  cipher: ThreadCipher | undefined,
  thread: string,
  columns: InboxMessageColumns,
): InboxMessage {
  const { id, branch, kind, at, run, sum } = columns;
  const messages = decryptPayload(cipher, thread, columns.messages, () => toInboxMessageContext(columns));
  const row = { id, branch, kind, messages, at, ...(run === "" ? {} : { deliveredTo: run }) };
  if (computeInboxMessageSum(cipher === undefined ? row : { ...row, messages: "" }) === sum) return row;
  throw createCorruptError(`the inbox message "${id}" does not match its checksum`, { thread, branch });
}

function toInboxMessageContext({
  branch,
  id,
  kind,
  at,
}: Pick<InboxMessage, "branch" | "id" | "kind" | "at">): ValueContext {
  return ["inbox_messages.messages", branch, id, kind, at];
}

/** Returns the context of the control state of a checkpoint. */
export function toControlContext(namespace: string, checkpoint: number): ValueContext {
  return ["checkpoints.control", namespace, checkpoint];
}
