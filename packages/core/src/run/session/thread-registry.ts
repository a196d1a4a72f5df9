/**
 * What this process has at work and in line on the threads of a store: so that an input finds the run before it, and a run
 * that ends finds who comes next.
 */
import type { RunRow } from "../../checkpoint/checkpoint.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { RunHandle } from "./options.ts";
import type { Stopped } from "./preemption.ts";

/** A run that this process has at work. */
export interface RunAtWork {
  readonly run: string;
  readonly branch: string;
  readonly key: string | undefined;
  readonly handle: RunHandle<unknown> | undefined;
  readonly stop: (why: Stopped) => void;
  /** Letters with these ids have come that steer it. */
  readonly arrived: (ids: readonly string[]) => void;
}

/** A queued run whose caller waits for it in this process. */
export interface InLine {
  readonly row: RunRow;
  /** Its turn has come. */
  readonly begin: () => void;
  /** Its turn may come in another process, or much later: its caller is told that it is queued. */
  readonly leave: () => void;
}

interface Desk {
  readonly atWork: Map<string, RunAtWork>;
  readonly inLine: Map<string, InLine>;
  /** Threads that runs are about to take here, and how many are. */
  readonly opening: Map<string, number>;
  /** Queued runs that are about to begin here. */
  readonly beginning: Map<string, Beginning>;
  /** Runs that were started here under a key, by thread and key. */
  readonly keyed: Map<string, RunHandle<unknown>>;
}

/** A queued run that is about to begin: whether its turn has come once more since it last looked. */
export interface Beginning {
  again: boolean;
}

const desks: WeakMap<Store, Desk> = new WeakMap();

/** What this process does on the threads of a store. */
export function deskOf(store: Store): Desk {
  let desk = desks.get(store);
  if (desk === undefined) {
    desk = { atWork: new Map(), inLine: new Map(), opening: new Map(), beginning: new Map(), keyed: new Map() };
    desks.set(store, desk);
  }
  return desk;
}

/** Whether a run has a thread here, or is about to take it: who comes next is looked for when that has ended. */
export function isBusyHere(store: Store, thread: string): boolean {
  const { atWork, opening } = deskOf(store);
  return atWork.has(thread) || opening.has(thread);
}

/** The handle of the run that is at work here under a key, whatever has begun it. */
export function atWorkUnder(store: Store, thread: string, key: string): RunHandle<unknown> | undefined {
  const { keyed, atWork } = deskOf(store);
  const here = atWork.get(thread);
  return keyed.get(`${thread} ${key}`) ?? (here?.key === key ? here.handle : undefined);
}

/** Those of a thread that wait in line here. */
export function inLineOn(store: Store, thread: string): readonly InLine[] {
  const { inLine } = deskOf(store);
  return inLine.size === 0 ? [] : [...inLine.values()].filter(({ row }) => row.thread === thread);
}
