/**
 * `rows`: threads with valid checksums and contents that Statewright never writes. Every operation on such a thread
 * must return a value or throw a StatewrightError; no operation may hang, and no content may run as code.
 */
import {
  channel,
  checkRuns,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  getHistory,
  getState,
  isStatewrightError,
  listInterrupts,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  streamEvents,
  subgraph,
  toolNode,
  updateState,
} from "@statewright/core";
import { copyThread, deleteThread, exportThread, importThread, listRuns, pruneThread } from "@statewright/core/inspect";
import type { ThreadExport } from "@statewright/core/store";
import { createChance } from "@statewright/testing";
import * as z from "zod";
import { corruptExport } from "./corrupt-export.ts";

/** Result of a series of seeds. */
export interface RowsReport {
  readonly threads: number;
  /** Number of corruptions by kind of text. */
  readonly corrupted: Readonly<Record<string, number>>;
  /** Number of StatewrightErrors by code. */
  readonly errors: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const thread = "t";
const timeoutMs = 10_000;

const inner = defineGraph({
  name: "inner",
  state: defineState({ log: channel.list(z.string()) }),
  interrupts: { scope: z.boolean() },
})
  .nodes({
    look: () => ({ log: ["looked"] }),
    scope: async (_state, { interrupt }) => ({ log: [String(await interrupt("scope"))] }),
  })
  .edges({ [START]: "look", look: "scope", scope: END });

const pay = defineTool({
  name: "pay",
  description: "Pay",
  input: z.object({ cents: z.int() }),
  effect: "once",
  run: ({ cents }) => `paid ${cents}`,
});

const shop = defineGraph({
  name: "shop",
  state: defineState({
    count: z.number().default(0),
    fails: z.boolean().default(false),
    log: channel.list(z.string()),
    by: channel.record(z.number()),
    seen: channel.ephemeral(z.number()),
    any: z.unknown(),
    messages: channel.messages(),
  }),
  interrupts: { ok: z.object({ ok: z.boolean() }) },
})
  .nodes({
    order: async (_state, { step }) => ({
      log: [await step("noted", () => "noted")],
      by: { ann: 1 },
      seen: 1,
      any: { at: new Date(0), map: new Map([[1, 2n]]) },
      messages: {
        id: "m1",
        role: "assistant",
        finish: "calls",
        content: [{ type: "call", id: "c1", name: "pay", args: { cents: 5 } }],
      },
    }),
    tools: toolNode({ tools: [pay] }),
    research: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "per-thread" }),
    ask: async ({ fails }, { interrupt }) => {
      if (fails) throw new Error("it fails");
      return { log: [String((await interrupt("ok", { payload: { cents: 5 } })).ok)] };
    },
    end: () => ({ count: 1 }),
  })
  .edges({ [START]: "order", order: "tools", tools: ["research", "ask"], research: "end", ask: "end", end: END });

const answers = { ok: { ok: true }, "research.scope": true };

/** Creates threads with waiting, failed and finished runs, and with a fork. */
async function createExports(): Promise<readonly ThreadExport[]> {
  const waitingStore = memoryStore();
  await run(shop, { store: waitingStore, thread }).result;
  await run(shop, { store: waitingStore, thread, onBusy: "enqueue" }).result;
  const failedStore = memoryStore();
  await run(shop, { store: failedStore, thread, input: { fails: true } }).result.catch(checkStatewrightError);
  const finishedStore = memoryStore();
  await run(shop, { store: finishedStore, thread }).result;
  await resume(shop, { store: finishedStore, thread, answers }).result;
  await fork(shop, { store: finishedStore, thread, at: await findToolsCheckpoint(finishedStore), name: "side" });
  await resume(shop, { store: finishedStore, thread, branch: "side" }).result;
  return Promise.all([waitingStore, failedStore, finishedStore].map((store) => store.exportThread(thread)));
}

async function findToolsCheckpoint(store: Store): Promise<number> {
  for await (const { checkpointId } of getHistory(shop, { store, thread, nodes: ["tools"] })) return checkpointId;
  throw new Error('expected a checkpoint of the node "tools", got none');
}

function checkStatewrightError(error: unknown): void {
  if (!isStatewrightError(error)) throw error;
}

/** Operations on a thread. */
const operations: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  getState: (store) => getState(shop, { store, thread }),
  history: (store) => drain(getHistory(shop, { store, thread })),
  "history of a subgraph": (store) => drain(getHistory(inner, { store, thread, nesting: "research" })),
  readEvents: (store) => drain(streamEvents({ store, thread })),
  waiting: (store) => listInterrupts(store),
  listRuns: (store) => listRuns(store),
  checkRuns: (store) => checkRuns(store, [shop]),
  "export and import": async (store) => importThread(memoryStore(), await exportThread(store, thread)),
  resume: (store) => resume(shop, { store, thread }).result,
  answer: (store) => resume(shop, { store, thread, answers }).result,
  fork: async (store) => {
    await fork(shop, { store, thread, at: await findToolsCheckpoint(store), name: "forked" });
    return resume(shop, { store, thread, branch: "forked", onPriorEffect: "reuse" }).result;
  },
  "the other branch": (store) => resume(shop, { store, thread, branch: "side", answers }).result,
  rollback: (store) => run(shop, { store, thread, onBusy: "rollback" }).result,
  interrupt: (store) => run(shop, { store, thread, onBusy: "cancel" }).result,
  updateState: (store) => updateState(shop, { store, thread, as: "end", values: { count: 2 } }),
  prune: (store) => pruneThread(store, { keepLast: 1 }),
  copyThread: (store) => copyThread(store, thread, "copied"),
  deleteThread: (store) => deleteThread(store, thread),
};

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) if (item === undefined) return;
}

/** Corrupts `count` threads, one per seed, and runs all operations on each. */
export async function fuzzRows(count: number, from = 0): Promise<RowsReport> {
  const threadExports = await createExports();
  const bent: Record<string, number> = {};
  const refusals: Record<string, number> = {};
  const violations: string[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const chance = createChance(seed);
    const { kind, threadExport } = corruptExport(chance, chance.pick(threadExports));
    bent[kind] = (bent[kind] ?? 0) + 1;
    const store = memoryStore();
    await store.importThread(threadExport);
    for (const [name, runOperation] of Object.entries(operations)) {
      const thrown = await catchThrown(() => runOperation(store));
      if (isStatewrightError(thrown)) refusals[thrown.code] = (refusals[thrown.code] ?? 0) + 1;
      else if (thrown !== undefined) violations.push(`seed ${seed}: ${kind}: ${name}: ${formatThrown(thrown)}`);
    }
    if (Object.hasOwn(Object.prototype, "polluted")) violations.push(`seed ${seed}: ${kind}: a prototype was changed`);
  }
  return { threads: count, corrupted: bent, errors: refusals, violations };
}

/** Returns the thrown value of some work; an error after a timeout. */
async function catchThrown(work: () => Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`expected an end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([work(), timeout]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

function formatThrown(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
