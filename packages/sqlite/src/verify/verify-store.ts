/** Looking at everything that a file holds of its threads: each chain of checkpoints from its anchor on, each sum. */
import { isStatewrightError, storeRules } from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Sweeper } from "../encryption/reencrypt.ts";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import type { Line, Reader } from "../read/reader.ts";
import { isUnreadable } from "../rows/readable-rows.ts";
import type { Artifacts } from "../write/artifacts.ts";
import type { LongTermTable } from "../write/long-term.ts";
import type { Cuts } from "../write/pruned-ranges.ts";
import type { Fault, VerifyReport } from "./verify-report.ts";

/** A read of the file as of one moment. */
export type Read = <Value>(work: () => Value) => Promise<Value>;

/** So many rows are looked at in one turn of the event loop. */
const atOnce = 200;

export interface Verifier {
  /** What SQLite finds of the file's own structure: pages, keys, indexes. Holds the event loop meanwhile. */
  structure(): readonly string[];
  /** The key of the youngest thread: those that are made later need not be looked at, and there may be no end of them. */
  youngest(): number;
  /** Some threads after `after`, up to `until`, in the order of their keys. */
  threads(after: number, until: number): readonly { readonly key: number; readonly id: string }[];
  /** Look at the items of the long-term store. */
  items(read: Read, fault: (fault: Fault) => void): Promise<void>;
  /** Look at one thread; gives how much it has. Throws `unknown_thread`. */
  thread(
    id: string,
    read: Read,
    fault: (fault: Fault) => void,
  ): Promise<Pick<VerifyReport, "checkpoints" | "artifacts">>;
}

