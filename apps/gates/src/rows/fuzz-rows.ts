/**
 * `rows`: threads whose rows are whole in themselves and say what no process of ours has written, as a stranger could make
 * them. Whatever is asked of such a thread gives a value, or an error of ours; nothing hangs, and nothing of it becomes code.
 */
import {
  checkRuns,
  copyThread,
  defineGraph,
  defineState,
  defineTool,
  deleteThread,
  END,
  ephemeral,
  exportThread,
  fork,
  getState,
  history,
  importThread,
  isStatewrightError,
  list,
  listRuns,
  memoryStore,
  messages,
  prune,
  readEvents,
  record,
  resume,
  run,
  START,
  type Store,
  subgraph,
  type ThreadImage,
  toolNode,
  updateState,
  waiting,
} from "@statewright/core";
import { chanceOf } from "@statewright/testing";
import * as z from "zod";
import { bentImage } from "./corrupt-export.ts";

/** What some seeds came to. */
export interface RowsReport {
  readonly threads: number;
  /** How often each kind of text was bent. */
  readonly bent: Readonly<Record<string, number>>;
  /** How often each error of ours was thrown. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

const thread = "t";
const longestMs = 10_000;

const inner = defineGraph({
  name: "inner",
  state: defineState({ log: list(z.string()) }),
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
    log: list(z.string()),
    by: record(z.number()),
    seen: ephemeral(z.number()),
    any: z.unknown(),
    messages: messages(),
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
    research: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }), persistence: "kept" }),
    ask: async ({ fails }, { interrupt }) => {
      if (fails) throw new Error("it fails");
      return { log: [String((await interrupt("ok", { payload: { cents: 5 } })).ok)] };
    },
    end: () => ({ count: 1 }),
  })
  .edges({ [START]: "order", order: "tools", tools: ["research", "ask"], research: "end", ask: "end", end: END });

const answers = { ok: { ok: true }, "research.scope": true };

/** Threads that wait, have failed, are over and have a fork. */
async function soundImages(): Promise<readonly ThreadImage[]> {
  const asked = memoryStore();
  await run(shop, { store: asked, thread }).result;
  await run(shop, { store: asked, thread, onBusy: "enqueue" }).result;
  const failed = memoryStore();
  await run(shop, { store: failed, thread, input: { fails: true } }).result.catch(isOurs);
  const over = memoryStore();
  await run(shop, { store: over, thread }).result;
  await resume(shop, { store: over, thread, answers }).result;
  await fork(shop, { store: over, thread, at: await afterTools(over), name: "side" });
  await resume(shop, { store: over, thread, branch: "side" }).result;
  return Promise.all([asked, failed, over].map((store) => store.image(thread)));
}

async function afterTools(store: Store): Promise<number> {
  for await (const { checkpointId } of history(shop, { store, thread, nodes: ["tools"] })) return checkpointId;
  throw new Error("the tools have written nothing");
}

function isOurs(error: unknown): void {
  if (!isStatewrightError(error)) throw error;
}

/** What may be asked of a thread. */
const asked: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  getState: (store) => getState(shop, { store, thread }),
  history: (store) => all(history(shop, { store, thread })),
  "history of a graph inside": (store) => all(history(inner, { store, thread, within: "research" })),
  readEvents: (store) => all(readEvents({ store, thread })),
  waiting: (store) => waiting(store),
  listRuns: (store) => listRuns(store),
  checkRuns: (store) => checkRuns(store, [shop]),
  "export and import": async (store) => importThread(memoryStore(), await exportThread(store, thread)),
  resume: (store) => resume(shop, { store, thread }).result,
  answer: (store) => resume(shop, { store, thread, answers }).result,
  fork: async (store) => {
    await fork(shop, { store, thread, at: await afterTools(store), name: "forked" });
    return resume(shop, { store, thread, branch: "forked", onceElsewhere: "reuse" }).result;
  },
  "the other branch": (store) => resume(shop, { store, thread, branch: "side", answers }).result,
  rollback: (store) => run(shop, { store, thread, onBusy: "rollback" }).result,
  interrupt: (store) => run(shop, { store, thread, onBusy: "interrupt" }).result,
  updateState: (store) => updateState(shop, { store, thread, as: "end", values: { count: 2 } }),
  prune: (store) => prune(store, { keepLast: 1 }),
  copyThread: (store) => copyThread(store, thread, "copied"),
  deleteThread: (store) => deleteThread(store, thread),
};

async function all(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) if (item === undefined) return;
}

/** Bend so many threads, each a seed, and ask everything of them. */
export async function fuzzRows(count: number, from = 0): Promise<RowsReport> {
  const images = await soundImages();
  const bent: Record<string, number> = {};
  const refusals: Record<string, number> = {};
  const violations: string[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const chance = chanceOf(seed);
    const { what, image } = bentImage(chance, chance.of(images));
    bent[what] = (bent[what] ?? 0) + 1;
    const store = memoryStore();
    await store.insert(image);
    for (const [name, ask] of Object.entries(asked)) {
      const thrown = await thrownBy(() => ask(store));
      if (isStatewrightError(thrown)) refusals[thrown.code] = (refusals[thrown.code] ?? 0) + 1;
      else if (thrown !== undefined) violations.push(`seed ${seed}: ${what}: ${name}: ${stackOf(thrown)}`);
    }
    if (Object.hasOwn(Object.prototype, "polluted")) violations.push(`seed ${seed}: ${what}: a prototype was changed`);
  }
  return { threads: count, bent, refusals, violations };
}

/** What a piece of work throws; one that does not end throws that. */
async function thrownBy(work: () => Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("it does not end")), longestMs);
  });
  try {
    await Promise.race([work(), late]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
