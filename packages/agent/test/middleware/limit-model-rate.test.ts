import { agentTool, createAgent } from "@statewright/agent";
import { limitModelRate, modelRetry } from "@statewright/agent/middleware";
import { type Middleware, type Model, type ModelHookRuntime, StatewrightError } from "@statewright/core";
import {
  call,
  failWith,
  type ScriptedEntry,
  say,
  scriptedModel,
  type VirtualClock,
  virtualClock,
} from "@statewright/testing";
import { expect, test } from "vitest";

/** Runs with shared middleware; each records its model requests in `log`. */
function createOffice(middleware: readonly Middleware[], world: VirtualClock) {
  const log: string[] = [];
  const ask = (name: string, input = name) => {
    const model = scriptedModel(() => {
      log.push(`${name} ${world.clock.now() - began}`);
      return say("ok");
    });
    return createAgent({ name, model, middleware }).run({ input, world });
  };
  const began = world.clock.now();
  return { ask, log };
}

test("model requests above the rate wait for their turn in order, across all runs", async () => {
  const world = virtualClock();
  const { ask, log } = createOffice([limitModelRate({ requests: 2, perMs: 1_000 })], world);
  const runs = ["a", "b", "c", "d", "e"].map((name) => ask(name).result);
  await world.waitUntilIdle();
  expect(log).toEqual(["a 0", "b 0"]);
  await world.advance(2_000);
  expect(log).toEqual(["a 0", "b 0", "c 1000", "d 1000", "e 2000"]);
  expect((await Promise.all(runs)).map(({ status }) => status)).toEqual(["done", "done", "done", "done", "done"]);
  expect(world.timers).toBe(0);
});

test("a run cancelled while it waits for a model rate turn takes no turn and leaves no timer", async () => {
  const world = virtualClock();
  const { ask, log } = createOffice([limitModelRate({ requests: 1, perMs: 1_000 })], world);
  const [, b, c, d] = ["a", "b", "c", "d"].map((name) => ask(name));
  await world.waitUntilIdle();
  c?.cancel("enough");
  b?.cancel("enough");
  expect([(await b?.result)?.status, (await c?.result)?.status]).toEqual(["cancelled", "cancelled"]);
  await world.advance(1_000);
  expect([(await d?.result)?.status, log, world.timers]).toEqual(["done", ["a 0", "d 1000"], 0]);
});

test("limitModelRate by tokens delays a request until it fits, and then counts the reported usage", async () => {
  const world = virtualClock();
  const { ask, log } = createOffice([limitModelRate({ tokens: 1_000, perMs: 1_000 })], world);
  await ask("a", "x".repeat(2_400)).result;
  const runs = [ask("b", "x".repeat(2_400)).result, ask("c", "short").result];
  await world.waitUntilIdle();
  expect(log).toEqual(["a 0"]);
  await world.advance(1_000);
  await Promise.all(runs);
  expect(log).toEqual(["a 0", "b 1000", "c 1000"]);
});

test("a model request larger than the whole token rate waits for an empty window and is sent", async () => {
  const world = virtualClock();
  const { ask, log } = createOffice([limitModelRate({ tokens: 10, perMs: 1_000 })], world);
  const runs = [ask("a").result, ask("b", "x".repeat(400)).result];
  await world.advance(1_000);
  await Promise.all(runs);
  expect(log).toEqual(["a 0", "b 1000"]);
});

test("every model request takes a rate turn: retries, fallbacks and auxiliary model calls", async () => {
  const world = virtualClock();
  const began = world.clock.now();
  const log: string[] = [];
  const recordRequests = (name: string, model: Model): Model => ({
    ...model,
    respond: (request, options) => {
      log.push(`${name} ${world.clock.now() - began}`);
      return model.respond(request, options);
    },
  });
  const overloaded = failWith(Object.assign(new Error("overloaded"), { status: 529 }));
  const small = recordRequests("small", scriptedModel([say("in short")]));
  const agent = createAgent({
    name: "a",
    model: recordRequests("first", scriptedModel([overloaded, overloaded])),
    middleware: [
      limitModelRate({ requests: 1, perMs: 60_000 }),
      modelRetry({ attempts: 2, initialMs: 10, jitter: 0 }),
      {
        name: "asks",
        beforeModel: async (_, { ask }: ModelHookRuntime) =>
          void (await ask("short", { model: small, request: { messages: [], tools: [] } })) as undefined,
      },
    ],
    fallback: [recordRequests("second", scriptedModel([say("ok")]))],
    // Waiting for a rate turn does not count as model time.
    timeouts: { totalMs: 5_000 },
  });
  const { result } = agent.run({ input: "go", world });
  await world.advance(240_000);
  expect((await result).status).toBe("done");
  expect(log).toEqual(["small 0", "first 60000", "first 120000", "second 180000"]);
});

test("limitModelRate counts a failed request with its known token usage", async () => {
  const world = virtualClock();
  const failing = new StatewrightError("model_failed", {
    what: "cut off",
    next: "Try again",
    details: { retryable: false, usage: { inputTokens: 900, outputTokens: 100 } },
  });
  const middleware = [limitModelRate({ tokens: 1_000, perMs: 1_000 })];
  const agent = (entry: ScriptedEntry, name: string) =>
    createAgent({ name, model: scriptedModel([entry]), middleware }).run({ input: name, world }).result;
  await expect(agent(failWith(failing), "a")).rejects.toThrow("cut off");
  const second = agent(say("ok"), "b").then(() => world.clock.now());
  const from = world.clock.now();
  await world.advance(1_000);
  expect((await second) - from).toBe(1_000);
});

