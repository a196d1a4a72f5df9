/** Ledgers: entries that hooks of parallel nodes, calls and inner graphs add together. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  type Channel,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type Middleware,
  type Model,
  memoryStore,
  type NodeRuntime,
  resume,
  run,
  START,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { call } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const counter = (): Channel<number, number> =>
  channel.reduce(z.number().default(0), (sum, more: number) => sum + more) as Channel<number, number>;

/** Creates a model that answers when the test releases it. */
function createHeldModel(): Model & { readonly answer: () => void; readonly asked: number } {
  const waiting: (() => void)[] = [];
  const model = {
    id: "held",
    asked: 0,
    answer: () => waiting.shift()?.(),
    respond: () =>
      new Promise<Awaited<ReturnType<Model["respond"]>>>((resolve) => {
        model.asked += 1;
        waiting.push(() => resolve({ content: [{ type: "text", text: "ok" }], finish: "stop" }));
      }),
  };
  return model;
}

const waitForImmediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Creates middleware that limits and counts the requests in flight. */
function limitInFlight(most: number, count: Channel<number, number>): Middleware {
  return defineMiddleware({
    name: "atMost",
    inherited: true,
    channels: { count },
    beforeModel: async (_, { ledger }) => {
      const counts = ledger(count);
      while (counts.getValue() - counts.getValue({ reserved: false }) >= most) await counts.waitForChange();
      counts.reserve("request", 1);
      return undefined;
    },
    onMessage: (_, { ledger }) => ledger(count).enter("request", 1),
  });
}

/** Graph with one parallel node per name, each with one model request. */
function runSideBySide(
  model: Model,
  middleware: readonly Middleware[],
  count: Channel<number, number>,
  failing = false,
) {
  const ask = async (_: unknown, runtime: Pick<NodeRuntime, "model">) => {
    await runtime.model({ model, request: { messages: [], tools: [] } });
    if (failing) throw new Error("broken");
    return {};
  };
  return defineGraph({ name: "side_by_side", state: defineState({ count }), middleware })
    .nodes({ one: ask, two: ask, three: ask })
    .edges({ [START]: ["one", "two", "three"], one: END, two: END, three: END });
}

test("ledger entries and reservations of one node are visible to parallel nodes and become part of the channel", async () => {
  const model = createHeldModel();
  const count = counter();
  const graph = runSideBySide(model, [limitInFlight(2, count)], count);
  const { result } = run(graph, { thread: "t", input: {}, store: memoryStore() });
  await waitForImmediate();
  expect(model.asked).toBe(2);
  model.answer();
  await waitForImmediate();
  expect(model.asked).toBe(3);
  model.answer();
  model.answer();
  expect((await result).state).toEqual({ count: 3 });
});

test("a ledger entry of a failed node counts once after its retry", async () => {
  const model = createHeldModel();
  const count = counter();
  let failing = true;
  const graph = () => runSideBySide(model, [limitInFlight(3, count)], count, failing);
  const store = memoryStore();
  const first = run(graph(), { thread: "t", input: {}, store });
  await waitForImmediate();
  for (let nth = 0; nth < 3; nth++) model.answer();
  await expect(first.result).rejects.toThrow("broken");
  failing = false;
  const { state } = await resume(graph(), { thread: "t", store }).result;
  expect([state, model.asked]).toEqual([{ count: 3 }, 3]);
});

test("an abandoned model request that settles late releases no reservation of its successor", async () => {
  const model = createHeldModel();
  const count = counter();
  const seen: (() => number)[] = [];
  const reserving = defineMiddleware({
    name: "reserving",
    channels: { count },
    beforeModel: (_, { ledger }) => {
      const counts = ledger(count);
      counts.reserve("request", 1);
      seen.push(() => counts.getValue());
      return undefined;
    },
  });
  const world = createVirtualWorld();
  const ask = async (_: unknown, runtime: Pick<NodeRuntime, "model">) => {
    await runtime.model({ model, request: { messages: [], tools: [] } });
    return {};
  };
  const retry = { attempts: 2, initialMs: 1, jitter: 0 };
  const graph = defineGraph({ name: "slow", state: defineState({ count }), middleware: [reserving] })
    .nodes({ ask: { run: ask, timeoutMs: 50, retry } })
    .edges({ [START]: "ask", ask: END });
  const { result } = run(graph, { input: {}, world });
  await world.advance(60);
  expect([model.asked, seen[1]?.()]).toEqual([2, 1]);
  model.answer();
  await waitForImmediate();
  expect(seen[1]?.()).toBe(1);
  model.answer();
  expect((await result).state).toEqual({ count: 0 });
});

