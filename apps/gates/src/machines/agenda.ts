/** Simulated time: work at due times, in order of time, then of priority, then of scheduling. */
import { systemWorld } from "@statewright/core/adapter";

/** Priority of work that is due at one time: answers of services, then delays, then events from outside. */
export type Priority = 0 | 1 | 2;

interface Item {
  readonly at: number;
  readonly priority: Priority;
  readonly order: number;
  readonly work: () => void;
}

const { soon } = systemWorld().schedule;

/** Turns of the event loop without new work after which a simulation is at rest. */
const idleTurns = 3;

/** Agenda of one simulation. */
export class Agenda {
  now = 1_000_000;
  #order = 0;
  #soonCount = 0;
  readonly #items = new Set<Item>();

  /** Schedules work; the returned function cancels it. */
  add(at: number, priority: Priority, work: () => void): () => void {
    const item = { at: Math.max(this.now, at), priority, order: this.#order++, work };
    this.#items.add(item);
    return () => {
      this.#items.delete(item);
    };
  }

  /** Schedules work for the next turn of the event loop. */
  soon(work: () => void): void {
    this.#soonCount += 1;
    soon(() => {
      this.#soonCount -= 1;
      work();
    });
  }

  /** Returns the time and priority of the next work. */
  peek(): { readonly at: number; readonly priority: Priority } | undefined {
    let first: Item | undefined;
    for (const item of this.#items) if (first === undefined || compareItems(item, first) < 0) first = item;
    return first;
  }

  /** Advances to the next work due by `until`, and does it. Returns false when there is none. */
  step(until: number): boolean {
    const next = this.peek() as Item | undefined;
    if (next === undefined || next.at > until) return false;
    this.#items.delete(next);
    this.now = next.at;
    next.work();
    return true;
  }

  /** Resolves when promises and stores have settled. */
  async settle(): Promise<void> {
    for (let idle = 0; idle < idleTurns; idle++) {
      await new Promise<void>((resolve) => soon(resolve));
      if (this.#soonCount > 0) idle = 0;
    }
  }
}

function compareItems(one: Item, other: Item): number {
  return one.at - other.at || one.priority - other.priority || one.order - other.order;
}
