/**
 * `once` effects of other branches. A branch goes on from a checkpoint as if nothing had come after it; what may happen
 * once, and came after it on another branch, has happened all the same (rule E44). So before a branch does such a thing, the
 * journals of its relatives are looked at: of the branches that come from the same checkpoint as it does, at the same step
 * of the same line.
 */
import { type EffectRow, inFlight } from "../../checkpoint/journal.ts";
import type { Store } from "../../checkpoint/store.ts";
import { linesSinceEver } from "../migration/previous-namespaces.ts";
import type { Saved, Session, ThreadAtWork } from "../session/session.ts";

/** An effect that has happened on another branch, or has started there. */
export interface Elsewhere {
  readonly branch: string;
  /** The branch, or the child line of it. */
  readonly line: string;
  readonly row: EffectRow;
}

/** The branches that come from the same checkpoint, by the thread at work: none of the most. */
const relatives: WeakMap<ThreadAtWork, Promise<readonly string[]> | readonly string[]> = new WeakMap();

/** What the relatives of a line have in the journal of its step, until the line has come to the next. */
const journals: WeakMap<Saved, { readonly step: number; readonly rows: Promise<readonly Elsewhere[]> }> = new WeakMap();

/**
 * The `once` effects of the current step on other branches. Nothing, and nothing to wait for, when the run is to repeat them
 * or the thread is known to have one branch.
 */
export function onceElsewhere(session: Session, saved: Saved): Promise<readonly Elsewhere[]> | undefined {
  if (session.onceElsewhere === "repeat") return undefined;
  const known = relatives.get(saved.thread);
  return Array.isArray(known) && known.length === 0 ? undefined : journalOf(session, saved);
}

async function journalOf(session: Session, saved: Saved): Promise<readonly Elsewhere[]> {
  const branches = await relativesOf(session, saved);
  if (branches.length === 0) return [];
  const { step } = session;
  let known = journals.get(saved);
  if (known?.step !== step) {
    known = { step, rows: readJournals(session, saved, branches) };
    journals.set(saved, known);
  }
  return await known.rows;
}

async function relativesOf({ run: { thread, branch } }: Session, saved: Saved): Promise<readonly string[]> {
  const known = relatives.get(saved.thread) ?? findRelatives(saved.store, thread, branch);
  relatives.set(saved.thread, known);
  const found = await known;
  relatives.set(saved.thread, found);
  return found;
}

async function findRelatives(store: Store, thread: string, branch: string): Promise<readonly string[]> {
  const branches = await store.branches(thread);
  if (branches.length < 2) return [];
  const origins = new Map<string, string | undefined>();
  for (const { name, from } of branches)
    origins.set(name, from === undefined ? undefined : ((await store.checkpoint(thread, from))?.branch ?? unknown));
  const first = (name: string): string => {
    const origin = origins.get(name);
    return origin === undefined ? name : first(origin);
  };
  const mine = first(branch);
  return branches.flatMap(({ name }) => {
    const theirs = first(name);
    return name !== branch && (theirs === mine || theirs === unknown || mine === unknown) ? [name] : [];
  });
}

/** Where a branch came from whose first checkpoint is gone: it may have been anywhere. */
const unknown = "";

/** The line of an inner graph has the same name on every branch, after that of the branch, or one that it had before. */
async function readJournals(
  session: Session,
  { store }: Saved,
  branches: readonly string[],
): Promise<readonly Elsewhere[]> {
  const { run, step } = session;
  const found: Elsewhere[] = [];
  for (const within of linesSinceEver(session))
    for (const branch of branches)
      for (const row of await store.effects(run.thread, branch + within, step))
        if (row.effect === "once" && (row.outcome !== undefined || inFlight(row)))
          found.push({ branch, line: branch + within, row });
  return found;
}

/** Of what stands for the same effect the best: what has an outcome, before what has only started; of starts the last, before which the others were asked about. */
export function bestOf(found: readonly Elsewhere[]): Elsewhere | undefined {
  const [first, ...others] = found;
  if (first === undefined) return undefined;
  const last = others.reduce((one, other) => (other.row.startedAt >= one.row.startedAt ? other : one), first);
  return found.find(({ row }) => row.outcome !== undefined) ?? last;
}

/** What a question about them is about: an answer to it counts for no start that came later, and for no outcome that came since. */
export function aboutElsewhere(found: readonly Elsewhere[]): string {
  return found.map(({ line, row: { state, startedAt } }) => `${line} ${state} ${startedAt}`).join(", ");
}
