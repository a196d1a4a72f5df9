import {
  decide,
  defineContext,
  defineMiddleware,
  defineState,
  defineTool,
  env,
  getMessageText,
  inject,
  type Model,
  type ModelRequest,
  memoryStore,
  type RunEvent,
  StatewrightError,
} from "@statewright/core";
import { call, failWith, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createAgent } from "../../src/index.ts";

const Shop = defineContext({ customerId: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]), refunds: z.number().default(0) });

function shopWith(calls: { count: number }) {
  return defineTool({
    name: "refund",
    description: "Return money for one order.",
    input: z.object({ orderId: z.string(), cents: z.int().positive() }),
    inject: {
      customer: Shop.from((shop) => shop.customerId),
      key: inject.secret("PAY_KEY"),
      cart: Orders.from((state) => state.cart),
    },
    effect: "idempotent",
    safety: { access: "write", spend: true },
    run: ({ orderId, cents }, { injected }) => {
      calls.count += 1;
      return {
        content: `Refunded ${cents} cents of order ${orderId}`,
        details: { customer: injected.customer, hasKey: injected.key.reveal().length > 0, cart: injected.cart },
        command: { update: { refunds: calls.count } },
      };
    },
  });
}

const given = { context: { customerId: "c1" }, secrets: { get: () => "sk-live-1" } };

test("an agent with a tool call runs model, tools, model in order", async () => {
  const calls = { count: 0 };
  const model = scriptedModel([
    [say("I look."), call("refund", { orderId: "7", cents: 900 })],
    say("Your money is on its way."),
  ]);
  const shop = createAgent({ name: "shop", model, context: Shop, state: Orders, tools: [shopWith(calls)] });
  const handle = shop.run({ thread: "t1", input: "Refund order 7", ...given });
  const events: RunEvent[] = [];
  handle.on((event) => events.push(event));
  let text = "";
  for await (const piece of handle.text()) text += piece;
  const result = await handle.result;
  expect(result.status).toBe("done");
  // Each message starts a new line.
  expect(text).toBe("I look.\nYour money is on its way.");
  expect(result.state.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(result.state.refunds).toBe(1);
  const path = events.flatMap((event) => (event.type === "transition.taken" ? [JSON.stringify(event.to)] : []));
  expect(path).toEqual([
    '{"model":"executing"}',
    '{"model":"committing"}',
    '{"tools":"executing"}',
    '{"tools":"committing"}',
    '{"model":"executing"}',
    '{"model":"committing"}',
    '"done"',
  ]);
});

test("hidden arguments and secrets reach the tool and appear in no request, message, event or row", async () => {
  const model = scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]);
  const shop = createAgent({ name: "shop", model, context: Shop, state: Orders, tools: [shopWith({ count: 0 })] });
  const seen: string[] = [];
  const handle = shop.run({
    thread: "t1",
    input: "Refund order 7",
    context: { customerId: "customer-sentinel" },
    secrets: { get: () => "secret-sentinel" },
    store: memoryStore(),
  });
  handle.on((event) => seen.push(JSON.stringify(event)));
  const { state } = await handle.result;
  const everything = JSON.stringify(model.requests) + JSON.stringify(state) + seen.join("");
  expect(everything).not.toContain("secret-sentinel");
  expect(JSON.stringify(model.requests)).not.toContain("customer");
  expect(JSON.stringify(state)).not.toContain("customer-sentinel");
});

test("a thread continues with a new input and its full conversation", async () => {
  const store = memoryStore();
  const model = scriptedModel([
    say("Hello Ada."),
    (request) => say(`You said: ${getMessageText(request.messages[0]!)}`),
  ]);
  const agent = createAgent({ name: "chat", model, store });
  await agent.run({ thread: "t1", input: "I am Ada." }).result;
  const { state } = await agent.run({ thread: "t1", input: "Who am I?" }).result;
  expect(state.messages.map(getMessageText)).toEqual(["I am Ada.", "Hello Ada.", "Who am I?", "You said: I am Ada."]);
});

