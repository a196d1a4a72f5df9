/** Heap retained by one long run, per superstep and per finished send, measured during the run. */
import {
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  route,
  run,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import * as z from "zod";
import { measureHeap } from "./collector.ts";
import { computeSpread } from "./measure.ts";
import { createScratchFile } from "./scratch-files.ts";

export interface RetainedHeap {
  /** Supersteps or sends per run. The heap is measured after each quarter; the first quarter is the warm-up. */
  readonly units: number;
  readonly bytesPerStep: number;
  readonly bytesPerSavedStep: number;
  readonly bytesPerSend: number;
}

const quarters = 4;
const sendsPerStep = 500;

/** Runs `units` supersteps in memory, `units` supersteps saved to SQLite, and `units` sends. */
export async function measureRetainedHeap(units: number): Promise<RetainedHeap> {
  const file = createScratchFile("held.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  try {
    return {
      units,
      bytesPerStep: await measurePerUnit(units, (readHeap) => runLoop(units, readHeap)),
      bytesPerSavedStep: await measurePerUnit(units, (read) => runLoop(units, read, store)),
      bytesPerSend: await measurePerUnit(units, (read) => runFanOuts(units, read)),
    };
  } finally {
    await store.close();
    file.remove();
  }
}

/** Returns the median heap growth between two heap measurements, per unit. */
async function measurePerUnit(units: number, work: (readHeap: () => Promise<void>) => Promise<void>): Promise<number> {
  const sizes: number[] = [];
  await work(async () => {
    sizes.push(await measureHeap());
  });
  const growths = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
  return computeSpread(growths).median / (units / quarters);
}

/** Runs one node in a loop. */
async function runLoop(steps: number, readHeap: () => Promise<void>, store?: Store): Promise<void> {
  const graph = defineGraph({ name: "loop", state: defineState({ n: z.number() }) })
    .nodes({
      work: async (state) => {
        if ((state.n + 1) % (steps / quarters) === 0) await readHeap();
        return { n: state.n + 1 };
      },
    })
    .edges({ [START]: "work", work: route(["work", END], (state) => (state.n < steps ? "work" : END)) });
  const saved = store === undefined ? {} : { store };
  await run(graph, { input: { n: 0 }, maxSteps: Number.POSITIVE_INFINITY, ...saved }).result;
}

/** Runs fan-outs in sequence; their sends write nothing. */
async function runFanOuts(total: number, readHeap: () => Promise<void>): Promise<void> {
  const items = Array.from({ length: Math.min(sendsPerStep, total / quarters) }, (_, index) => index);
  const rounds = total / items.length;
  const graph = defineGraph({ name: "fans", state: defineState({ n: z.number() }) })
    .nodes({
      split: async (state) => {
        if (state.n > 0 && state.n % (rounds / quarters) === 0) await readHeap();
        return { n: state.n + 1 };
      },
      work: inputNode(z.number(), () => undefined),
      again: () => undefined,
    })
    .edges({
      [START]: "split",
      split: fanOut("work", () => items),
      work: "again",
      again: route(["split", END], (state) => (state.n <= rounds ? "split" : END)),
    });
  await run(graph, { input: { n: 0 }, maxSteps: Number.POSITIVE_INFINITY }).result;
}
