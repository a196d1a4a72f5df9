/** Reads of checkpoints, verified by their hashes. */

import type { CheckpointExport, CheckpointRow, CheckpointWithDeltas } from "@statewright/core/store";
import {
  type CheckpointColumns,
  createCorruptError,
  type DeltaColumns,
  decryptPayload,
  type GraphVersion,
  hashCheckpoint,
  readDelta,
  type ThreadCipher,
  toCheckpointRow,
  toControlContext,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { NamespaceReader, NamespaceRow } from "./namespace-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

/** `run` is the key of a run with a row, or the id of a run without a row, as text. */
const checkpointColumns =
  "SELECT c.key >> 24 AS namespace, c.key & 0xffffff AS id, b.name AS branch, c.step, c.parent, c.source, c.nodes, c.control," +
  " CASE typeof(c.run) WHEN 'integer' THEN (SELECT r.id FROM runs r WHERE r.key = c.run) ELSE c.run END AS run," +
  " c.at, c.duration, c.seq, c.bytes, c.hash, g.name AS graph, g.version, g.shape," +
  " coalesce((SELECT p.hash FROM checkpoints p WHERE p.key = (CASE WHEN c.parent = b.origin THEN b.parent ELSE b.key END << 24) + c.parent)," +
  " (SELECT a.hash FROM anchors a WHERE a.key = (b.key << 24) + c.parent)) AS parentHash" +
  " FROM checkpoints c JOIN branches b ON b.key = c.key >> 24 JOIN graphs g ON g.key = c.graph";

function prepareStatements(db: Database) {
  return {
    idsOfNamespace: db
      .prepare<[number, number], number>(
        "SELECT key & 0xffffff FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key",
      )
      .pluck(),
    oldestBetween: db.prepare<[number, number, number], CheckpointColumns>(
      checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key LIMIT ?",
    ),
    newestBetween: db.prepare<[number, number, number], CheckpointColumns>(
      checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key DESC LIMIT ?",
    ),
    checkpointOfThread: db.prepare<[{ thread: string; id: number }], CheckpointColumns>(
      checkpointColumns +
        " WHERE c.key IN (SELECT (x.branch << 24) + @id FROM threads t JOIN child_checkpoints x ON x.key = (t.key << 24) + @id WHERE t.id = @thread" +
        " UNION ALL SELECT (x.key << 24) + @id FROM threads t CROSS JOIN branches x INDEXED BY branches_of_thread ON x.thread = t.key" +
        " WHERE t.id = @thread AND instr(x.name, '/') = 0)",
    ),
    deltasOfCheckpoint: db.prepare<[number, number], DeltaColumns>(
      "SELECT n.name AS channel, d.kind, d.base, d.count, d.sum, d.text FROM channels n JOIN deltas d ON d.key = (n.key << 24) + ? WHERE n.branch = ? ORDER BY n.key",
    ),
  };
}

/** Reads checkpoints of threads. */
export class CheckpointReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #namespaces: NamespaceReader;

  constructor(
    db: Database,
    { ciphers, namespaces }: { readonly ciphers: ThreadCiphers; readonly namespaces: NamespaceReader },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#namespaces = namespaces;
  }

  /** Returns a checkpoint of any namespace of a thread. */
  get(thread: string, id: number): CheckpointRow | undefined {
    const found = this.find(thread, id);
    return found === undefined ? undefined : toCheckpointRow(found);
  }

  /** Returns the graph version that wrote a checkpoint. */
  getGraphVersion(thread: string, id: number): GraphVersion | undefined {
    const found = this.find(thread, id);
    if (found === undefined) return undefined;
    const { graph, version, shape } = found;
    return { graph, version, shape };
  }

  /** Returns the newest checkpoint of a branch; without a name, of the head branch. */
  getHead(thread: string, branch?: string): CheckpointRow | undefined {
    const namespace = this.#namespaces.find(thread, branch);
    const found = namespace === undefined ? undefined : this.getNamespaceHead(thread, namespace.key);
    return found === undefined ? undefined : toCheckpointRow(found);
  }

  /** Returns the newest checkpoint of a namespace as columns, verified. */
  getNamespaceHead(thread: string, namespaceKey: number): CheckpointColumns | undefined {
    return this.#verifyColumns(thread, this.findNamespaceHead(namespaceKey));
  }

  /** Returns the newest checkpoint of a namespace as columns, not verified. */
  findNamespaceHead(namespaceKey: number): CheckpointColumns | undefined {
    return this.#sql.newestBetween.get(toRowKey(namespaceKey, 0), toRowKey(namespaceKey, maxCheckpointId), 1);
  }

  /** Returns a checkpoint whose deltas are known as columns, verified. */
  verifyWithDeltas(thread: string, columns: CheckpointColumns, deltas: readonly DeltaColumns[]): CheckpointColumns {
    return { ...columns, control: this.#verify(thread, columns, deltas).control };
  }

  /** Returns a checkpoint of any namespace of a thread as columns, not verified. */
  findUnverified(thread: string, id: number): CheckpointColumns | undefined {
    return this.#sql.checkpointOfThread.get({ thread, id });
  }

  /** Returns a checkpoint of any namespace of a thread as columns, verified. */
  find(thread: string, id: number): CheckpointColumns | undefined {
    return this.#verifyColumns(thread, this.findUnverified(thread, id));
  }

  /** Lists the checkpoints of a namespace itself, oldest first, after a checkpoint id; verified. */
  list(thread: string, namespace: NamespaceRow, after: number, limit: number): readonly CheckpointExport[] {
    return this.#sql.oldestBetween
      .all(toRowKey(namespace.key, after + 1), toRowKey(namespace.key, maxCheckpointId), limit)
      .map((columns) => {
        const { deltas, ...row } = this.verify(thread, columns);
        const { graph, version, shape } = columns;
        return { row, deltas, writtenBy: { graph, version, shape } };
      });
  }

  /** Lists the checkpoint ids of a namespace itself, oldest first. */
  listIds(namespace: NamespaceRow): readonly number[] {
    return this.#sql.idsOfNamespace.all(toRowKey(namespace.key, 0), toRowKey(namespace.key, maxCheckpointId));
  }

  /** Iterates over the checkpoint ids of a namespace and of its ancestors, newest first. */
  *iterateAncestorIds(namespace: NamespaceRow): Iterable<number> {
    for (const { namespace: each, until } of this.#namespaces.listAncestors(namespace, maxCheckpointId))
      for (let id = until; ; id--) {
        const found = this.#sql.newestBetween.get(toRowKey(each.key, 0), toRowKey(each.key, id), 1);
        if (found === undefined) break;
        id = found.id;
        yield id;
      }
  }

  /** Lists the checkpoints of a branch and of its ancestors, newest first. */
  getHistory(
    thread: string,
    {
      branch,
      before,
      limit,
    }: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): readonly CheckpointWithDeltas[] {
    const start = this.#namespaces.find(thread, branch);
    const found: CheckpointWithDeltas[] = [];
    const newest = before === undefined ? maxCheckpointId : before - 1;
    for (const { namespace, until } of start === undefined ? [] : this.#namespaces.listAncestors(start, newest)) {
      const rows = this.#sql.newestBetween.all(
        toRowKey(namespace.key, 0),
        toRowKey(namespace.key, until),
        limit - found.length,
      );
      for (const row of rows) found.push(this.verify(thread, row));
      if (found.length === limit) break;
    }
    return found;
  }

  /** Returns a verified checkpoint with its deltas. */
  verify(thread: string, columns: CheckpointColumns): CheckpointWithDeltas {
    return this.#verify(thread, columns, this.#sql.deltasOfCheckpoint.all(columns.id, columns.namespace));
  }

  #verify(thread: string, columns: CheckpointColumns, stored: readonly DeltaColumns[]): CheckpointWithDeltas {
    const cipher = this.#ciphers.get(thread);
    const row = this.#parse(thread, columns, cipher);
    const deltas = stored.map((delta) =>
      readDelta(cipher, { thread, namespace: columns.branch, checkpoint: columns.id }, delta),
    );
    if (hashCheckpoint(row, columns, deltas, { parentHash: columns.parentHash ?? undefined, cipher }) === columns.hash)
      return { ...row, deltas };
    throw createHashError(thread, columns.id);
  }

  #parse(thread: string, columns: CheckpointColumns, cipher: ThreadCipher | undefined): CheckpointRow {
    const { branch, id } = columns;
    const control = decryptPayload(cipher, thread, columns.control, () => toControlContext(branch, id));
    try {
      return toCheckpointRow({ ...columns, control });
    } catch (cause) {
      throw createHashError(thread, columns.id, cause);
    }
  }

  #verifyColumns(thread: string, columns: CheckpointColumns | undefined): CheckpointColumns | undefined {
    return columns === undefined ? undefined : { ...columns, control: this.verify(thread, columns).control };
  }
}

function createHashError(thread: string, checkpoint: number, cause?: unknown) {
  return createCorruptError(`checkpoint ${checkpoint} does not match its hash`, { thread }, cause);
}