test("a tool call interrupted by middleware waits for an approval in a later resume", async () => {
  const calls = { count: 0 };
  const audit = defineMiddleware({
    name: "audit",
    beforeTool: ({ call, tool }) => (tool.safety.spend ? decide.interrupt(call, "it spends money") : undefined),
  });
  const model = scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]);
  const store = memoryStore();
  const shop = createAgent({
    name: "shop",
    model,
    context: Shop,
    state: Orders,
    tools: [shopWith(calls)],
    middleware: [audit],
    store,
  });
  const first = await shop.run({ thread: "t1", input: "Refund order 7", ...given }).result;
  expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "approve", node: "tools" }] });
  expect(calls.count).toBe(0);
  const second = await shop.resume({ thread: "t1", answers: { approve: true }, ...given }).result;
  expect(second.status).toBe("done");
  expect(calls.count).toBe(1);
  expect(model.requests).toHaveLength(2);
});

test("a refused tool call is answered with the reason, and the model receives the answer", async () => {
  const audit = defineMiddleware({ name: "audit", beforeTool: ({ call }) => decide.interrupt(call, "ask first") });
  const model = scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Understood")]);
  const shop = createAgent({
    name: "shop",
    model,
    context: Shop,
    state: Orders,
    tools: [shopWith({ count: 0 })],
    middleware: [audit],
    store: memoryStore(),
  });
  await shop.run({ thread: "t1", input: "Refund order 7", ...given }).result;
  const { state } = await shop.resume({
    thread: "t1",
    answers: { approve: { approved: false, reason: "not this one" } },
    ...given,
  }).result;
  expect(getMessageText(state.messages[2]!)).toBe("A person denied this call: not this one");
});

test("model middleware wraps the model call in order and receives usage", async () => {
  const marks: string[] = [];
  const named = (name: string) =>
    defineMiddleware({
      name,
      beforeModel: () => void marks.push(`before ${name}`),
      aroundModel: async (request, next) => {
        marks.push(`in ${name}`);
        const reply = await next(request);
        marks.push(`out ${name}`);
        return reply;
      },
      afterModel: () => void marks.push(`after ${name}`),
    });
  const agent = createAgent({ name: "chat", model: scriptedModel([say("Hi")]), middleware: [named("a"), named("b")] });
  await agent.run({ input: "Hello" }).result;
  expect(marks).toEqual(["before a", "before b", "in a", "in b", "out b", "out a", "after b", "after a"]);
});

test("a model call with a retryable error is retried on the run's clock", async () => {
  const busy = new StatewrightError("model_failed", { what: "busy", next: "Wait", details: { retryable: true } });
  const model = scriptedModel([failWith(busy), say("Here I am")]);
  const agent = createAgent({ name: "chat", model });
  const world = virtualClock({ seed: 1 });
  const handle = agent.run({ input: "Hello", world });
  const retried: RunEvent[] = [];
  handle.on((event) => {
    if (event.type === "model.retried") retried.push(event);
  });
  await world.runAll();
  const { state } = await handle.result;
  expect(retried).toHaveLength(1);
  expect(state.messages.map(getMessageText)).toEqual(["Hello", "Here I am"]);
});

test("a model call with a non-retryable error fails the run at once and keeps the user message", async () => {
  const refused = new StatewrightError("model_failed", {
    what: "no such model",
    next: "Name another",
    details: { retryable: false },
  });
  const store = memoryStore();
  const agent = createAgent({ name: "chat", model: scriptedModel([failWith(refused), say("Hi")]), store });
  await expect(agent.run({ thread: "t1", input: "Hello" }).result).rejects.toMatchObject({ code: "model_failed" });
  const { state, status } = await agent.resume({ thread: "t1" }).result;
  expect(status).toBe("done");
  expect(state.messages.map(getMessageText)).toEqual(["Hello", "Hi"]);
});

