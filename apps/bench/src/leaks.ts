/** What many runs leave behind: heap, timers and handles of the process, listeners on a signal that all of them share. */
import { getEventListeners } from "node:events";
import {
  agentTool,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  messages,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import * as z from "zod";
import { settledHeap } from "./collector.ts";
import { steadyGrowth } from "./measure.ts";
import { scratchFile } from "./scratch-files.ts";

export interface Leaks {
  readonly runs: number;
  /** Growth of the heap in bytes a run, between moments of a process that is warm: what grew once does not count. */
  readonly heapBytesPerRun: number;
  /** The same of agents as servers have them: saved, cancelled, failed, not read to the end, with an agent inside. */
  readonly agents: { readonly runs: number; readonly heapBytesPerRun: number };
  /** Timers, sockets and other handles that the process holds more than before. */
  readonly handles: number;
  /** Listeners on the signal that every run was given. */
  readonly listeners: number;
}

type Runs = (count: number, signal: AbortSignal) => Promise<void>;

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

/** Batches of runs, with a moment after each; fewer where there are hardly any runs. */
const mostBatches = 10;
const leastRunsOfBatch = 100;
/** Batches before the first moment: code is compiled, and tables get the size that they keep. */
const warmUps = 2;
/** Fewer runs of agents: each takes this many times as long. */
const briefRunsOfAgents = 15;

export async function findLeaks(runs: number): Promise<Leaks> {
  const { signal } = new AbortController();
  const before = process.getActiveResourcesInfo().length;
  const heapBytesPerRun = await growth(runs, signal, briefly);
  const agentRuns = Math.ceil(runs / briefRunsOfAgents);
  const file = scratchFile("leaks.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  try {
    const agents = { runs: agentRuns, heapBytesPerRun: await growth(agentRuns, signal, served(store)) };
    return {
      runs,
      heapBytesPerRun,
      agents,
      handles: Math.max(0, process.getActiveResourcesInfo().length - before),
      listeners: getEventListeners(signal, "abort").length,
    };
  } finally {
    store.close();
    file.remove();
  }
}

async function growth(runs: number, signal: AbortSignal, work: Runs): Promise<number> {
  const batches = Math.min(mostBatches, Math.ceil(runs / leastRunsOfBatch));
  const batch = Math.ceil(runs / batches);
  const sizes: number[] = [];
  for (let nth = 1; nth <= warmUps + batches; nth++) {
    await work(batch, signal);
    if (nth >= warmUps) sizes.push(await settledHeap());
  }
  return steadyGrowth(sizes) / batch;
}

/** Half of the runs without a store, half on a thread of a store that is thrown away with its threads. */
async function briefly(count: number, signal: AbortSignal): Promise<void> {
  let store = memoryStore();
  for (let index = 0; index < count; index++) {
    if (index % 1_000 === 0) store = memoryStore();
    const saved = index % 2 === 0 ? {} : { store };
    await run(graph, { input: { n: 0, messages: [asking] }, signal, ...saved }).result;
  }
}

/** One kind after the other, each run on a thread of its own. */
function served(store: ReturnType<typeof sqliteStore>): Runs {
  const model = (tool: string) => ({
    id: "scripted",
    respond: async (request: { readonly messages: readonly Message[] }) =>
      request.messages.length === 1
        ? { content: [{ type: "call", id: "call", name: tool, args: {} } as const], finish: "calls" as const }
        : { content: [{ type: "text", text: "Done." } as const], finish: "stop" as const },
  });
  const worker = createAgent({ name: "worker", model: model("lookup"), tools: [lookup], store });
  const asked = agentTool(worker, {
    name: "ask",
    description: "Asks a worker.",
    input: z.object({}),
    prompt: () => "Look.",
  });
  const manager = createAgent({ name: "manager", model: model("ask"), tools: [asked], store });
  const mute = createAgent({
    name: "mute",
    model: {
      id: "mute",
      respond: (_request, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", reject)),
    },
    store,
  });
  const broken = createAgent({
    name: "broken",
    model: { id: "broken", respond: () => Promise.reject(new Error("no model")) },
    retry: { attempts: 1 },
    store,
  });
  let threads = 0;
  return async (count, signal) => {
    for (let index = 0; index < count; index++) {
      const options = { thread: `thread-${threads++}`, input: "Look it up.", signal };
      const turn = index % 5;
      if (turn === 0) await worker.run(options).result;
      else if (turn === 1) await manager.run(options).result;
      else if (turn === 2) {
        const cancelled = mute.run(options);
        cancelled.on(({ type }) => (type === "model.started" ? cancelled.cancel() : undefined));
        await cancelled.result;
      } else if (turn === 3) await Promise.allSettled([broken.run(options).result]);
      else {
        const left = worker.stream(options);
        for await (const event of left) if (event.type === "model.started") break;
        await left.result;
      }
    }
  };
}
