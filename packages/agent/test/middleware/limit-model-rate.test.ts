import { createAgent, limitModelRate, modelRetry } from "@statewright/agent";
import { type Middleware, type Model, type ModelHookRuntime, StatewrightError } from "@statewright/core";
import {
  failWith,
  type ScriptedEntry,
  say,
  scriptedModel,
  type VirtualClock,
  virtualClock,
} from "@statewright/testing";
import { expect, test } from "vitest";

/** Runs that share middleware; each notes in `log` when its model is asked. */
function office(middleware: readonly Middleware[], world: VirtualClock) {
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

test("requests over the rate wait for their turn, in their order, over all runs", async () => {
  const world = virtualClock();
  const { ask, log } = office([limitModelRate({ requests: 2, perMs: 1_000 })], world);
  const runs = ["a", "b", "c", "d", "e"].map((name) => ask(name).result);
  await world.settle();
  expect(log).toEqual(["a 0", "b 0"]);
  await world.advance(2_000);
  expect(log).toEqual(["a 0", "b 0", "c 1000", "d 1000", "e 2000"]);
  expect((await Promise.all(runs)).map(({ status }) => status)).toEqual(["done", "done", "done", "done", "done"]);
  expect(world.timers).toBe(0);
});

test("who gives up while it waits takes no turn, wherever it stands, and leaves no timer", async () => {
  const world = virtualClock();
  const { ask, log } = office([limitModelRate({ requests: 1, perMs: 1_000 })], world);
  const [, b, c, d] = ["a", "b", "c", "d"].map((name) => ask(name));
  await world.settle();
  c?.cancel("enough");
  b?.cancel("enough");
  expect([(await b?.result)?.status, (await c?.result)?.status]).toEqual(["cancelled", "cancelled"]);
  await world.advance(1_000);
  expect([(await d?.result)?.status, log, world.timers]).toEqual(["done", ["a 0", "d 1000"], 0]);
});

test("by tokens a request waits until there is room for it; what the reply says of its usage counts from then on", async () => {
  const world = virtualClock();
  const { ask, log } = office([limitModelRate({ tokens: 1_000, perMs: 1_000 })], world);
  await ask("a", "x".repeat(2_400)).result;
  const runs = [ask("b", "x".repeat(2_400)).result, ask("c", "short").result];
  await world.settle();
  expect(log).toEqual(["a 0"]);
  await world.advance(1_000);
  await Promise.all(runs);
  expect(log).toEqual(["a 0", "b 1000", "c 1000"]);
});

test("a request that is larger than the whole limit waits for an empty window, and is sent", async () => {
  const world = virtualClock();
  const { ask, log } = office([limitModelRate({ tokens: 10, perMs: 1_000 })], world);
  const runs = [ask("a").result, ask("b", "x".repeat(400)).result];
  await world.advance(1_000);
  await Promise.all(runs);
  expect(log).toEqual(["a 0", "b 1000"]);
});

test("every request that goes out takes a turn: retries, fallbacks, and what hooks ask of other models", async () => {
  const world = virtualClock();
  const began = world.clock.now();
  const log: string[] = [];
  const noting = (name: string, model: Model): Model => ({
    ...model,
    respond: (request, options) => {
      log.push(`${name} ${world.clock.now() - began}`);
      return model.respond(request, options);
    },
  });
  const overloaded = failWith(Object.assign(new Error("overloaded"), { status: 529 }));
  const small = noting("small", scriptedModel([say("in short")]));
  const agent = createAgent({
    name: "a",
    model: noting("first", scriptedModel([overloaded, overloaded])),
    middleware: [
      limitModelRate({ requests: 1, perMs: 60_000 }),
      modelRetry({ attempts: 2, initialMs: 10, jitter: 0 }),
      {
        name: "asks",
        beforeModel: async (_, { ask }: ModelHookRuntime) =>
          void (await ask("short", { model: small, request: { messages: [], tools: [] } })) as undefined,
      },
    ],
    fallback: [noting("second", scriptedModel([say("ok")]))],
    // Waiting for a turn is no time of the model.
    timeouts: { totalMs: 5_000 },
  });
  const { result } = agent.run({ input: "go", world });
  await world.advance(240_000);
  expect((await result).status).toBe("done");
  expect(log).toEqual(["small 0", "first 60000", "first 120000", "second 180000"]);
});

test("a request that failed counts with the tokens that it is known to have used", async () => {
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

test("rates that are none are refused", () => {
  for (const options of [{}, { requests: 0 }, { tokens: 1.5 }, { requests: 1, perMs: 0 }, { requests: 1, perMs: 1e12 }])
    expect(() => limitModelRate(options), JSON.stringify(options)).toThrow(/invalid_option/);
});
