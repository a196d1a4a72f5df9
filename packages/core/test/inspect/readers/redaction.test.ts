/** Redaction by readers: texts and patterns of the caller, texts that look like keys, values under secret names. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  userMessage,
} from "../../../src/index.ts";
import {
  blame,
  compareBranches,
  createThread,
  diffStates,
  getRun,
  getStateAt,
  getSuperstep,
  isSuperstep,
  listInterrupts,
  listRuns,
  listSupersteps,
  listThreads,
  previewFork,
  searchThreads,
  streamEvents,
} from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";

const card = "4111111111111111";
const key = "sk-live-abcdefghijklmnop";
const password = "hunter2";
const secrets = [card, key, password];

const Order = defineState({
  note: z.string().optional(),
  log: channel.list(z.unknown()),
  messages: channel.messages(),
});

const order = defineGraph({ name: "order", state: Order, interrupts: { ok: z.object({ note: z.string() }) } })
  .nodes({
    note: () => ({ note: `${card} ${key}`, log: [{ password }], messages: [userMessage(`pay ${card}`)] }),
    ask: async (_state, { interrupt, step }) => {
      await step(`mail ${card}`, () => key, { effect: "once" });
      const { note } = await interrupt("ok", { payload: { card, key, password } });
      return { log: [note] };
    },
    fail: () => {
      throw new Error(`no account ${card}`);
    },
  })
  .edges({ [START]: "note", note: "ask", ask: "fail", fail: END });

/** Runs the graph to an answered interrupt and a failure on `main`, and to an open interrupt on `other`. */
async function saveOrders(): Promise<{ readonly store: Store; readonly runId: string }> {
  const store = memoryStore();
  const thread = "t";
  await createThread(store, { thread, title: `order of ${card}`, metadata: { card } });
  const handle = run(order, { store, thread, input: {}, metadata: { card, password } });
  await handle.result;
  const answers = { ok: { note: `${card} ${key}` } };
  await getFailure(resume(order, { store, thread, answers, by: `kim ${card}` }).result, "node_failed");
  await fork(order, { store, thread, at: 2, name: "other" });
  await resume(order, { store, thread, branch: "other", onPriorEffect: "repeat" }).result;
  return { store, runId: handle.id };
}

async function collect<Value>(stream: AsyncIterable<Value>): Promise<readonly Value[]> {
  const values: Value[] = [];
  for await (const value of stream) values.push(value);
  return values;
}

interface Redacting {
  readonly redact?: readonly (string | RegExp)[];
}

const thread = "t";

/** Readers with the secrets that their results have as saved. */
const readers: Readonly<
  Record<string, readonly [read: (store: Store, runId: string, redact: Redacting) => Promise<unknown>, shown: string[]]>
> = {
  listSupersteps: [(store, _run, redact) => listSupersteps(store, { thread, ...redact }), secrets],
  getSuperstep: [
    async (store, _run, redact) => {
      const rows = (await listSupersteps(store, { thread })).filter(isSuperstep);
      return await Promise.all(rows.map(({ id }) => getSuperstep(store, { thread, checkpoint: id, ...redact })));
    },
    secrets,
  ],
  getStateAt: [(store, _run, redact) => getStateAt(store, { thread, ...redact }), secrets],
  diffStates: [(store, _run, redact) => diffStates(store, { thread, from: 1, to: 3, ...redact }), secrets],
  blame: [(store, _run, redact) => blame(store, { thread, branch: "main", path: "/log/1", ...redact }), [card]],
  compareBranches: [
    (store, _run, redact) => compareBranches(store, { thread, a: "main", b: "other", ...redact }),
    [card, key],
  ],
  previewFork: [(store, _run, redact) => previewFork(store, { thread, at: 2, ...redact }), [card]],
  searchThreads: [(store, _run, redact) => searchThreads(store, { text: "pay", ...redact }), [card]],
  streamEvents: [(store, _run, redact) => collect(streamEvents({ store, thread, ...redact })), secrets],
  listInterrupts: [(store, _run, redact) => listInterrupts(store, redact), secrets],
  listThreads: [(store, _run, redact) => listThreads(store, redact), [card]],
  listRuns: [(store, _run, redact) => listRuns(store, redact), [card, password]],
  getRun: [(store, runId, redact) => getRun(store, runId, redact), [card, password]],
};

for (const [name, [read, shown]] of Object.entries(readers))
  test(`${name} hides given texts, texts that look like keys and values under secret names [ND17]`, async () => {
    const { store, runId } = await saveOrders();
    const saved = JSON.stringify(await read(store, runId, {}));
    expect(shown.filter((secret) => !saved.includes(secret))).toEqual([]);
    for (const redact of [[card], [/\b\d{16}\b/]]) {
      const redacted = JSON.stringify(await read(store, runId, { redact }));
      expect(secrets.filter((secret) => redacted.includes(secret))).toEqual([]);
    }
    const withoutTexts = JSON.stringify(await read(store, runId, { redact: [] }));
    expect(secrets.filter((secret) => withoutTexts.includes(secret))).toEqual(shown.filter((each) => each === card));
    await getFailure(read(store, runId, { redact: ["abc"] }), "invalid_option");
  });

test("streamEvents hides tool data by the policies of the given tools [ND17]", async () => {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({ card: z.string() }),
    safety: { redact: { args: ["card"], result: (text) => text.replaceAll(/\d{4}/g, "####") } },
    run: async ({ card: given }) => `paid with ${given}`,
  });
  const store = memoryStore();
  const loop = createToolLoop({ store, tools: [pay], turns: [[call("pay", { card: "4111" }, "c1")], ["done"]] });
  await loop.start().result;
  expect(JSON.stringify(await collect(streamEvents({ store, thread })))).toContain("4111");
  expect(JSON.stringify(await collect(streamEvents({ store, thread, tools: [pay] })))).not.toContain("4111");
});