test("a truncated reply runs none of its tool calls, answers each, and the model is asked again", async () => {
  const calls = { count: 0 };
  const requests: ModelRequest[] = [];
  const model: Model = {
    id: "cut",
    respond: async (request) => {
      requests.push(request);
      if (requests.length > 1) return { finish: "stop", content: [{ type: "text", text: "Shorter now." }] };
      return {
        finish: "length",
        content: [{ type: "call", id: "c1", name: "refund", args: { orderId: "7", cents: 900 } }],
      };
    },
  };
  const shop = createAgent({ name: "shop", model, context: Shop, state: Orders, tools: [shopWith(calls)] });
  const { state } = await shop.run({ input: "Refund order 7", ...given }).result;
  expect(calls.count).toBe(0);
  expect(state.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(getMessageText(state.messages[2]!)).toMatch(/cut off/);
});

test("a concurrency limit of 0 tool calls is refused", () => {
  const createInvalidAgent = () =>
    createAgent({
      name: "shop",
      model: scriptedModel([say("Hi")]),
      context: Shop,
      state: Orders,
      tools: [shopWith({ count: 0 })],
      maxToolConcurrency: 0,
    });
  expect(createInvalidAgent).toThrow(expect.objectContaining({ code: "invalid_option" }));
});

test("resume on an agent without a store fails with missing_store", () => {
  const agent = createAgent({ name: "chat", model: scriptedModel([say("Hi")]) });
  expect(() => agent.resume({ thread: "t1" })).toThrow(expect.objectContaining({ code: "missing_store" }));
});

test("the env secret source returns only the variables that it lists", async () => {
  process.env["STATEWRIGHT_TEST_KEY"] = "k";
  const source = env(["STATEWRIGHT_TEST_KEY"]);
  expect(await source.get("STATEWRIGHT_TEST_KEY")).toBe("k");
  expect(await source.get("PATH")).toBeUndefined();
  delete process.env["STATEWRIGHT_TEST_KEY"];
});

const submit = defineTool({
  name: "submit",
  description: "Hands the work in and ends the conversation.",
  input: z.object({}),
  effect: "pure",
  run: () => ({ content: "Handed in.", terminate: true }),
});
const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  effect: "pure",
  run: () => "seen",
});

test("a tool result with terminate ends the agent after its batch, answers the other calls, and makes no model request", async () => {
  const model = scriptedModel([[call("submit", {}), call("look", {})], say("never")]);
  const agent = createAgent({ name: "worker", model, tools: [submit, look] });
  const { status, state } = await agent.run({ input: "Work." }).result;
  expect(status).toBe("done");
  expect(state.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "tool"]);
  expect(model.requests).toHaveLength(1);
});

test("a denial with terminate ends the agent, and later requests on the thread do not contain its reason", async () => {
  const model = scriptedModel([call("look", {}), say("Hello again.")]);
  const stop = defineMiddleware({ name: "stop", beforeTool: () => decide.deny("not here", { terminate: true }) });
  const agent = createAgent({ name: "worker", model, tools: [look], middleware: [stop], store: memoryStore() });
  expect((await agent.run({ thread: "t", input: "Look." }).result).status).toBe("done");
  expect(model.requests).toHaveLength(1);
  const { state } = await agent.run({ thread: "t", input: "Hello?" }).result;
  expect(state.messages.map(getMessageText).at(-1)).toBe("Hello again.");
  expect(JSON.stringify(model.requests)).not.toContain("terminate");
});

test("a call of an unknown tool in an agent without tools is answered, and the conversation continues", async () => {
  const model = scriptedModel([
    [call("search", {}), call("search", {})],
    say("I cannot look."),
    say("Again: I cannot."),
  ]);
  const agent = createAgent({ name: "plain", model, store: memoryStore() });
  await agent.run({ thread: "t1", input: "Look it up" }).result;
  const { status, state } = await agent.run({ thread: "t1", input: "Please" }).result;
  expect(status).toBe("done");
  expect(state.messages.map(getMessageText)).toEqual([
    "Look it up",
    "",
    'There is no tool "search". There are no tools.',
    'There is no tool "search". There are no tools.',
    "I cannot look.",
    "Please",
    "Again: I cannot.",
  ]);
});
