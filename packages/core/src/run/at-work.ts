/**
 * What this process has at work and in line on the threads of a store: so that an input finds the run before it, and a run
 * that ends finds who comes next.
 */
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Store } from "../checkpoint/store.ts";
import type { RunHandle } from "./options.ts";
import type { Stopped } from "./stopped.ts";

/** A run that this process has at work. */
export interface RunAtWork {
  readonly run: string;
  readonly branch: string;
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
  /** Runs that were started here under a key, by thread and key. */
  readonly keyed: Map<string, RunHandle<unknown>>;
}

const desks: WeakMap<Store, Desk> = new WeakMap();

/** What this process does on the threads of a store. */
export function deskOf(store: Store): Desk {
  let desk = desks.get(store);
  if (desk === undefined) {
    desk = { atWork: new Map(), inLine: new Map(), keyed: new Map() };
    desks.set(store, desk);
  }
  return desk;
}

/** Those of a thread that wait in line here. */
export function inLineOn(store: Store, thread: string): readonly InLine[] {
  const { inLine } = deskOf(store);
  return inLine.size === 0 ? [] : [...inLine.values()].filter(({ row }) => row.thread === thread);
}
