/** A long queue on one thread: the work per input does not grow with the queue. */
import { expect, test } from "vitest";
import * as z from "zod";
import { channel, defineGraph, defineState, END, memoryStore, run, START, type Store } from "../../../src/index.ts";

const Log = defineState({ word: z.string().default(""), log: channel.list(z.string()) });

/** Counts the calls of a store, and the rows that its lists of runs return. */
function countReads(inner: Store): { readonly store: Store; readonly counts: { calls: number; rows: number } } {
  const counts = { calls: 0, rows: 0 };
  const store: Store = {
    ...inner,
    runs: async (filter) => {
      const rows = await inner.runs(filter);
      counts.calls += 1;
      counts.rows += rows.length;
      return rows;
    },
  };
  return { store, counts };
}

/** Reads of one part of the work, per input. */
interface Reads {
  readonly rows: number;
  readonly calls: number;
}

/** Queues inputs behind a run, then runs all; returns the reads per input of both parts. */
async function measure(inputs: number): Promise<{ readonly queueing: Reads; readonly running: Reads }> {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const graph = defineGraph({ name: "g", state: Log })
    .nodes({
      note: async ({ word }) => {
        await opened;
        return { log: [word] };
      },
    })
    .edges({ [START]: "note", note: END });
  const { store, counts } = countReads(memoryStore());
  const takeReads = (): Reads => {
    const reads = { rows: counts.rows / inputs, calls: counts.calls / inputs };
    counts.rows = 0;
    counts.calls = 0;
    return reads;
  };
  const start = (word: string) => run(graph, { store, thread: "t", input: { word }, onBusy: "enqueue" });
  const results = [start("first").result];
  for (let nth = 0; nth < inputs; nth++) {
    const queued = start(`w${nth}`);
    for await (const event of queued.events()) if (event.type === "run.queued") break;
    results.push(queued.result);
  }
  const queueing = takeReads();
  open();
  const outcomes = await Promise.all(results);
  expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => "done"));
  return { queueing, running: takeReads() };
}

test("the rows that a queued input reads do not grow with the length of the queue [FX77]", async () => {
  const short = await measure(20);
  const long = await measure(80);
  for (const part of ["queueing", "running"] as const) {
    expect(long[part].rows, part).toBeLessThanOrEqual(short[part].rows + 1);
    expect(long[part].calls, part).toBeLessThanOrEqual(short[part].calls + 1);
    expect(long[part].rows, part).toBeLessThan(8);
  }
});