/** A calling agent with one sub-agent per task in one message; returns the time of each request. */
function createFirm(tasks: number, boss: readonly Middleware[], helper: readonly Middleware[] = []) {
  const world = virtualClock();
  const began = world.clock.now();
  const sent: string[] = [];
  const note = (name: string): void => void sent.push(`${name} ${world.clock.now() - began}`);
  const helperAgent = createAgent({
    name: "helper",
    middleware: helper,
    model: scriptedModel(() => {
      note("helper");
      return say("done");
    }),
  });
  const agent = createAgent({
    name: "boss",
    middleware: boss,
    tools: [agentTool(helperAgent, { description: "Helps." })],
    model: scriptedModel(({ messages }) => {
      note("boss");
      return messages.at(-1)?.role === "user"
        ? Array.from({ length: tasks }, (_, nth) => call("helper", { task: `${nth}` }))
        : say("all done");
    }),
  });
  return { run: agent.run({ input: "go", world }), agent, world, sent };
}

test("parallel sub-agents obey the model rate of the calling agent", async () => {
  const { run, world, sent } = createFirm(4, [limitModelRate({ requests: 2, perMs: 1_000 })]);
  await world.advance(5_000);
  expect((await run.result).status).toBe("done");
  expect(sent).toEqual(["boss 0", "helper 0", "helper 1000", "helper 1000", "helper 2000", "boss 2000"]);
  expect(world.timers).toBe(0);
});

test("limitModelRate with tree false excludes sub-agents, and a shared limit counts a request once", async () => {
  const alone = createFirm(2, [limitModelRate({ requests: 1, perMs: 1_000, tree: false })]);
  await alone.world.advance(1_000);
  await alone.run.result;
  expect(alone.sent).toEqual(["boss 0", "helper 0", "helper 0", "boss 1000"]);

  const shared = limitModelRate({ requests: 1, perMs: 1_000 });
  const both = createFirm(2, [shared], [shared]);
  await both.world.advance(3_000);
  await both.run.result;
  expect(both.sent).toEqual(["boss 0", "helper 1000", "helper 2000", "boss 3000"]);
});

test.each([
  ["the narrower inside", 3, 1_000, 1, [0, 0, 1_000, 2_000, 2_000]],
  ["the narrower outside", 1, 1_000, 2, [0, 1_000, 2_000, 3_000, 4_000]],
  ["turns that come free at once outside", 4, 10_000, 1, [0, 0, 1e3, 2e3, 10e3, 11e3, 12e3, 13e3, 20e3, 21e3]],
])("the model rate of a sub-agent applies in addition to the caller's: %s", async (_, outer, perMs, inner, times) => {
  const limits = [
    () => limitModelRate({ requests: inner, perMs: 1_000 }),
    () => limitModelRate({ requests: outer, perMs }),
  ];
  // The order of creation does not matter.
  for (const isInnerFirst of [true, false]) {
    const made = (isInnerFirst ? limits : limits.toReversed()).map((limit) => limit());
    const [own, whole] = isInnerFirst ? made : made.toReversed();
    const { run, world, sent } = createFirm(times.length - 2, [whole as Middleware], [own as Middleware]);
    await world.advance(30_000);
    await run.result;
    expect(
      sent.map((each) => Number(each.split(" ")[1])),
      isInnerFirst ? "inner first" : "outer first",
    ).toEqual(times);
    expect(world.timers).toBe(0);
  }
});

test("two model rate limits listed in different orders cause no deadlock", async () => {
  const world = virtualClock();
  const one = limitModelRate({ requests: 1, perMs: 1_000 });
  const other = limitModelRate({ requests: 1, perMs: 1_500 });
  const log: string[] = [];
  const createAskingAgent = (name: string, middleware: readonly Middleware[]) =>
    createAgent({
      name,
      middleware,
      model: scriptedModel(() => {
        log.push(`${name} ${world.clock.now() - began}`);
        return say("ok");
      }),
    }).run({ input: "go", world });
  const began = world.clock.now();
  const runs = [
    createAskingAgent("a", [one, other]),
    createAskingAgent("b", [other, one]),
    createAskingAgent("c", [one, other]),
    createAskingAgent("d", [other, one]),
  ];
  await world.waitUntilIdle();
  runs[2]?.cancel("enough");
  await world.advance(10_000);
  expect((await Promise.all(runs.map(({ result }) => result))).map(({ status }) => status)).toEqual([
    "done",
    "done",
    "cancelled",
    "done",
  ]);
  expect(log.map((each) => Number(each.split(" ")[1]))).toEqual([0, 1_500, 3_000]);
  expect(world.timers).toBe(0);
});

test("a model request blocked by another hook takes no rate turn", async () => {
  const world = virtualClock();
  let isShut = true;
  const gate: Middleware = {
    name: "gate",
    required: true,
    // Outer middleware: its beforeRequest runs after the limit.
    inherited: true,
    beforeRequest: () => {
      if (isShut) throw new Error("shut");
    },
  };
  const { ask, log } = createOffice([gate, limitModelRate({ requests: 1, perMs: 1_000 })], world);
  await expect(ask("a").result).rejects.toThrow("shut");
  isShut = false;
  const { result } = ask("b");
  await world.waitUntilIdle();
  expect(log).toEqual(["b 0"]);
  expect((await result).status).toBe("done");
});

test("limitModelRate refuses invalid rates", () => {
  for (const options of [{}, { requests: 0 }, { tokens: 1.5 }, { requests: 1, perMs: 0 }, { requests: 1, perMs: 1e12 }])
    expect(() => limitModelRate(options), JSON.stringify(options)).toThrow(/invalid_option/);
});
