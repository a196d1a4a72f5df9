/**
 * Results that the store could not take, as when the disk is full: they stay in memory, and whoever takes the thread next in
 * this process writes them before anything else. So a `once` effect that has ended is not in doubt for want of room.
 */
import { isStatewrightError, type StatewrightError } from "../../base/errors.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Claim, Store } from "../../checkpoint/store.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { journalKey, type PendingEffect, type Session } from "../session/session.ts";

/** Effects that have ended, with the artifacts that are kept with their outcomes. */
export interface Results {
  readonly effects: readonly EffectRow[];
  readonly artifacts: readonly ArtifactWrite[];
}

/** No result. */
export const noResults: Results = Object.freeze({ effects: [], artifacts: [] });

/** Results by line, and the epoch under which they were refused. */
interface Kept {
  readonly epoch: number;
  readonly lines: ReadonlyMap<string, Results>;
}

const keptIn: WeakMap<Store, Map<string, Kept>> = new WeakMap();

/**
 * What has ended and is not in the store: what was refused, and what still waits. By line. Of steps that were folded only
 * `once` effects count.
 */
export function unsavedResults(session: Session): ReadonlyMap<string, Results> {
  const lines = new Map<string, Map<string, Result>>();
  const add = (line: string, effect: PendingEffect): void => {
    const { step, task, key, effect: kind } = effect.row;
    if (line === session.line && step < session.step && kind !== "once") return;
    const row = rowOf(effect);
    if (row === undefined) return;
    const results = lines.get(line) ?? new Map<string, Result>();
    lines.set(line, results.set(journalKey(step, task, key), { row, artifacts: effect.artifacts ?? [] }));
  };
  const addPending = ({ line, saved, inner }: Session): void => {
    for (const effect of saved?.pending.values() ?? []) add(line, effect);
    for (const called of inner.values()) addPending(called);
  };
  for (const { line, effect } of session.saved?.thread.unsaved.values() ?? []) add(line, effect);
  addPending(session);
  return new Map([...lines].map(([line, results]) => [line, together([...results.values()])]));
}

interface Result {
  readonly row: EffectRow;
  readonly artifacts: readonly ArtifactWrite[];
}

function together(results: readonly Result[]): Results {
  return { effects: results.map(({ row }) => row), artifacts: results.flatMap(({ artifacts }) => artifacts) };
}

/** The row of an effect that has ended; nothing for one that has not, or whose outcome cannot be saved. */
function rowOf({ row, encode }: PendingEffect): EffectRow | undefined {
  if (row.endedAt === undefined) return undefined;
  try {
    return encode === undefined ? row : { ...row, outcome: encode() };
  } catch {
    return undefined;
  }
}

/** Keep results until the thread is taken again in this process. */
export function keepResults(store: Store, thread: string, kept: Kept): void {
  if (kept.lines.size === 0) return;
  const threads = keptIn.get(store) ?? new Map<string, Kept>();
  keptIn.set(store, threads.set(thread, kept));
}

/**
 * Write what was kept of a thread that was just taken. What another owner may have gone on without is dropped. Rejects with
 * the store's error while there is still no room: the results stay.
 */
export async function writeKept(store: Store, thread: string, { epoch, nextSeq }: Claim): Promise<void> {
  const threads = keptIn.get(store);
  const kept = threads?.get(thread);
  if (threads === undefined || kept === undefined) return;
  threads.delete(thread);
  if (kept.epoch !== epoch - 1) return;
  const left = new Map(kept.lines);
  try {
    for (const [line, results] of kept.lines) {
      await committed(store, { thread, branch: line, epoch, seq: nextSeq - 1, ...results });
      left.delete(line);
    }
  } catch (error) {
    // Who has taken the thread in between goes on without them, and may do again what they tell of.
    if (!isStatewrightError(error, "fenced")) keepResults(store, thread, { epoch, lines: left });
    throw error;
  }
}

function committed(store: Store, commit: Parameters<Store["commit"]>[0]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.commit(commit, (failure?: StatewrightError) => (failure === undefined ? resolve() : reject(failure)));
  });
}
