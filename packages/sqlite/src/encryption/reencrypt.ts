/** Sources of encryptable rows of a thread, page by page, for verification and re-encryption. */
import type { Database } from "better-sqlite3";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { Reader } from "../read/reader.ts";
import { type FoldedColumns, readFoldedEffects } from "../rows/folded-effects.ts";
import { putRunSum, runIsIntact } from "../rows/row-sums.ts";
import {
  type DeltaColumns,
  type EffectColumns,
  type EventColumns,
  type InboxMessageColumns,
  type InterruptColumns,
  type RunColumns,
  toInterruptRow,
} from "../rows/rows.ts";
import type { Artifacts } from "../write/artifacts.ts";
import { decryptPayload, type Payload, type ThreadCipher } from "./cipher.ts";
import {
  readDelta,
  readEffect,
  readEvent,
  readInboxMessage,
  readInterrupt,
  readRun,
  toControlContext,
  toDeltaColumns,
  toEffectPayload,
  toEventColumns,
  toInboxMessageColumns,
  toInterruptPayload,
  toRunPayload,
} from "./encrypted-rows.ts";

/** Stored row with columns that can be encrypted. */
export interface EncryptableRow {
  /** Values of the payload columns. */
  readonly payload: readonly (Payload | null)[];
  /**
   * Verifies and decrypts the row; returns a function that writes the row with another cipher. Throws
   * `store_corrupt`, `missing_key`.
   */
  read(cipher: ThreadCipher | undefined): (newest: ThreadCipher) => void;
}

/** Rows of one kind of a thread, page by page. */
export interface RowSource {
  /** Returns up to `limit` rows after a key; `last` is the key for the next page, undefined on the last page. */
  readPage(
    after: number,
    limit: number,
  ): { readonly rows: readonly EncryptableRow[]; readonly last: number | undefined };
}

export interface Reencryption {
  /** Lists the sources of all encryptable rows of a thread, for its current namespaces and channels. */
  listRowSources(thread: string): readonly RowSource[];
  /** Stores the re-encrypted secret of a thread. */
  putSecret(thread: string, encrypted: Uint8Array): void;
}

type Keyed<Columns> = Columns & { readonly key: number };

