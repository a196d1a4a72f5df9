/** Sources of the encryptable rows of a namespace. */

import {
  createRowSource,
  type DeltaColumns,
  decryptPayload,
  type EffectColumns,
  type FoldedColumns,
  type InboxMessageColumns,
  type InterruptColumns,
  type Payload,
  type RequestColumns,
  type RowSource,
  readDelta,
  readEffect,
  readFoldedEffects,
  readInboxMessage,
  readInterrupt,
  readRequest,
  toControlContext,
  toDeltaColumns,
  toEffectPayload,
  toInboxMessageColumns,
  toInterruptPayload,
  toInterruptRow,
  toRequestColumns,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";

export type Keyed<Columns> = Columns & { readonly key: number };

function prepareStatements(db: Database) {
  return {
    channelsOfNamespace: db.prepare<[number], { key: number; name: string }>(
      "SELECT key, name FROM channels WHERE branch = ?",
    ),
    controls: db.prepare<[number, number, number], FoldedColumns & { key: number; id: number; control: Payload }>(
      "SELECT key, key & 0xffffff AS id, control, effects, effects_sum FROM checkpoints WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
    ),
    putControl: db.prepare<[Payload, number]>("UPDATE checkpoints SET control = ? WHERE key = ?"),
    deltas: db.prepare<[number, number, number], Keyed<Omit<DeltaColumns, "channel">> & { id: number }>(
      "SELECT key, key & 0xffffff AS id, kind, base, count, sum, text FROM deltas WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
    ),
    putDelta: db.prepare<[number, Payload, number]>("UPDATE deltas SET sum = ?, text = ? WHERE key = ?"),
    effects: db.prepare<[number, number, number], Keyed<EffectColumns>>(
      "SELECT key, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, processes, attempt_log, usage, outcome" +
        " FROM effects WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    putEffect: db.prepare<[number | null, Payload | null, Payload | null, number]>(
      "UPDATE effects SET sum = ?, args = ?, outcome = ? WHERE key = ?",
    ),
    interrupts: db.prepare<[number, number, number], Keyed<Omit<InterruptColumns, "branch">>>(
      "SELECT key, id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
        " WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    putInterrupt: db.prepare<[number, Payload, Payload | null, Payload | null, number]>(
      "UPDATE interrupts SET sum = ?, payload = ?, answer = ?, more = ? WHERE key = ?",
    ),
    inboxMessages: db.prepare<[number, number, number], Keyed<Omit<InboxMessageColumns, "branch">>>(
      "SELECT key, id, kind, at, run, sum, messages FROM inbox_messages WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
    ),
    putInboxMessage: db.prepare<[number, Payload, number]>(
      "UPDATE inbox_messages SET sum = ?, messages = ? WHERE key = ?",
    ),
    requests: db.prepare<[number, number, number], Keyed<Omit<RequestColumns, "branch">>>(
      "SELECT q.key, q.id, r.id AS run, q.kind, q.name, q.at, q.handled, q.sum, q.more FROM requests q CROSS JOIN runs r ON r.key = q.run" +
        " WHERE q.branch = ? AND q.key > ? ORDER BY q.key LIMIT ?",
    ),
    putRequest: db.prepare<[number, Payload, number]>("UPDATE requests SET sum = ?, more = ? WHERE key = ?"),
  };
}

/**
 * Lists the sources of the encryptable rows of a namespace: controls, effects, interrupts, inbox messages, requests
 * and deltas.
 */
export class NamespaceSources {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  list(thread: string, namespace: { readonly key: number; readonly name: string }): readonly RowSource[] {
    const { key, name } = namespace;
    return [
      createRowSource(
        (after, limit) =>
          this.#sql.controls.all(Math.max(after, toRowKey(key, 0)), toRowKey(key, maxCheckpointId), limit),
        ({ control }) => [control],
        (row, cipher) => {
          const context = toControlContext(name, row.id);
          readFoldedEffects({ thread, namespace: name, checkpoint: row.id }, row);
          const control = decryptPayload(cipher, thread, row.control, () => context);
          return (newest) => this.#sql.putControl.run(newest.encrypt(control, context), row.key);
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.effects.all(key, after, limit),
        ({ args, outcome }) => [args, outcome],
        (row, cipher) => {
          const effect = readEffect(cipher, { thread, namespace: name }, row);
          return (newest) => {
            const { sum, args, outcome } = toEffectPayload(newest, name, effect);
            this.#sql.putEffect.run(row.sum === null ? null : sum, args, outcome, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.interrupts.all(key, after, limit),
        ({ payload, answer, more }) => [payload, answer, more],
        (row, cipher) => {
          const interrupt = toInterruptRow(readInterrupt(cipher, thread, { ...row, branch: name }));
          return (newest) => {
            const { sum, payload, answer, more } = toInterruptPayload(newest, name, interrupt);
            this.#sql.putInterrupt.run(sum, payload, answer, more, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.inboxMessages.all(key, after, limit),
        ({ messages }) => [messages],
        (row, cipher) => {
          const message = readInboxMessage(cipher, thread, { ...row, branch: name });
          return (newest) => {
            const { sum, messages } = toInboxMessageColumns(newest, message);
            this.#sql.putInboxMessage.run(sum, messages, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.requests.all(key, after, limit),
        ({ more }) => [more],
        (row, cipher) => {
          const request = readRequest(cipher, thread, { ...row, branch: name });
          return (newest) => {
            const { sum, more } = toRequestColumns(newest, request);
            this.#sql.putRequest.run(sum, more, row.key);
          };
        },
      ),
      ...this.#sql.channelsOfNamespace.all(key).map((channel) => this.#createChannelSource(thread, name, channel)),
    ];
  }

  #createChannelSource(
    thread: string,
    namespace: string,
    { key, name: channel }: { readonly key: number; readonly name: string },
  ): RowSource {
    return createRowSource(
      (after, limit) => this.#sql.deltas.all(Math.max(after, toRowKey(key, 0)), toRowKey(key, maxCheckpointId), limit),
      ({ text }) => [text],
      (row, cipher) => {
        const at = { thread, namespace, checkpoint: row.id };
        const delta = readDelta(cipher, at, { ...row, channel });
        return (newest) => {
          const { sum, text } = toDeltaColumns(newest, at, delta);
          this.#sql.putDelta.run(sum, text, row.key);
        };
      },
    );
  }
}
