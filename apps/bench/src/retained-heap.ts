/** What one long run holds on to: heap by superstep and by finished send, between moments of a run that goes on. */
import { defineGraph, defineState, END, route, run, START, type Store, sends, sqliteStore, task } from "statewright";
import * as z from "zod";
import { settledHeap } from "./collector.ts";
import { spread } from "./measure.ts";
import { scratchFile } from "./scratch-files.ts";

export interface Held {
  /** Supersteps or sends of each run. The heap is read after each quarter; the first one warms up. */
  readonly units: number;
  readonly bytesPerStep: number;
  readonly bytesPerSavedStep: number;
  readonly bytesPerSend: number;
}

const quarters = 4;
const sendsOfStep = 500;

/** Run so many supersteps in memory, as many saved to SQLite, and as many sends. */
export async function findHeld(units: number): Promise<Held> {
  const file = scratchFile("held.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  try {
    return {
      units,
      bytesPerStep: await perUnit(units, (read) => loop(units, read)),
      bytesPerSavedStep: await perUnit(units, (read) => loop(units, read, store)),
      bytesPerSend: await perUnit(units, (read) => fans(units, read)),
    };
  } finally {
    store.close();
    file.remove();
  }
}

/** The median of the growths between the moments at which the work reads the heap, by unit. */
async function perUnit(units: number, work: (read: () => Promise<void>) => Promise<void>): Promise<number> {
  const sizes: number[] = [];
  await work(async () => {
    sizes.push(await settledHeap());
  });
  const grown = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
  return spread(grown).median / (units / quarters);
}

/** One node, over and over. */
async function loop(steps: number, read: () => Promise<void>, store?: Store): Promise<void> {
  const looping = defineGraph({ name: "loop", state: defineState({ n: z.number() }) })
    .nodes({
      work: async (state) => {
        if ((state.n + 1) % (steps / quarters) === 0) await read();
        return { n: state.n + 1 };
      },
    })
    .edges({ [START]: "work", work: route(["work", END], (state) => (state.n < steps ? "work" : END)) });
  const saved = store === undefined ? {} : { store };
  await run(looping, { input: { n: 0 }, maxSteps: Number.POSITIVE_INFINITY, ...saved }).result;
}

/** Fans of sends that write nothing, one after the other. */
async function fans(total: number, read: () => Promise<void>): Promise<void> {
  const items = Array.from({ length: Math.min(sendsOfStep, total / quarters) }, (_, index) => index);
  const rounds = total / items.length;
  const fanning = defineGraph({ name: "fans", state: defineState({ n: z.number() }) })
    .nodes({
      split: async (state) => {
        if (state.n > 0 && state.n % (rounds / quarters) === 0) await read();
        return { n: state.n + 1 };
      },
      work: task(z.number(), () => undefined),
      again: () => undefined,
    })
    .edges({
      [START]: "split",
      split: sends("work", () => items),
      work: "again",
      again: route(["split", END], (state) => (state.n <= rounds ? "split" : END)),
    });
  await run(fanning, { input: { n: 0 }, maxSteps: Number.POSITIVE_INFINITY }).result;
}
