/** Retention in the file: what the plan says, done to the rows of a thread inside one transaction. */
import { type CutDelta, type PruneWrite, retentionRules, storeRules } from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Cuts } from "./cuts.ts";
import type { Reader } from "./reader.ts";
import { keyAt, largestCheckpoint } from "./schema.ts";
import type { Eraser } from "./thread-tables.ts";

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

/** What removes old checkpoints of a thread; to be asked inside a transaction. Gives how many went. */
export function createRetention(
  db: Database,
  { reader, cuts, eraser }: { readonly reader: Reader; readonly cuts: Cuts; readonly eraser: Eraser },
): (write: PruneWrite) => number {
  const keyOfThread = db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck();
  const linesOfThread = db.prepare<[number], LineColumns>(
    "SELECT b.key, b.name, b.origin, b.run, r.status, EXISTS (SELECT 1 FROM effects e WHERE e.branch = b.key AND e.effect = 'once') AS once FROM branches b LEFT JOIN runs r ON r.key = b.run WHERE b.thread = ? ORDER BY b.key",
  );
  const checkpointsOfLine = db.prepare<[number, number], CheckpointHead>(
    "SELECT key & 0xffffff AS id, at, step, seq, run, source FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key",
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
  const dropInterrupts = db.prepare<[number, number]>("DELETE FROM interrupts WHERE branch = ? AND step < ?");
  const dropFacts = db.prepare<[number, number]>("DELETE FROM facts WHERE thread = ? AND seq < ?");

  function retained({ key, name, origin, run, status, once }: LineColumns): retentionRules.RetainedLine {
    return {
      name,
      from: origin ?? undefined,
      unfinished: retentionRules.isUnfinished(status ?? undefined) ? String(run) : undefined,
      once: once === 1,
      checkpoints: checkpointsOfLine
        .all(keyAt(key, 0), keyAt(key, largestCheckpoint))
        .map((row) => ({ ...row, run: String(row.run) })),
    };
  }

  function takeOut(write: PruneWrite, key: number, line: LineColumns, { after, at }: retentionRules.Cut): void {
    const last = atKey.get(keyAt(line.key, at));
    if (last === undefined) return;
    const place = { thread: write.thread, line, seals: reader.seals(write.thread) };
    const before = cuts.deltas(place, after, at);
    const deltas = [...byChannel(before).values()].flatMap((rows) => write.merge(rows));
    cuts.put(place, after, { id: at, seq: last.seq, deltas }, { hash: last.hash, before });
    dropCheckpoints.run(keyAt(line.key, after), keyAt(line.key, at));
    if (storeRules.isChildLine(line.name)) dropIds.run(keyAt(key, after), keyAt(key, at), line.key);
  }

  return (write) => {
    const key = keyOfThread.get(write.thread);
    if (key === undefined) throw storeRules.unknownThread(write.thread);
    const lines = linesOfThread.all(key);
    const plan = retentionRules.planRetention(lines.map(retained), write, write.limit);
    for (const { name, gone, cuts: cutsOfLine, firstStep, firstOnce } of plan.lines) {
      const line = lines.find((each) => each.name === name);
      if (line === undefined) continue;
      if (gone) {
        eraser.line(key, line.key);
        continue;
      }
      for (const cut of cutsOfLine) takeOut(write, key, line, cut);
      dropEffects.run(line.key, firstStep);
      if (firstOnce > Number.NEGATIVE_INFINITY) dropOnce.run(line.key, firstOnce);
      dropInterrupts.run(line.key, firstStep);
    }
    if (plan.removed > 0) dropFacts.run(key, plan.firstSeq);
    return plan.removed;
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
