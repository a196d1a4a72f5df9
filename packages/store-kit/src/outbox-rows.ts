/** Columns of outbox rows. The message and the last error are encrypted. */
import { crc32 } from "node:zlib";
import type { OutboxRow } from "@statewright/core/store";
import { decryptPayload, type Payload, type ThreadCipher, type ValueContext } from "./cipher.ts";
import { createCorruptError } from "./corrupt-error.ts";

/** Columns of an outbox row, with the id of its thread. */
export interface OutboxColumns {
  readonly position: number;
  readonly thread: string;
  readonly branch: string;
  readonly consumer: string;
  readonly id: string;
  readonly topic: string;
  readonly at: number;
  readonly interrupt: string | null;
  readonly state: OutboxRow["state"];
  readonly attempts: number;
  readonly due: number;
  readonly finished: number | null;
  readonly error: Payload | null;
  readonly payload: Payload;
  readonly sum: number;
}

/** Columns of an outbox row that depend on encryption. */
export interface OutboxPayload {
  readonly sum: number;
  readonly error: Payload | null;
  readonly payload: Payload;
}

type PlainRow = Omit<OutboxRow, "position">;

/** Returns the columns of an outbox row that depend on encryption. */
export function toOutboxPayload(cipher: ThreadCipher | undefined, row: PlainRow): OutboxPayload {
  const { payload, lastError } = row;
  if (cipher === undefined) return { sum: computeOutboxSum(row), error: lastError ?? null, payload };
  return {
    sum: computeOutboxSum(omitEncrypted(row)),
    error: lastError === undefined ? null : cipher.encrypt(lastError, toContext("error", row)),
    payload: cipher.encrypt(payload, toContext("payload", row)),
  };
}

/** Reads and verifies an outbox row. Throws `store_corrupt` on a checksum mismatch, `missing_key`. */
export function readOutboxRow(cipher: ThreadCipher | undefined, columns: OutboxColumns): OutboxRow {
  const { position, thread, branch, consumer, id, topic, at, interrupt, state, attempts, due, finished } = columns;
  const decrypt = (column: "error" | "payload", value: Payload): string =>
    decryptPayload(cipher, thread, value, () => toContext(column, columns));
  const row: OutboxRow = {
    ...{ position, thread, branch, consumer, id, topic, at, state, attempts, dueAt: due },
    payload: decrypt("payload", columns.payload),
    ...(interrupt === null ? {} : { interrupt }),
    ...(columns.error === null ? {} : { lastError: decrypt("error", columns.error) }),
    ...(finished === null ? {} : { finishedAt: finished }),
  };
  if (computeOutboxSum(cipher === undefined ? row : omitEncrypted(row)) === columns.sum) return row;
  throw createCorruptError(`the outbox message "${id}" does not match its checksum`, { thread });
}

function omitEncrypted({ lastError: _, ...row }: PlainRow): PlainRow {
  return { ...row, payload: "" };
}

function toContext(
  column: string,
  { branch, consumer, id, topic, at }: Pick<OutboxRow, "branch" | "consumer" | "id" | "topic" | "at">,
): ValueContext {
  return [`outbox.${column}`, branch, consumer, id, topic, at];
}

function computeOutboxSum(row: PlainRow): number {
  const { branch, consumer, id, topic, at, interrupt, state, attempts, dueAt, finishedAt, lastError, payload } = row;
  return crc32(
    JSON.stringify([
      ...[branch, consumer, id, topic, at, interrupt ?? null, state, attempts, dueAt, finishedAt ?? null],
      ...[lastError ?? null, payload],
    ]),
  );
}