test("ledger entries of a removed channel are dropped with the channel", async () => {
  const model = createHeldModel();
  const count = counter();
  const store = memoryStore();
  const first = run(runSideBySide(model, [limitInFlight(3, count)], count, true), { thread: "t", input: {}, store });
  await waitForImmediate();
  for (let nth = 0; nth < 3; nth++) model.answer();
  await expect(first.result).rejects.toThrow("broken");
  const other = z.number().default(7);
  const without = defineGraph({ name: "side_by_side", state: defineState({ other }) })
    .nodes({ one: () => ({}), two: () => ({}), three: () => ({}) })
    .edges({ [START]: ["one", "two", "three"], one: END, two: END, three: END });
  expect((await resume(without, { thread: "t", store }).result).state).toEqual({ other: 7 });
});

test("an inner graph enters into the ledger channel of the outer graph", async () => {
  const model: Model = {
    id: "quick",
    respond: async () => ({ content: [{ type: "text", text: "ok" }], finish: "stop" }),
  };
  const count = counter();
  const other = defineState({ notes: z.string().default("") });
  const ask = async (_: unknown, runtime: Pick<NodeRuntime, "model">) => {
    await runtime.model({ model, request: { messages: [], tools: [] } });
    return {};
  };
  const inner = defineGraph({ name: "inner", state: other })
    .nodes({ ask })
    .edges({ [START]: "ask", ask: END });
  const outer = defineGraph({ name: "outer", state: defineState({ count }), middleware: [limitInFlight(1, count)] })
    .nodes({ one: subgraph(inner, { input: () => ({}), output: () => ({}) }), two: ask })
    .edges({ [START]: ["one", "two"], one: END, two: END });
  for (const store of [undefined, memoryStore()]) {
    const { state } = await run(outer, { thread: "t", input: {}, ...(store && { store }) }).result;
    expect(state).toEqual({ count: 2 });
  }
});

/** Tool node that answers two calls, with middleware that counts the calls. */
function createTwoCallNode(counting: Middleware, channels: { readonly [name: string]: Channel<number, number> }) {
  const work = defineTool({
    name: "work",
    description: "Works.",
    input: z.object({}),
    effect: "pure",
    run: () => "worked",
  });
  const graph = defineGraph({ name: "calls", state: defineState({ messages: channel.messages(), ...channels }) })
    .nodes({ tools: toolNode({ tools: [work], middleware: [counting] }) })
    .edges({ [START]: "tools", tools: END });
  const content = [call("work", {}, "a"), call("work", {}, "b")];
  const asking = { role: "assistant", id: "m", content, finish: "calls" } as const;
  return run(graph, { thread: "t", input: { messages: [asking] } as never }).result;
}

test("tool calls of one message share a ledger, and a released reservation no longer counts", async () => {
  const count = counter();
  const seen: number[] = [];
  const counting = defineMiddleware({
    name: "counting",
    required: true,
    beforeTool: (_, { ledger }) => {
      ledger(count).reserve("call", 1);
      seen.push(ledger(count).getValue());
      return undefined;
    },
    afterTool: ({ call: { id } }, { ledger }) => {
      if (id === "a") ledger(count).release("call");
      else ledger(count).enter("call", 5);
      return undefined;
    },
  });
  expect((await createTwoCallNode(counting, { count })).state).toMatchObject({ count: 5 });
  expect(seen).toEqual([1, 2]);
});

test("the ledger of an unknown channel, or an invalid ledger write, fails with an error that names the channel", async () => {
  const count = counter();
  const opening = (write: unknown) =>
    defineMiddleware({
      name: "opening",
      required: true,
      beforeTool: (_, { ledger }) => void ledger(count).enter("call", write as number) as undefined,
    });
  await expect(createTwoCallNode(opening(1), { other: count, count: counter() })).resolves.toMatchObject({
    state: { other: 2 },
  });
  await expect(createTwoCallNode(opening(1), {})).rejects.toThrow(
    'a hook of the node "tools" opened the ledger of a channel that neither graph "calls" nor a parent graph declares',
  );
  await expect(createTwoCallNode(opening(Symbol("x")), { count })).rejects.toThrow("unencodable_value");
});
