/** Pruned ranges of namespaces: the anchors left by retention, and the deltas still needed by later checkpoints. */

import type { PrunedDelta, PrunedRange } from "@statewright/core/store";
import {
  createCorruptError,
  type DeltaColumns,
  hashRemainingDeltas,
  readDelta,
  type ThreadCipher,
  toDeltaColumns,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { NamespaceRow } from "../read/namespace-reader.ts";

/** Namespace of a thread with the cipher of its values. */
export interface NamespaceContext {
  readonly thread: string;
  readonly namespace: Pick<NamespaceRow, "key" | "name">;
  readonly cipher: ThreadCipher | undefined;
}

interface AnchorColumns {
  readonly id: number;
  readonly seq: number;
  readonly remainingHash: string;
}

function prepareStatements(db: Database) {
  return {
    anchors: db.prepare<[number, number], AnchorColumns>(
      "SELECT key & 0xffffff AS id, seq, remaining_hash AS remainingHash FROM anchors WHERE key BETWEEN ? AND ? ORDER BY key",
    ),
    // Rows between two anchors may have been pruned after the second anchor: then each range starts after the previous
    // one.
    newestBefore: db
      .prepare<[{ from: number; until: number }], number | null>(
        "SELECT max(key) & 0xffffff FROM (SELECT max(key) AS key FROM checkpoints WHERE key >= @from AND key < @until" +
          " UNION ALL SELECT max(key) FROM anchors WHERE key >= @from AND key < @until)",
      )
      .pluck(),
    deltasBetween: db.prepare<
      [{ namespace: number; after: number; until: number }],
      DeltaColumns & { checkpoint: number }
    >(
      "SELECT n.name AS channel, d.kind, d.base, d.count, d.sum, d.text, d.key & 0xffffff AS checkpoint FROM channels n" +
        " JOIN deltas d ON d.key > (n.key << 24) + @after AND d.key <= (n.key << 24) + @until WHERE n.branch = @namespace ORDER BY d.key",
    ),
    channelsOfNamespace: db.prepare<[number], { key: number; name: string }>(
      "SELECT key, name FROM channels WHERE branch = ?",
    ),
    addChannel: db.prepare<[number, string]>("INSERT INTO channels (branch, name) VALUES (?, ?)"),
    dropDelta: db.prepare<[number]>("DELETE FROM deltas WHERE key = ?"),
    addDelta: db.prepare("INSERT INTO deltas (key, kind, base, count, sum, text) VALUES (?, ?, ?, ?, ?, ?)"),
    dropAnchors: db.prepare<[number, number]>("DELETE FROM anchors WHERE key > ? AND key <= ?"),
    addAnchor: db.prepare<[number, number, string, string]>(
      "INSERT INTO anchors (key, seq, hash, remaining_hash) VALUES (?, ?, ?, ?)",
    ),
  };
}

/** Reads and writes pruned ranges; call inside a transaction. */
export class PrunedRanges {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /**
   * Lists the verified deltas of a namespace at checkpoints above `after`, up to `until`, ordered by channel and
   * checkpoint.
   */
  listDeltas({ thread, namespace, cipher }: NamespaceContext, after: number, until: number): readonly PrunedDelta[] {
    return this.#sql.deltasBetween.all({ namespace: namespace.key, after, until }).map((columns) => {
      const { checkpoint } = columns;
      return { ...readDelta(cipher, { thread, namespace: namespace.name, checkpoint }, columns), checkpoint };
    });
  }

  /**
   * Lists the pruned ranges of a namespace, oldest first. Throws `store_corrupt` if the remaining deltas do not match
   * their hash.
   */
  list(at: NamespaceContext): readonly PrunedRange[] {
    return this.#sql.anchors
      .all(toRowKey(at.namespace.key, 0), toRowKey(at.namespace.key, maxCheckpointId))
      .map(({ id, seq, remainingHash }) => {
        const after =
          this.#sql.newestBefore.get({ from: toRowKey(at.namespace.key, 0), until: toRowKey(at.namespace.key, id) }) ??
          0;
        const remaining = this.listDeltas(at, after, id);
        if (hashRemainingDeltas(at.cipher, at.namespace.name, remaining) === remainingHash)
          return { id, seq, deltas: remaining };
        throw createCorruptError(
          `the deltas left before the pruned range at checkpoint ${id} do not match their hash`,
          {
            thread: at.thread,
            branch: at.namespace.name,
          },
        );
      });
  }

  /**
   * Replaces all rows above `after`, up to the end of the range, by an anchor and the remaining deltas. Deltas
   * contained in `before` are already stored.
   */
  put(
    { thread, namespace, cipher }: NamespaceContext,
    after: number,
    { id, seq, deltas: remaining }: PrunedRange,
    anchor: { readonly hash: string; readonly before: readonly PrunedDelta[] },
  ): void {
    const channels = new Map(this.#sql.channelsOfNamespace.all(namespace.key).map(({ key, name }) => [name, key]));
    const [remainingSet, storedSet] = [new Set(remaining), new Set(anchor.before)];
    for (const row of anchor.before) {
      const key = remainingSet.has(row) ? undefined : channels.get(row.channel);
      if (key !== undefined) this.#sql.dropDelta.run(toRowKey(key, row.checkpoint));
    }
    for (const row of remaining) {
      if (storedSet.has(row)) continue;
      const key =
        channels.get(row.channel) ?? Number(this.#sql.addChannel.run(namespace.key, row.channel).lastInsertRowid);
      channels.set(row.channel, key);
      const { sum, text } = toDeltaColumns(
        cipher,
        { thread, namespace: namespace.name, checkpoint: row.checkpoint },
        row,
      );
      this.#sql.addDelta.run(toRowKey(key, row.checkpoint), row.kind, row.base ? 1 : 0, row.count ?? null, sum, text);
    }
    this.#sql.dropAnchors.run(toRowKey(namespace.key, after), toRowKey(namespace.key, id));
    this.#sql.addAnchor.run(
      toRowKey(namespace.key, id),
      seq,
      anchor.hash,
      hashRemainingDeltas(cipher, namespace.name, remaining),
    );
  }
}