export function createReencryption(
  db: Database,
  { reader, artifacts }: { readonly reader: Reader; readonly artifacts: Artifacts },
): Reencryption {
  const channelsOfNamespace = db.prepare<[number], { key: number; name: string }>(
    "SELECT key, name FROM channels WHERE branch = ?",
  );
  const controls = db.prepare<[number, number, number], FoldedColumns & { key: number; id: number; control: Payload }>(
    "SELECT key, key & 0xffffff AS id, control, effects, effects_sum FROM checkpoints WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const putControl = db.prepare<[Payload, number]>("UPDATE checkpoints SET control = ? WHERE key = ?");
  const deltas = db.prepare<[number, number, number], Keyed<Omit<DeltaColumns, "channel">> & { id: number }>(
    "SELECT key, key & 0xffffff AS id, kind, base, sum, text FROM deltas WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const putDelta = db.prepare<[number, Payload, number]>("UPDATE deltas SET sum = ?, text = ? WHERE key = ?");
  const effects = db.prepare<[number, number, number], Keyed<EffectColumns>>(
    "SELECT key, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, outcome" +
      " FROM effects WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putEffect = db.prepare<[number | null, Payload | null, Payload | null, number]>(
    "UPDATE effects SET sum = ?, args = ?, outcome = ? WHERE key = ?",
  );
  const interrupts = db.prepare<[number, number, number], Keyed<Omit<InterruptColumns, "branch">>>(
    "SELECT key, id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
      " WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putInterrupt = db.prepare<[number, Payload, Payload | null, Payload | null, number]>(
    "UPDATE interrupts SET sum = ?, payload = ?, answer = ?, more = ? WHERE key = ?",
  );
  const inboxMessages = db.prepare<[number, number, number], Keyed<Omit<InboxMessageColumns, "branch">>>(
    "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putInboxMessage = db.prepare<[number, Payload, number]>(
    "UPDATE inbox_messages SET sum = ?, messages = ? WHERE key = ?",
  );
  const runs = db.prepare<[string, number, number], Keyed<RunColumns>>(
    "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.status, r.attempt, r.started, r.ended, r.error," +
      " r.name, r.metadata, r.input, r.more, " +
      runIsIntact +
      " FROM threads t CROSS JOIN runs r ON r.thread = t.key JOIN branches b ON b.key = r.branch" +
      " WHERE t.id = ? AND r.key > ? ORDER BY r.key LIMIT ?",
  );
  const putRun = db.prepare<[Payload | null, Payload | null, Payload | null, number]>(
    "UPDATE runs SET error = ?, input = ?, more = ? WHERE key = ?",
  );
  const sumRun = db.prepare<[number]>(putRunSum);
  const events = db.prepare<[string, number, number], Keyed<EventColumns> & { owner: number }>(
    "SELECT e.thread AS owner, e.seq AS key, e.seq, b.name AS branch, e.at, e.sum, e.text FROM threads t JOIN events e ON e.thread = t.key" +
      " JOIN branches b ON b.key = e.branch WHERE t.id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
  );
  const putEvent = db.prepare<[number, Payload, number, number]>(
    "UPDATE events SET sum = ?, text = ? WHERE thread = ? AND seq = ?",
  );
  const putSecret = db.prepare<[Uint8Array, string]>("UPDATE threads SET secret = ? WHERE id = ?");

  function createRowSource<Row extends { readonly key: number }>(
    rows: (after: number, limit: number) => readonly Row[],
    payload: (row: Row) => readonly (Payload | null)[],
    read: (row: Row, cipher: ThreadCipher | undefined) => (newest: ThreadCipher) => void,
  ): RowSource {
    return {
      readPage: (after, limit) => {
        const found = rows(after, limit);
        return {
          rows: found.map((row) => ({ payload: payload(row), read: (cipher) => read(row, cipher) })),
          last: found.length < limit ? undefined : found.at(-1)?.key,
        };
      },
    };
  }

  function listNamespaceSources(
    thread: string,
    namespace: { readonly key: number; readonly name: string },
  ): readonly RowSource[] {
    const { key, name } = namespace;
    return [
      createRowSource(
        (after, limit) => controls.all(Math.max(after, toRowKey(key, 0)), toRowKey(key, maxCheckpointId), limit),
        ({ control }) => [control],
        (row, cipher) => {
          const context = toControlContext(name, row.id);
          readFoldedEffects({ thread, namespace: name, checkpoint: row.id }, row);
          const control = decryptPayload(cipher, thread, row.control, () => context);
          return (newest) => putControl.run(newest.encrypt(control, context), row.key);
        },
      ),
      createRowSource(
        (after, limit) => effects.all(key, after, limit),
        ({ args, outcome }) => [args, outcome],
        (row, cipher) => {
          const effect = readEffect(cipher, { thread, namespace: name }, row);
          return (newest) => {
            const { sum, args, outcome } = toEffectPayload(newest, name, effect);
            putEffect.run(row.sum === null ? null : sum, args, outcome, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => interrupts.all(key, after, limit),
        ({ payload, answer, more }) => [payload, answer, more],
        (row, cipher) => {
          const interrupt = toInterruptRow(readInterrupt(cipher, thread, { ...row, branch: name }));
          return (newest) => {
            const { sum, payload, answer, more } = toInterruptPayload(newest, name, interrupt);
            putInterrupt.run(sum, payload, answer, more, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => inboxMessages.all(key, after, limit),
        ({ messages }) => [messages],
        (row, cipher) => {
          const message = readInboxMessage(cipher, thread, { ...row, branch: name });
          return (newest) => {
            const { sum, messages } = toInboxMessageColumns(newest, message);
            putInboxMessage.run(sum, messages, row.key);
          };
        },
      ),
      ...channelsOfNamespace.all(key).map((channel) => createChannelSource(thread, name, channel)),
    ];
  }

  function createChannelSource(
    thread: string,
    namespace: string,
    { key, name: channel }: { readonly key: number; readonly name: string },
  ): RowSource {
    return createRowSource(
      (after, limit) => deltas.all(Math.max(after, toRowKey(key, 0)), toRowKey(key, maxCheckpointId), limit),
      ({ text }) => [text],
      (row, cipher) => {
        const at = { thread, namespace, checkpoint: row.id };
        const delta = readDelta(cipher, at, { ...row, channel });
        return (newest) => {
          const { sum, text } = toDeltaColumns(newest, at, delta);
          putDelta.run(sum, text, row.key);
        };
      },
    );
  }

  function listThreadSources(thread: string): readonly RowSource[] {
    return [
      createRowSource(
        (after, limit) => runs.all(thread, after, limit),
        ({ error, input, more }) => [error, input, more],
        (row, cipher) => {
          const run = readRun(cipher, row);
          return (newest) => {
            const { error, input, more } = toRunPayload(newest, run);
            putRun.run(error, input, more, row.key);
            sumRun.run(row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => events.all(thread, after, limit),
        ({ text }) => [text],
        (row, cipher) => {
          const event = readEvent(cipher, thread, row);
          return (newest) => {
            const { sum, text } = toEventColumns(newest, event);
            putEvent.run(sum, text, row.owner, row.seq);
          };
        },
      ),
    ];
  }

  return {
    listRowSources: (thread) => [
      ...reader.listNamespaces(thread).flatMap((namespace) => listNamespaceSources(thread, namespace)),
      ...listThreadSources(thread),
      ...artifacts.listRowSources(thread),
    ],
    putSecret: (thread, secret) => {
      putSecret.run(secret, thread);
    },
  };
}
