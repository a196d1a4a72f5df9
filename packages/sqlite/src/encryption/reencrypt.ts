/** Sources of encryptable rows of a thread, page by page, for verification and re-encryption. */

import {
  createRowSource,
  type DetailColumns,
  type EventColumns,
  type OutboxColumns,
  type Payload,
  type RowSource,
  type RunColumns,
  readDetails,
  readEvent,
  readOutboxRow,
  readRun,
  toDetailPayload,
  toEventColumns,
  toOutboxPayload,
  toRunPayload,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { outboxColumns } from "../outbox/outbox-reader.ts";
import type { Reader } from "../read/reader.ts";
import { putRunSum, runIsIntact } from "../rows/row-sums.ts";
import { detailColumns } from "../rows/thread-details.ts";
import type { Artifacts } from "../write/artifacts.ts";
import { type Keyed, NamespaceSources } from "./namespace-sources.ts";

function prepareStatements(db: Database) {
  return {
    runs: db.prepare<[string, number, number], Keyed<RunColumns>>(
      "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.status, r.attempt, r.started, r.ended, r.error," +
        " r.name, r.metadata, r.input, r.more, r.tenant, r.user, " +
        runIsIntact +
        " FROM threads t CROSS JOIN runs r ON r.thread = t.key JOIN branches b ON b.key = r.branch" +
        " WHERE t.id = ? AND r.key > ? ORDER BY r.key LIMIT ?",
    ),
    putRun: db.prepare<[Payload | null, Payload | null, Payload | null, number]>(
      "UPDATE runs SET error = ?, input = ?, more = ? WHERE key = ?",
    ),
    sumRun: db.prepare<[number]>(putRunSum),
    events: db.prepare<[string, number, number], Keyed<EventColumns> & { owner: number }>(
      "SELECT e.thread AS owner, e.seq AS key, e.seq, b.name AS branch, e.at, e.sum, e.text FROM threads t JOIN events e ON e.thread = t.key" +
        " JOIN branches b ON b.key = e.branch WHERE t.id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
    ),
    putEvent: db.prepare<[number, Payload, number, number]>(
      "UPDATE events SET sum = ?, text = ? WHERE thread = ? AND seq = ?",
    ),
    details: db.prepare<[string, number, number], Keyed<DetailColumns>>(
      "SELECT t.key, t.id, " +
        detailColumns +
        " FROM threads t CROSS JOIN thread_details d ON d.thread = t.key" +
        " WHERE t.id = ? AND t.key > ? LIMIT ?",
    ),
    putTitle: db.prepare<[Payload | null, number, number]>(
      "UPDATE thread_details SET title = ?, sum = ? WHERE thread = ?",
    ),
    outbox: db.prepare<[string, number, number], Keyed<OutboxColumns>>(
      "SELECT o.key, " +
        outboxColumns +
        " FROM threads t CROSS JOIN outbox o ON o.thread = t.key" +
        " WHERE t.id = ? AND o.key > ? ORDER BY o.key LIMIT ?",
    ),
    putOutbox: db.prepare<[number, Payload | null, Payload, number]>(
      "UPDATE outbox SET sum = ?, error = ?, payload = ? WHERE key = ?",
    ),
    putSecret: db.prepare<[Uint8Array, string]>("UPDATE threads SET secret = ? WHERE id = ?"),
  };
}

/** Lists the encryptable rows of threads. */
export class Reencryption {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #reader: Reader;
  readonly #artifacts: Artifacts;
  readonly #namespaces: NamespaceSources;

  constructor(db: Database, { reader, artifacts }: { readonly reader: Reader; readonly artifacts: Artifacts }) {
    this.#sql = prepareStatements(db);
    this.#reader = reader;
    this.#artifacts = artifacts;
    this.#namespaces = new NamespaceSources(db);
  }

  /** Lists the sources of all encryptable rows of a thread, for its current namespaces and channels. */
  listRowSources(thread: string): readonly RowSource[] {
    return [
      ...this.#reader.namespaces.list(thread).flatMap((namespace) => this.#namespaces.list(thread, namespace)),
      ...this.#listThreadSources(thread),
      ...this.#artifacts.listRowSources(thread),
    ];
  }

  /** Stores the re-encrypted secret of a thread. */
  putSecret(thread: string, secret: Uint8Array): void {
    this.#sql.putSecret.run(secret, thread);
  }

  #listThreadSources(thread: string): readonly RowSource[] {
    return [
      createRowSource(
        (after, limit) => this.#sql.details.all(thread, after, limit),
        ({ title }) => [title],
        (row, cipher) => {
          const details = readDetails(cipher, row);
          return (newest) => {
            const { title, sum } = toDetailPayload(newest, thread, details);
            this.#sql.putTitle.run(title, sum, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.runs.all(thread, after, limit),
        ({ error, input, more }) => [error, input, more],
        (row, cipher) => {
          const run = readRun(cipher, row);
          return (newest) => {
            const { error, input, more } = toRunPayload(newest, run);
            this.#sql.putRun.run(error, input, more, row.key);
            this.#sql.sumRun.run(row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.outbox.all(thread, after, limit),
        ({ error, payload }) => [error, payload],
        (row, cipher) => {
          const message = readOutboxRow(cipher, row);
          return (newest) => {
            const { sum, error, payload } = toOutboxPayload(newest, message);
            this.#sql.putOutbox.run(sum, error, payload, row.key);
          };
        },
      ),
      createRowSource(
        (after, limit) => this.#sql.events.all(thread, after, limit),
        ({ text }) => [text],
        (row, cipher) => {
          const event = readEvent(cipher, thread, row);
          return (newest) => {
            const { sum, text } = toEventColumns(newest, event);
            this.#sql.putEvent.run(sum, text, row.owner, row.seq);
          };
        },
      ),
    ];
  }
}
