/**
 * Retention in the file: what may go is looked for and removed in pieces of bounded work, each in a transaction of its own,
 * so that the event loop and other writers come in between. A piece that removes checks first that what was decided still
 * holds; where others have overtaken it, everything is looked at anew. So a death between two pieces leaves a whole thread.
 */
import { type CutDelta, type PruneWrite, retentionRules, storeRules } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import type { Reader } from "../read/reader.ts";
import { reachedCheckpoint } from "../read/thread-head.ts";
import type { EffectRows } from "../rows/effect-rows.ts";
import { createUnfolding } from "../rows/folded-effects.ts";
import type { Eraser } from "../rows/thread-tables.ts";
import type { Cuts } from "./pruned-ranges.ts";

/** A piece of the work; \`run\` is called inside a transaction that reads or writes, or outside of any. */
export interface Piece {
  readonly does: "reads" | "writes" | "thinks";
  readonly run: () => void;
}

/** A read looks at so many rows at most. */
const rowsAtOnce = 2_000;

/** A write removes so many checkpoints at most, or so many events. */
const checkpointsAtOnce = 100;
const eventsAtOnce = 1_000;

/** How often everything is looked at anew in one call, where others overtake it again and again; the next call goes on. */
const mostRounds = 8;

interface LineColumns {
  readonly key: number;
  readonly name: string;
  readonly origin: number | null;
  readonly run: number | null;
  readonly once: number;
  readonly status: Parameters<typeof retentionRules.isUnfinished>[0] | null;
}

interface CheckpointHead extends Omit<retentionRules.RetainedCheckpoint, "run"> {
  readonly run: number | string;
}

/** A line as it is being looked at. */
interface Looked extends retentionRules.RetainedLine {
  readonly key: number;
  readonly checkpoints: retentionRules.RetainedCheckpoint[];
}

