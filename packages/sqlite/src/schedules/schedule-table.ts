/**
 * Schedules of the file. The columns that queries use are plain; the whole row is one value, encrypted in an encrypted
 * file. Statements are prepared on first use.
 */

import { crc32 } from "node:zlib";
import type { StatewrightError } from "@statewright/core";
import type { ScheduleFilter, ScheduleRow } from "@statewright/core/store";
import {
  createCorruptError,
  type ItemCipher,
  listReadableRows,
  type Payload,
  type StoreCipher,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

interface Columns {
  readonly key: number;
  readonly id: string;
  readonly graph: string;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly due: number | null;
  readonly revision: number;
  readonly sum: number;
  readonly body: Payload;
}

const columns = "SELECT s.key, s.id, s.graph, s.tenant, s.user, s.due, s.revision, s.sum, s.body FROM schedules s";

const filter =
  " AND (@graphs IS NULL OR s.graph IN (SELECT value FROM json_each(@graphs)))" +
  " AND (@tenant IS NULL OR s.tenant = @tenant) AND (@user IS NULL OR s.user = @user)";

interface ListParameters {
  readonly graphs: string | null;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly from: number;
  readonly by: number;
  readonly after: string;
  readonly limit: number;
}

function prepareStatements(db: Database) {
  return {
    byId: db.prepare<[string], Columns>(columns + " WHERE s.id = ?"),
    due: db.prepare<[ListParameters], Columns>(
      columns +
        " INDEXED BY schedules_by_due WHERE s.due IS NOT NULL AND s.due > @from AND s.due <= @by" +
        filter +
        " ORDER BY s.due, s.id LIMIT @limit",
    ),
    ofTenant: db.prepare<[ListParameters], Columns>(
      columns +
        " INDEXED BY schedules_by_tenant WHERE s.tenant IS NOT NULL AND s.tenant = @tenant AND s.id > @after" +
        filter +
        " ORDER BY s.id LIMIT @limit",
    ),
    all: db.prepare<[ListParameters], Columns>(
      columns + " WHERE s.id > @after" + filter + " ORDER BY s.id LIMIT @limit",
    ),
    afterKey: db.prepare<[number, number], Columns>(columns + " WHERE s.key > ? ORDER BY s.key LIMIT ?"),
    insert: db.prepare(
      "INSERT INTO schedules (id, graph, tenant, user, due, revision, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    update: db.prepare(
      "UPDATE schedules SET id = ?, graph = ?, tenant = ?, user = ?, due = ?, revision = ?, sum = ?, body = ? WHERE key = ?",
    ),
    drop: db.prepare<[string]>("DELETE FROM schedules WHERE id = ?"),
  };
}

/** Rows of schedules; call inside a transaction. */
export class ScheduleTable {
  readonly #db: Database;
  readonly #storeCipher: StoreCipher | undefined;
  readonly #onFault: (fault: StatewrightError) => void;
  #prepared: ReturnType<typeof prepareStatements> | undefined;

  constructor(
    db: Database,
    storeCipher: StoreCipher | undefined,
    onFault: (fault: StatewrightError) => void = () => undefined,
  ) {
    this.#db = db;
    this.#storeCipher = storeCipher;
    this.#onFault = onFault;
  }

  /** Returns a schedule. Throws `store_corrupt`, `missing_key`. */
  get(id: string): ScheduleRow | undefined {
    const found = this.#sql.byId.get(id);
    return found === undefined ? undefined : readSchedule(found, this.#storeCipher);
  }

  /** Lists schedules by due time, or by id. */
  list({ graphs, tenant, owner, dueBy, dueAfter, after = "", limit = -1 }: ScheduleFilter): readonly ScheduleRow[] {
    const isDueList = dueBy !== undefined || dueAfter !== undefined;
    const { due, ofTenant, all } = this.#sql;
    return listReadableRows({
      parameters: {
        graphs: graphs === undefined ? null : JSON.stringify(graphs),
        tenant: tenant ?? null,
        user: owner ?? null,
        from: dueAfter ?? Number.MIN_SAFE_INTEGER,
        by: dueBy ?? Number.MAX_SAFE_INTEGER,
        ...{ after, limit },
      },
      query: (parameters) => (isDueList ? due : tenant === undefined ? all : ofTenant).all(parameters),
      read: (found) => readSchedule(found, this.#storeCipher),
      onFault: this.#onFault,
    });
  }

  /** Returns the revision of a schedule; 0 for none. */
  getRevision(id: string): number {
    return this.#sql.byId.get(id)?.revision ?? 0;
  }

  /** Writes a schedule over the one with this revision; returns the new row. */
  put(row: Omit<ScheduleRow, "revision">, revision: number): ScheduleRow {
    const written = { ...row, revision: revision + 1 };
    this.#write(written, this.#sql.byId.get(row.id)?.key, this.#storeCipher);
    return written;
  }

  /** Deletes a schedule; returns false if there is none. */
  delete(id: string): boolean {
    return this.#sql.drop.run(id).changes > 0;
  }

  /** Verifies up to `limit` rows after a key; returns the last key, undefined at the end. */
  verify(after: number, limit: number, onFault: (error: unknown) => void): number | undefined {
    const rows = this.#sql.afterKey.all(after, limit);
    for (const row of rows) {
      try {
        readSchedule(row, this.#storeCipher);
      } catch (error) {
        onFault(error);
      }
    }
    return rows.at(-1)?.key;
  }

  /** Re-encrypts up to `limit` rows that do not use the newest key; returns their number and the last visited key. */
  reencrypt(after: number, limit: number): { readonly reencrypted: number; readonly last: number | undefined } {
    const rows = this.#sql.afterKey.all(after, limit);
    const outdated = rows.filter(({ id, body }) => this.#storeCipher?.getScheduleCipher(id).isOutdated(body) === true);
    for (const row of outdated) this.#write(readSchedule(row, this.#storeCipher), row.key, this.#storeCipher);
    return { reencrypted: outdated.length, last: rows.at(-1)?.key };
  }

  /** Encrypts all rows of a plain file. Throws `missing_key`. */
  encryptAll(to: StoreCipher): void {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const rows: readonly Columns[] = this.#sql.afterKey.all(after, 500);
      for (const row of rows) if (typeof row.body === "string") this.#write(readSchedule(row, undefined), row.key, to);
      after = rows.at(-1)?.key;
    }
  }

  get #sql(): ReturnType<typeof prepareStatements> {
    this.#prepared ??= prepareStatements(this.#db);
    return this.#prepared;
  }

  #write(row: ScheduleRow, key: number | undefined, storeCipher: StoreCipher | undefined): void {
    const { id, graph, tenant = null, owner = null, dueAt = null, revision } = row;
    const cipher = storeCipher?.getScheduleCipher(id);
    const text = JSON.stringify(row);
    const body = cipher === undefined ? text : cipher.encrypt(text, toBodyContext(id));
    const values = [id, graph, tenant, owner, dueAt, revision, computeSum(row, text, cipher), body];
    if (key === undefined) this.#sql.insert.run(...values);
    else this.#sql.update.run(...values, key);
  }
}

function toBodyContext(id: string): readonly [string, string] {
  return ["schedules.body", id];
}

/** Reads and verifies a schedule. Throws `store_corrupt`, `missing_key`. */
function readSchedule(found: Columns, storeCipher: StoreCipher | undefined): ScheduleRow {
  const { id, body, sum } = found;
  const cipher = storeCipher?.getScheduleCipher(id);
  if (cipher === undefined && typeof body !== "string")
    throw createCorruptError(`the schedule "${id}" is encrypted, but the store has no encryption`);
  const text = cipher === undefined ? String(body) : cipher.decrypt(body, toBodyContext(id));
  const columnsOfRow = { ...found, owner: found.user, dueAt: found.due };
  if (computeSum(columnsOfRow, text, cipher) !== sum)
    throw createCorruptError(`the schedule "${id}" does not match its checksum`);
  const row = JSON.parse(text) as ScheduleRow;
  if (row.revision === found.revision && row.id === id) return row;
  throw createCorruptError(`the schedule "${id}" does not match its columns`);
}

/** Computes the checksum of a row; an encrypted value is authenticated and excluded. */
function computeSum(
  row: {
    readonly id: string;
    readonly graph: string;
    readonly tenant?: string | null | undefined;
    readonly owner?: string | null | undefined;
    readonly dueAt?: number | null | undefined;
    readonly revision: number;
  },
  text: string,
  cipher: ItemCipher | undefined,
): number {
  const { id, graph, tenant, owner, dueAt, revision } = row;
  const head = JSON.stringify([id, graph, tenant ?? null, owner ?? null, dueAt ?? null, revision]);
  return crc32(cipher === undefined ? text : "", crc32(head));
}
