/** Rows of requests. */
import type { RunRequest } from "@statewright/core/store";
import type { Payload } from "@statewright/store-kit";
import { type RequestColumns, readRequest, type ThreadCipher, toRequestColumns } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

/** Thread of a request, with the cipher of its values. */
export interface RequestThread {
  readonly id: string;
  readonly key: number;
  readonly cipher: ThreadCipher | undefined;
}

interface KeyedColumns extends RequestColumns {
  readonly key: number;
}

const columns =
  "SELECT q.key, q.id, b.name AS branch, r.id AS run, q.kind, q.name, q.at, q.handled, q.sum, q.more FROM threads t" +
  " CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key AND instr(b.name, '/') = 0" +
  " CROSS JOIN requests q ON q.branch = b.key CROSS JOIN runs r ON r.key = q.run WHERE t.id = ?";

function prepareStatements(db: Database) {
  return {
    add: db.prepare<[number, number, string, string, string | null, number, number, number, Payload]>(
      "INSERT INTO requests (branch, run, id, kind, name, at, handled, sum, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    all: db.prepare<[string], KeyedColumns>(columns + " ORDER BY q.key"),
    open: db.prepare<[string], KeyedColumns>(columns + " AND q.handled = 0 ORDER BY q.key"),
    byName: db.prepare<[string, string], KeyedColumns>(columns + " AND q.name = ?"),
    setHandled: db.prepare<[number, number]>("UPDATE requests SET handled = 1, sum = ? WHERE key = ?"),
    drop: db.prepare<[number]>("DELETE FROM requests WHERE key = ?"),
  };
}

/** Reads and writes the rows of requests; call inside a transaction. */
export class RequestRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Inserts a request of a run; `branch` and `run` are row keys. */
  insert(cipher: ThreadCipher | undefined, request: RunRequest, keys: { branch: number; run: number }): void {
    const { id, kind, key, at, handled } = request;
    const { sum, more } = toRequestColumns(cipher, request);
    this.#sql.add.run(keys.branch, keys.run, id, kind, key ?? null, at, handled === true ? 1 : 0, sum, more);
  }

  /** Lists the requests of a thread, oldest first: those that are not handled, or all. */
  list({ id, cipher }: Omit<RequestThread, "key">, which: "open" | "all" = "open"): readonly RunRequest[] {
    return this.#sql[which].all(id).map((row) => readRequest(cipher, id, row));
  }

  /** Finds the request of a thread by its idempotency key. */
  findByKey({ id, cipher }: Omit<RequestThread, "key">, key: string): RunRequest | undefined {
    const found = this.#sql.byName.get(id, key);
    return found === undefined ? undefined : readRequest(cipher, id, found);
  }

  /** Handles the open requests that `isHandled` selects; returns their number. */
  handle({ id, cipher }: Omit<RequestThread, "key">, isHandled: (request: RunRequest) => boolean): number {
    let count = 0;
    for (const row of this.#sql.open.all(id)) {
      const request = readRequest(cipher, id, row);
      if (!isHandled(request)) continue;
      count += 1;
      if (request.key === undefined) this.#sql.drop.run(row.key);
      else this.#sql.setHandled.run(toRequestColumns(cipher, { ...request, handled: true }).sum, row.key);
    }
    return count;
  }
}