export function createVerifier(
  db: Database,
  {
    reader,
    cuts,
    sweeper,
    artifacts,
    longTerm,
  }: {
    readonly reader: Reader;
    readonly cuts: Cuts;
    readonly sweeper: Sweeper;
    readonly artifacts: Artifacts;
    readonly longTerm: Pick<LongTermTable, "check">;
  },
): Verifier {
  const page = db.prepare<[number, number, number], { key: number; id: string }>(
    "SELECT key, id FROM threads WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const youngest = db.prepare<[], number | null>("SELECT max(key) FROM threads").pluck();
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

  // One look: the owner of a thread goes on meanwhile.
  const leftOver = db
    .prepare<{ line: number }, number>(
      "SELECT EXISTS (SELECT 1 FROM channels c JOIN deltas d ON d.key > (c.key << 24) + max(" +
        "coalesce((SELECT max(key) & 0xffffff FROM checkpoints WHERE key >= @line << 24 AND key < (@line + 1) << 24), 0)," +
        " coalesce((SELECT max(key) & 0xffffff FROM anchors WHERE key >= @line << 24 AND key < (@line + 1) << 24), 0))" +
        " AND d.key < (c.key + 1) << 24 WHERE c.branch = @line)",
    )
    .pluck();

  const misled = db
    .prepare<[string], number>(
      "SELECT NOT EXISTS (SELECT 1 FROM branches b WHERE b.thread = t.key AND b.name = t.head) OR t.seq < coalesce((SELECT max(f.seq) FROM facts f WHERE f.thread = t.key), 0)" +
        " FROM threads t WHERE t.id = ?",
    )
    .pluck();

  const described = db.prepare<[number, string, number], { key: number; id: string; metadata: string }>(
    "SELECT r.key, r.id, r.metadata FROM runs r WHERE r.key > ? AND json_valid(r.metadata)" +
      " AND r.thread = (SELECT key FROM threads WHERE id = ?) ORDER BY r.key LIMIT ?",
  );
  const pairs = db.prepare<[number], { name: string; value: string }>(
    "SELECT name, value FROM run_metadata WHERE run = ?",
  );

  /** Runs by whose metadata they are not found as they should be. */
  async function metadata(id: string, read: Read, fault: (fault: Fault) => void): Promise<void> {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      after = await read(() => {
        const runs = described.all(from, id, atOnce);
        for (const run of runs) {
          const listed = new Map(pairs.all(run.key).map(({ name, value }) => [name, value]));
          const own = Object.entries(JSON.parse(run.metadata) as Record<string, unknown>);
          if (own.length !== listed.size || own.some(([name, value]) => listed.get(name) !== JSON.stringify(value)))
            fault({ thread: id, what: `run ${run.id} is not listed under its metadata` });
        }
        return runs.length < atOnce ? undefined : runs.at(-1)?.key;
      });
    }
  }

  return {
    structure: () =>
      (db.pragma("integrity_check(20)") as readonly { readonly integrity_check: string }[])
        .map(({ integrity_check: found }) => found)
        .filter((found) => found !== "ok"),
    youngest: () => youngest.get() ?? 0,
    threads: (after, until) => page.all(after, until, atOnce),
    items: async (read, fault) => {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after;
        after = await read<number | undefined>(() =>
          longTerm.check(from, atOnce, (thrown) => {
            if (!isUnreadable(thrown)) throw thrown;
            fault({ what: thrown.message });
          }),
        );
      }
    },
    thread: async (id, read, fault) => {
      /** Work that may meet rows that are not what was written: each is told once. */
      const look = (work: () => void): void => {
        try {
          work();
        } catch (thrown) {
          if (!isUnreadable(thrown)) throw thrown;
          fault({ thread: id, what: thrown.message });
        }
      };
      const { lines, sweeps } = await read(() => ({ lines: reader.lines(id), sweeps: sweeper.sweeps(id) }));
      if (lines.length === 0) throw storeRules.unknownThread(id);
      for (const sweep of sweeps) {
        for (let after: number | undefined = -1; after !== undefined; ) {
          const from = after;
          after = await read(() => {
            const { rows, last } = sweep.page(from, atOnce);
            for (const row of rows) look(() => row.read(reader.seals(id)));
            return last;
          });
        }
      }
      let [checkpoints, bodies] = [0, 0];
      for (const line of lines) {
        checkpoints += await chain(id, line, read, look);
        if ((await read(() => leftOver.get({ line: line.key }))) === 1)
          fault({
            thread: id,
            what: `the newest checkpoint of the branch "${line.name}" is not there, and its changes are`,
          });
        await read(() => look(() => cuts.of({ thread: id, line, seals: reader.seals(id) })));
      }
      await read(() => look(() => reader.timers({ thread: id })));
      const nextArtifact = artifacts.walk(id);
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after;
        after = await read(() => {
          const next = nextArtifact(from);
          if (next === undefined) return undefined;
          look(() => artifacts.check(id, next));
          if (next.body === next.key) bodies += 1;
          return next.key;
        });
      }
      await metadata(id, read, fault);
      // The row of a thread that is held lags behind its checkpoints.
      const { ahead = 0, held = 0 } = (await read(() => newest.get(id))) ?? {};
      if (ahead > 0 || (ahead < 0 && held === 0)) fault({ thread: id, what: "the newest checkpoint is not there" });
      if ((await read(() => misled.get(id))) === 1)
        fault({ thread: id, what: "its head branch or its newest event is not there" });
      return { checkpoints, artifacts: bodies };
    },
  };

  async function chain(id: string, line: Line, read: Read, look: (work: () => void) => void): Promise<number> {
    let seen = 0;
    for (let after = 0; ; ) {
      const from = after;
      const found = await read(() => {
        const there = ids.all(keyAt(line.key, from), keyAt(line.key, largestCheckpoint), atOnce);
        for (const checkpoint of there) look(() => reader.own(id, line, checkpoint - 1, 1));
        return there;
      });
      seen += found.length;
      after = found.at(-1) ?? after;
      if (found.length < atOnce) return seen;
    }
  }
}

/** Look at one thread or at all; one that is deleted meanwhile is left out. Throws `unknown_thread`. */
export async function verifyStore(verifier: Verifier, read: Read, thread: string | undefined): Promise<VerifyReport> {
  const faults = new Map<string, Fault>();
  const add = (fault: Fault): void => {
    faults.set(JSON.stringify(fault), fault);
  };
  let [threads, checkpoints, artifacts] = [0, 0, 0];
  const look = async (id: string): Promise<void> => {
    const seen = await verifier.thread(id, read, add);
    checkpoints += seen.checkpoints;
    artifacts += seen.artifacts;
    threads += 1;
  };
  if (thread === undefined) for (const what of await read(() => verifier.structure())) add({ what });
  if (thread === undefined) await verifier.items(read, add);
  if (thread !== undefined) await look(thread);
  const until = await read(() => verifier.youngest());
  for (let after = 0; thread === undefined; ) {
    const from = after;
    const page = await read(() => verifier.threads(from, until));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.key;
    for (const { id } of page) {
      try {
        await look(id);
      } catch (error) {
        if (!isStatewrightError(error, "unknown_thread")) throw error;
      }
    }
  }
  return { threads, checkpoints, artifacts, faults: [...faults.values()] };
}
