/** Verification of the file: each checkpoint chain from its anchor on, and each checksum. */
import { isStatewrightError } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import type { Reencryption } from "../encryption/reencrypt.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { NamespaceRow, Reader } from "../read/reader.ts";
import { isUnreadable } from "../rows/readable-rows.ts";
import type { Artifacts } from "../write/artifacts.ts";
import type { LongTermTable } from "../write/long-term.ts";
import type { PrunedRanges } from "../write/pruned-ranges.ts";
import type { Fault, VerifyReport } from "./verify-report.ts";

/** Runs a read in one read transaction. */
export type Read = <Value>(operation: () => Value) => Promise<Value>;

/** Rows per turn of the event loop. */
const rowsPerRead = 200;

export interface Verifier {
  /**
   * Returns SQLite's findings about the structure of the file: pages, keys, indexes. Blocks the event loop meanwhile.
   */
  checkStructure(): readonly string[];
  /** Returns the key of the newest thread. Later threads need no verification, and could be created endlessly. */
  getNewestThreadKey(): number;
  /** Lists some threads after a key, up to a key, in key order. */
  listThreads(after: number, until: number): readonly { readonly key: number; readonly id: string }[];
  /** Verifies the items of the long-term store. */
  verifyItems(read: Read, onFault: (fault: Fault) => void): Promise<void>;
  /** Verifies one thread; returns its number of checkpoints and artifact bodies. Throws `unknown_thread`. */
  verifyThread(
    id: string,
    read: Read,
    onFault: (fault: Fault) => void,
  ): Promise<Pick<VerifyReport, "checkpoints" | "artifacts">>;
}

