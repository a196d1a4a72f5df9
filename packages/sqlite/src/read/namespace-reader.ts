/** Reads of namespaces: branches and child namespaces. */

import type { Database } from "../driver/database.ts";

/** Row of a namespace: a branch, or a child namespace, with its origin. */
export interface NamespaceRow {
  readonly key: number;
  readonly name: string;
  readonly parent: number | null;
  readonly origin: number | null;
  readonly run: number | null;
}

/** Row of a branch, with what a claim of the branch needs to know. */
export interface ClaimedBranch extends NamespaceRow {
  /** True when the thread has no other branch. */
  readonly isOnlyBranch: boolean;
  /** True when runs of the branch hold delivered inbox messages. */
  readonly hasTakenMessages: boolean;
}

function prepareStatements(db: Database) {
  return {
    namespaceByName: db.prepare<[string, string | null], NamespaceRow>(
      "SELECT b.key, b.name, b.parent, b.origin, b.run FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = ? AND b.name = coalesce(?, t.head)",
    ),
    claimedByName: db.prepare<[string, string | null], NamespaceRow & { others: number; taken: number }>(
      "SELECT b.key, b.name, b.parent, b.origin, b.run," +
        " EXISTS (SELECT 1 FROM branches o INDEXED BY branches_of_thread WHERE o.thread = t.key AND o.key <> b.key AND instr(o.name, '/') = 0) AS others," +
        " EXISTS (SELECT 1 FROM inbox_messages m WHERE m.branch = b.key AND m.run > '') AS taken" +
        " FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = ? AND b.name = coalesce(?, t.head)",
    ),
    namespaceByKey: db.prepare<[number], NamespaceRow>(
      "SELECT key, name, parent, origin, run FROM branches WHERE key = ?",
    ),
    branchList: db.prepare<[string], { name: string; from: number | null; head: number | null }>(
      'SELECT b.name, b.origin AS "from", (SELECT max(c.key) & 0xffffff FROM checkpoints c WHERE c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff) AS head' +
        " FROM threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key" +
        " WHERE t.id = ? AND instr(b.name, '/') = 0 ORDER BY b.key",
    ),
    namespacesOfThread: db.prepare<[string], NamespaceRow>(
      "SELECT b.key, b.name, b.parent, b.origin, b.run FROM threads t JOIN branches b ON b.thread = t.key WHERE t.id = ? ORDER BY b.key",
    ),
  };
}

/** Reads namespaces of threads. */
export class NamespaceReader {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Finds a branch or a child namespace by name; without a name, the head branch. */
  find(thread: string, branch?: string): NamespaceRow | undefined {
    return this.#sql.namespaceByName.get(thread, branch ?? null);
  }

  /** Finds a branch to claim; without a name, the head branch. */
  findClaimed(thread: string, branch: string): ClaimedBranch | undefined {
    const found = this.#sql.claimedByName.get(thread, branch);
    if (found === undefined) return undefined;
    const { others, taken, ...row } = found;
    return { ...row, isOnlyBranch: others === 0, hasTakenMessages: taken !== 0 };
  }

  /** Returns a namespace by its row key. */
  findByKey(key: number): NamespaceRow | undefined {
    return this.#sql.namespaceByKey.get(key);
  }

  /** Lists all namespaces of a thread, including child namespaces, in order of creation. */
  list(thread: string): readonly NamespaceRow[] {
    return this.#sql.namespacesOfThread.all(thread);
  }

  /** Lists the branches of a thread with their origins and heads. */
  listBranches(
    thread: string,
  ): readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[] {
    return this.#sql.branchList
      .all(thread)
      .map(({ name, from, head }) => ({ name, from: from ?? undefined, head: head ?? from ?? undefined }));
  }

  /** Returns a namespace and its ancestors, each with the newest relevant checkpoint id. */
  listAncestors(
    namespace: NamespaceRow,
    until: number,
  ): readonly { readonly namespace: NamespaceRow; readonly until: number }[] {
    const parent = namespace.parent === null ? undefined : this.#sql.namespaceByKey.get(namespace.parent);
    return parent === undefined
      ? [{ namespace, until }]
      : [{ namespace, until }, ...this.listAncestors(parent, Math.min(until, namespace.origin ?? 0))];
  }
}
