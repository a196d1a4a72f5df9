/** Leaks after many runs: heap, timers and handles of the process, listeners on a signal shared by all runs. */
import { getEventListeners } from "node:events";
import {
  agentTool,
  channel,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  memoryStore,
  run,
  START,
  sqliteStore,
  toolNode,
} from "statewright";
import * as z from "zod";
import { measureHeap } from "./collector.ts";
import { computeSteadyGrowth } from "./measure.ts";
import { createScratchFile } from "./scratch-files.ts";

export interface Leaks {
  readonly runs: number;
  /** Heap growth in bytes per run in a warm process; one-time growth does not count. */
  readonly heapBytesPerRun: number;
  /**
   * The same for agent runs as on a server: saved, cancelled, failed, with an abandoned stream, with a nested agent.
   */
  readonly agents: { readonly runs: number; readonly heapBytesPerRun: number };
  /** Number of additional timers, sockets and other handles of the process. */
  readonly handles: number;
  /** Listeners on the shared signal. */
  readonly listeners: number;
}

type RunBatch = (count: number, signal: AbortSignal) => Promise<void>;

const lookup = defineTool({
  name: "lookup",
  description: "Returns a fixed text.",
  input: z.object({}),
  effect: "pure",
  timeoutMs: 60_000,
  run: async () => "found",
});

const graph = defineGraph({ name: "brief", state: defineState({ n: z.number(), messages: channel.messages() }) })
  .nodes({
    work: { run: async (state, { signal }) => ({ n: signal.aborted ? 0 : state.n + 1 }), timeoutMs: 60_000 },
    tools: toolNode({ tools: [lookup] }),
  })
  .edges({ [START]: "work", work: "tools", tools: END });

const callMessage: Message = {
  role: "assistant",
  id: "asking",
  finish: "calls",
  content: [{ type: "call", id: "call-1", name: "lookup", args: {} }],
};

/** Batches of runs, with a heap measurement after each batch; fewer batches for few runs. */
const maxBatches = 10;
const minRunsPerBatch = 100;
/** Batches before the first heap measurement: code is compiled, and internal tables reach their final size. */
const warmUps = 2;
/** Cost of an agent run relative to a brief run; agent runs are fewer by this factor. */
const briefRunsPerAgentRun = 15;

export async function measureLeaks(runs: number): Promise<Leaks> {
  const { signal } = new AbortController();
  const resourcesBefore = process.getActiveResourcesInfo().length;
  const heapBytesPerRun = await measureGrowth(runs, signal, runBriefBatch);
  const agentRuns = Math.ceil(runs / briefRunsPerAgentRun);
  const file = createScratchFile("leaks.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  try {
    const agents = {
      runs: agentRuns,
      heapBytesPerRun: await measureGrowth(agentRuns, signal, createAgentBatch(store)),
    };
    return {
      runs,
      heapBytesPerRun,
      agents,
      handles: Math.max(0, process.getActiveResourcesInfo().length - resourcesBefore),
      listeners: getEventListeners(signal, "abort").length,
    };
  } finally {
    await store.close();
    file.remove();
  }
}

async function measureGrowth(runs: number, signal: AbortSignal, runBatch: RunBatch): Promise<number> {
  const batches = Math.min(maxBatches, Math.ceil(runs / minRunsPerBatch));
  const batch = Math.ceil(runs / batches);
  const sizes: number[] = [];
  for (let nth = 1; nth <= warmUps + batches; nth++) {
    await runBatch(batch, signal);
    if (nth >= warmUps) sizes.push(await measureHeap());
  }
  return computeSteadyGrowth(sizes) / batch;
}

/** Runs half of the runs without a store, and half on a thread of a memory store. The store is replaced regularly. */
async function runBriefBatch(count: number, signal: AbortSignal): Promise<void> {
  let store = memoryStore();
  for (let index = 0; index < count; index++) {
    if (index % 1_000 === 0) store = memoryStore();
    const saved = index % 2 === 0 ? {} : { store };
    await run(graph, { input: { n: 0, messages: [callMessage] }, signal, ...saved }).result;
  }
}

/** Cycles through the kinds of agent runs, each run on its own thread. */
function createAgentBatch(store: ReturnType<typeof sqliteStore>): RunBatch {
  const createModel = (tool: string) => ({
    id: "scripted",
    respond: async (request: { readonly messages: readonly Message[] }) =>
      request.messages.length === 1
        ? { content: [{ type: "call", id: "call", name: tool, args: {} } as const], finish: "calls" as const }
        : { content: [{ type: "text", text: "Done." } as const], finish: "stop" as const },
  });
  const worker = createAgent({ name: "worker", model: createModel("lookup"), tools: [lookup], store });
  const workerTool = agentTool(worker, {
    name: "ask",
    description: "Asks a worker.",
    input: z.object({}),
    prompt: () => "Look.",
  });
  const manager = createAgent({ name: "manager", model: createModel("ask"), tools: [workerTool], store });
  const silent = createAgent({
    name: "mute",
    model: {
      id: "mute",
      respond: (_request, { signal }) => new Promise((_resolve, reject) => signal.addEventListener("abort", reject)),
    },
    store,
  });
  const failing = createAgent({
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
        const cancelled = silent.run(options);
        cancelled.on(({ type }) => (type === "model.started" ? cancelled.cancel() : undefined));
        await cancelled.result;
      } else if (turn === 3) await Promise.allSettled([failing.run(options).result]);
      else {
        const abandoned = worker.stream(options);
        for await (const event of abandoned) if (event.type === "model.started") break;
        await abandoned.result;
      }
    }
  };
}