export function createVerifier(
  db: Database,
  {
    reader,
    prunedRanges,
    reencryption,
    artifacts,
    longTerm,
  }: {
    readonly reader: Reader;
    readonly prunedRanges: PrunedRanges;
    readonly reencryption: Reencryption;
    readonly artifacts: Artifacts;
    readonly longTerm: Pick<LongTermTable, "verify">;
  },
): Verifier {
  const page = db.prepare<[number, number, number], { key: number; id: string }>(
    "SELECT key, id FROM threads WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const newestThreadKey = db.prepare<[], number | null>("SELECT max(key) FROM threads").pluck();
  const ids = db
    .prepare<[number, number, number], number>(
      "SELECT key & 0xffffff FROM checkpoints WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
    )
    .pluck();
  const newest = db.prepare<[string], { ahead: number; held: number }>(
    "SELECT t.owner IS NOT NULL AS held, t.checkpoint - coalesce((SELECT max((SELECT max(c.key) & 0xffffff FROM checkpoints c" +
      " WHERE c.key >= b.key << 24 AND c.key < (b.key + 1) << 24)) FROM branches b WHERE b.thread = t.key), 0) AS ahead" +
      " FROM threads t WHERE t.id = ?",
  );

  // One statement: the owner of the thread may write concurrently.
  const hasStrayDeltas = db
    .prepare<{ namespace: number }, number>(
      "SELECT EXISTS (SELECT 1 FROM channels c JOIN deltas d ON d.key > (c.key << 24) + max(" +
        "coalesce((SELECT max(key) & 0xffffff FROM checkpoints WHERE key >= @namespace << 24 AND key < (@namespace + 1) << 24), 0)," +
        " coalesce((SELECT max(key) & 0xffffff FROM anchors WHERE key >= @namespace << 24 AND key < (@namespace + 1) << 24), 0))" +
        " AND d.key < (c.key + 1) << 24 WHERE c.branch = @namespace)",
    )
    .pluck();

  const hasInvalidHead = db
    .prepare<[string], number>(
      "SELECT NOT EXISTS (SELECT 1 FROM branches b WHERE b.thread = t.key AND b.name = t.head) OR t.seq < coalesce((SELECT max(e.seq) FROM events e WHERE e.thread = t.key), 0)" +
        " FROM threads t WHERE t.id = ?",
    )
    .pluck();

  const runsWithMetadata = db.prepare<[number, string, number], { key: number; id: string; metadata: string }>(
    "SELECT r.key, r.id, r.metadata FROM runs r WHERE r.key > ? AND json_valid(r.metadata)" +
      " AND r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key LIMIT ?",
  );
  const pairs = db.prepare<[number], { name: string; value: string }>(
    "SELECT name, value FROM run_metadata WHERE run = ?",
  );

  /** Reports runs whose metadata rows differ from their metadata. */
  async function verifyMetadata(id: string, read: Read, onFault: (fault: Fault) => void): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      after = await read(() => {
        const runs = runsWithMetadata.all(from, id, rowsPerRead);
        for (const run of runs) {
          const listed = new Map(pairs.all(run.key).map(({ name, value }) => [name, value]));
          const expected = Object.entries(JSON.parse(run.metadata) as Record<string, unknown>);
          if (
            expected.length !== listed.size ||
            expected.some(([name, value]) => listed.get(name) !== JSON.stringify(value))
          )
            onFault({ thread: id, what: `run ${run.id} is not indexed by its metadata` });
        }
        return runs.length < rowsPerRead ? undefined : runs.at(-1)?.key;
      });
    }
  }

  return {
    checkStructure: () =>
      (db.pragma("integrity_check(20)") as readonly { readonly integrity_check: string }[])
        .map(({ integrity_check: found }) => found)
        .filter((found) => found !== "ok"),
    getNewestThreadKey: () => newestThreadKey.get() ?? 0,
    listThreads: (after, until) => page.all(after, until, rowsPerRead),
    verifyItems: async (read, onFault) => {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after;
        after = await read<number | undefined>(() =>
          longTerm.verify(from, rowsPerRead, (thrown) => {
            if (!isUnreadable(thrown)) throw thrown;
            onFault({ what: thrown.message });
          }),
        );
      }
    },
    verifyThread: async (id, read, fault) => {
      /** Runs a check and reports a damaged row as a fault. */
      const runCheck = (check: () => void): void => {
        try {
          check();
        } catch (thrown) {
          if (!isUnreadable(thrown)) throw thrown;
          fault({ thread: id, what: thrown.message });
        }
      };
      const { namespaces, sources } = await read(() => ({
        namespaces: reader.listNamespaces(id),
        sources: reencryption.listRowSources(id),
      }));
      if (namespaces.length === 0) throw storeRules.createUnknownThreadError(id);
      for (const source of sources) {
        for (let after: number | undefined = -1; after !== undefined; ) {
          const from = after;
          after = await read(() => {
            const { rows, last } = source.readPage(from, rowsPerRead);
            for (const row of rows) runCheck(() => row.read(reader.getCipher(id)));
            return last;
          });
        }
      }
      let [checkpoints, bodies] = [0, 0];
      for (const namespace of namespaces) {
        checkpoints += await verifyChain(id, namespace, read, runCheck);
        if ((await read(() => hasStrayDeltas.get({ namespace: namespace.key }))) === 1)
          fault({
            thread: id,
            what: `the newest checkpoint of the branch "${namespace.name}" is missing, but its changes exist`,
          });
        await read(() => runCheck(() => prunedRanges.list({ thread: id, namespace, cipher: reader.getCipher(id) })));
      }
      await read(() => runCheck(() => reader.listTimers({ thread: id })));
      const getNextArtifact = artifacts.createCursor(id);
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after;
        after = await read(() => {
          const next = getNextArtifact(from);
          if (next === undefined) return undefined;
          runCheck(() => artifacts.verify(id, next));
          if (next.body === next.key) bodies += 1;
          return next.key;
        });
      }
      await verifyMetadata(id, read, fault);
      // The row of a claimed thread lags behind its checkpoints.
      const { ahead = 0, held = 0 } = (await read(() => newest.get(id))) ?? {};
      if (ahead > 0 || (ahead < 0 && held === 0)) fault({ thread: id, what: "the newest checkpoint is missing" });
      if ((await read(() => hasInvalidHead.get(id))) === 1)
        fault({ thread: id, what: "the head branch or the newest event is missing" });
      return { checkpoints, artifacts: bodies };
    },
  };

  async function verifyChain(
    id: string,
    namespace: NamespaceRow,
    read: Read,
    runCheck: (work: () => void) => void,
  ): Promise<number> {
    let count = 0;
    for (let after = 0; ; ) {
      const from = after;
      const found = await read(() => {
        const checkpointIds = ids.all(
          toRowKey(namespace.key, from),
          toRowKey(namespace.key, maxCheckpointId),
          rowsPerRead,
        );
        for (const checkpoint of checkpointIds)
          runCheck(() => reader.listCheckpoints(id, namespace, checkpoint - 1, 1));
        return checkpointIds;
      });
      count += found.length;
      after = found.at(-1) ?? after;
      if (found.length < rowsPerRead) return count;
    }
  }
}

/** Verifies one thread, or all; skips threads deleted meanwhile. Throws `unknown_thread`. */
export async function verifyStore(verifier: Verifier, read: Read, thread: string | undefined): Promise<VerifyReport> {
  const faults = new Map<string, Fault>();
  const addFault = (fault: Fault): void => {
    faults.set(JSON.stringify(fault), fault);
  };
  let [threads, checkpoints, artifacts] = [0, 0, 0];
  const verifyOne = async (id: string): Promise<void> => {
    const counts = await verifier.verifyThread(id, read, addFault);
    checkpoints += counts.checkpoints;
    artifacts += counts.artifacts;
    threads += 1;
  };
  if (thread === undefined) for (const what of await read(() => verifier.checkStructure())) addFault({ what });
  if (thread === undefined) await verifier.verifyItems(read, addFault);
  if (thread !== undefined) await verifyOne(thread);
  const until = await read(() => verifier.getNewestThreadKey());
  for (let after = 0; thread === undefined; ) {
    const from = after;
    const page = await read(() => verifier.listThreads(from, until));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.key;
    for (const { id } of page) {
      try {
        await verifyOne(id);
      } catch (error) {
        if (!isStatewrightError(error, "unknown_thread")) throw error;
      }
    }
  }
  return { threads, checkpoints, artifacts, faults: [...faults.values()] };
}