/** What removes old checkpoints of a thread, piece by piece; gives how many went. */
export function createRetention(
  db: Database,
  {
    reader,
    cuts,
    eraser,
    effects,
  }: { readonly reader: Reader; readonly cuts: Cuts; readonly eraser: Eraser; readonly effects: EffectRows },
): (write: PruneWrite) => Generator<Piece, number> {
  const keyOfThread = db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck();
  const newestOfThread = db
    .prepare<[number], number>("SELECT " + reachedCheckpoint + " FROM threads t WHERE t.key = ?")
    .pluck();
  const linesOfThread = db.prepare<[number, string, number], LineColumns>(
    "SELECT b.key, b.name, b.origin, b.run, r.status, EXISTS (SELECT 1 FROM effects e INDEXED BY once_effects" +
      " WHERE e.branch = b.key AND e.effect = 'once') AS once" +
      " FROM branches b LEFT JOIN runs r ON r.key = b.run WHERE b.thread = ? AND b.name > ? ORDER BY b.name LIMIT ?",
  );
  const checkpointsOfLine = db.prepare<[number, number, number], CheckpointHead>(
    "SELECT key & 0xffffff AS id, at, step, seq, run, source FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
  );
  const lineByName = db
    .prepare<[number, string], number>("SELECT key FROM branches WHERE thread = ? AND name = ?")
    .pluck();
  const countBetween = db
    .prepare<[number, number], number>("SELECT count(*) FROM checkpoints WHERE key > ? AND key <= ?")
    .pluck();
  const startsBetween = db
    .prepare<[number, number, number], number>(
      "SELECT 1 FROM branches INDEXED BY branches_by_origin WHERE parent = ? AND origin > ? AND origin <= ? LIMIT 1",
    )
    .pluck();
  const unfold = createUnfolding(db, effects);
  const oldestOf = db.prepare<[number, number], { key: number; step: number }>(
    "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1",
  );
  const atKey = db.prepare<[number], { seq: number; hash: string }>("SELECT seq, hash FROM checkpoints WHERE key = ?");
  const dropCheckpoints = db.prepare<[number, number]>("DELETE FROM checkpoints WHERE key > ? AND key <= ?");
  const dropIds = db.prepare<[number, number, number]>(
    "DELETE FROM child_checkpoints WHERE key > ? AND key <= ? AND branch = ?",
  );
  const dropEffects = db.prepare<[number, number]>(
    "DELETE FROM effects WHERE branch = ? AND step < ? AND effect <> 'once'",
  );
  const dropOnce = db.prepare<[number, number]>(
    "DELETE FROM effects WHERE branch = ? AND step < ? AND effect = 'once'",
  );
  const dropFolded = db.prepare<[number]>("UPDATE checkpoints SET effects = NULL, effects_sum = NULL WHERE key = ?");
  const dropInterrupts = db.prepare<[number, number]>("DELETE FROM interrupts WHERE branch = ? AND step < ?");
  const lastOfPage = db
    .prepare<[number, number, number], number | null>(
      "SELECT max(seq) FROM (SELECT seq FROM facts WHERE thread = ? AND seq < ? ORDER BY seq LIMIT ?)",
    )
    .pluck();
  const dropFacts = db.prepare<[number, number]>("DELETE FROM facts WHERE thread = ? AND seq <= ?");

  /**
   * Read the lines of a thread and their checkpoints, a page at a time, as of the first one: a run that begins in between is
   * not known, and what it goes on from, and may be taken back to, is the newest of then.
   */
  function* look(thread: string): Generator<Piece, { readonly key: number; readonly lines: readonly Looked[] }> {
    const lines: Looked[] = [];
    let [key, newest] = [0, 0];
    for (let [after, isLast] = ["", false]; !isLast; ) {
      yield {
        does: "reads",
        run: () => {
          const found = keyOfThread.get(thread);
          if (found === undefined) throw storeRules.unknownThread(thread);
          if (key === 0) newest = newestOfThread.get(found) ?? 0;
          key = found;
          const page = linesOfThread.all(key, after, rowsAtOnce);
          isLast = page.length < rowsAtOnce;
          after = page.at(-1)?.name ?? after;
          for (const line of page) lines.push(looked(line));
        },
      };
    }
    for (let [next, after] = [0, 0]; next < lines.length; ) {
      yield {
        does: "reads",
        run: () => {
          for (let room = rowsAtOnce; room > 0 && next < lines.length; ) {
            const line = lines[next] as Looked;
            const page = checkpointsOfLine.all(keyAt(line.key, after + 1), keyAt(line.key, newest), room);
            for (const row of page) line.checkpoints.push({ ...row, run: String(row.run) });
            const isRead = page.length < room;
            // A line without a page counts too: there may be very many.
            room -= page.length + 1;
            after = isRead ? 0 : (page.at(-1)?.id ?? 0);
            if (isRead) next += 1;
          }
        },
      };
    }
    return { key, lines };
  }

  function looked({ key, name, origin, run, status, once }: LineColumns): Looked {
    return {
      key,
      name,
      from: origin ?? undefined,
      unfinished: retentionRules.isUnfinished(status ?? undefined) ? String(run) : undefined,
      once: once === 1,
      checkpoints: [],
    };
  }

  /** Remove a slice; false, and nothing is removed, where what was decided does not hold any more. */
  function remove(write: PruneWrite, thread: number, slice: readonly retentionRules.LineSlice[]): boolean {
    const lines = slice.map((each) => ({ ...each, key: lineByName.get(thread, each.name) }));
    if (!lines.every((line) => line.key !== undefined && stillHolds(line.key, line))) return false;
    for (const { key = 0, name, gone, firstOnce, after, ids } of lines) {
      if (gone) {
        eraser.line(thread, key);
        continue;
      }
      takeOut(write, thread, { key, name }, after, ids.at(-1) ?? after);
      const oldest = oldestOf.get(keyAt(key, 0), keyAt(key, largestCheckpoint));
      const firstStep = oldest?.step ?? 0;
      if (oldest !== undefined) dropFolded.run(oldest.key);
      dropEffects.run(key, firstStep);
      dropOnce.run(key, Math.min(firstStep, firstOnce));
      dropInterrupts.run(key, firstStep);
    }
    return true;
  }

  /** Nobody has forked from what goes, removed some of it or what it begins after, or written to a line of which nothing was to be left. */
  function stillHolds(line: number, { gone, after, ids }: retentionRules.LineSlice): boolean {
    const at = ids.at(-1) ?? after;
    if (startsBetween.get(line, after, at) !== undefined) return false;
    if (after > 0 && atKey.get(keyAt(line, after)) === undefined) return false;
    return countBetween.get(keyAt(line, after), keyAt(line, gone ? largestCheckpoint : at)) === ids.length;
  }

  function takeOut(
    write: PruneWrite,
    thread: number,
    line: { readonly key: number; readonly name: string },
    after: number,
    at: number,
  ): void {
    const last = atKey.get(keyAt(line.key, at));
    if (last === undefined) return;
    const place = { thread: write.thread, line, seals: reader.seals(write.thread) };
    const before = cuts.deltas(place, after, at);
    const deltas = [...byChannel(before).values()].flatMap((rows) => write.merge(rows));
    cuts.put(place, after, { id: at, seq: last.seq, deltas }, { hash: last.hash, before });
    // The oldest that is left may stand before or after what goes.
    const { step = Number.POSITIVE_INFINITY } =
      oldestOf.get(keyAt(line.key, 0), keyAt(line.key, after)) ??
      oldestOf.get(keyAt(line.key, at + 1), keyAt(line.key, largestCheckpoint)) ??
      {};
    unfold(place, after, at, step);
    dropCheckpoints.run(keyAt(line.key, after), keyAt(line.key, at));
    if (storeRules.isChildLine(line.name)) dropIds.run(keyAt(thread, after), keyAt(thread, at), line.key);
  }

  /** Remove the events before a number, a page at a time. */
  function* forget(thread: number, firstSeq: number): Generator<Piece, void> {
    for (let isOver = false; !isOver; ) {
      yield {
        does: "writes",
        run: () => {
          const last = lastOfPage.get(thread, firstSeq, eventsAtOnce) ?? undefined;
          if (last === undefined) isOver = true;
          else dropFacts.run(thread, last);
        },
      };
    }
  }

  return function* prune(write) {
    const limit = write.limit ?? Number.POSITIVE_INFINITY;
    let removed = 0;
    for (let [round, overtaken] = [0, true]; overtaken && round < mostRounds; round++) {
      overtaken = false;
      const { key, lines } = yield* look(write.thread);
      const steps = retentionRules.planInSteps(lines, write, limit - removed);
      let plan = steps.next();
      for (; plan.done !== true; plan = steps.next()) yield { does: "thinks", run: () => undefined };
      for (const slice of retentionRules.slicesOf(plan.value, checkpointsAtOnce)) {
        yield {
          does: "writes",
          run: () => {
            overtaken = !remove(write, key, slice);
          },
        };
        if (overtaken) break;
        for (const { ids } of slice) removed += ids.length;
      }
      if (!overtaken && plan.value.removed > 0) yield* forget(key, plan.value.firstSeq);
    }
    return removed;
  };
}

function byChannel(rows: readonly CutDelta[]): ReadonlyMap<string, readonly CutDelta[]> {
  const groups = new Map<string, CutDelta[]>();
  for (const row of rows) {
    const group = groups.get(row.channel);
    if (group === undefined) groups.set(row.channel, [row]);
    else group.push(row);
  }
  return groups;
}
