/** What many runs leave behind: heap, timers and handles of the process, listeners on a signal that all of them share. */
import { getEventListeners } from "node:events";
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  messages,
  run,
  START,
  toolNode,
} from "statewright";
import * as z from "zod";
import { settledHeap, spread } from "./measure.ts";

export interface Leaks {
  readonly runs: number;
  /** Growth of the heap in bytes a run, the median of some batches: a leak is in all of them, a larger table in one. */
  readonly heapBytesPerRun: number;
  /** Timers, sockets and other handles that the process holds more than before. */
  readonly handles: number;
  /** Listeners on the signal that every run was given. */
  readonly listeners: number;
}

const lookup = defineTool({
  name: "lookup",
  description: "Looks nothing up.",
  input: z.object({}),
  effect: "pure",
  timeoutMs: 60_000,
  run: async () => "found",
});

const graph = defineGraph({ name: "brief", state: defineState({ n: z.number(), messages: messages() }) })
  .nodes({
    work: { run: async (state, { signal }) => ({ n: signal.aborted ? 0 : state.n + 1 }), timeoutMs: 60_000 },
    tools: toolNode({ tools: [lookup] }),
  })
  .edges({ [START]: "work", work: "tools", tools: END });

const asking: Message = {
  role: "assistant",
  id: "asking",
  finish: "calls",
  content: [{ type: "call", id: "call-1", name: "lookup", args: {} }],
};

const batches = 5;

/** Half of the runs without a store, half on a thread of a store that is thrown away with its threads. */
export async function findLeaks(runs: number): Promise<Leaks> {
  const { signal } = new AbortController();
  const before = process.getActiveResourcesInfo().length;
  const grown: number[] = [];
  let size = await settledHeap();
  for (let batch = 0; batch < batches; batch++) {
    await work(runs / batches, signal);
    const after = await settledHeap();
    grown.push(after - size);
    size = after;
  }
  return {
    runs,
    heapBytesPerRun: spread(grown).median / (runs / batches),
    handles: Math.max(0, process.getActiveResourcesInfo().length - before),
    listeners: getEventListeners(signal, "abort").length,
  };
}

async function work(runs: number, signal: AbortSignal): Promise<void> {
  let store = memoryStore();
  for (let index = 0; index < runs; index++) {
    if (index % 1_000 === 0) store = memoryStore();
    const saved = index % 2 === 0 ? {} : { store };
    await run(graph, { input: { n: 0, messages: [asking] }, signal, ...saved }).result;
  }
}
