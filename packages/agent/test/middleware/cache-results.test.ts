import { createAgent } from "@statewright/agent";
import { cacheResults } from "@statewright/agent/middleware";
import {
  defineContext,
  defineTool,
  inject,
  type Middleware,
  memoryStore,
  readArtifact,
  type Tool,
  type ToolRuntime,
} from "@statewright/core";
import { toolSpec } from "@statewright/core/adapter";
import { call, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

test("cacheResults answers an equal call of a pure tool until the TTL ends, in any argument order", async () => {
  let runs = 0;
  const add = defineTool({
    name: "add",
    description: "Add.",
    input: z.object({ a: z.number(), b: z.number() }),
    effect: "pure",
    run: ({ a, b }) => {
      runs += 1;
      return `${a + b}, run ${runs}`;
    },
  });
  const again = call("add", { b: 2, a: 1 });
  const agent = createDesk({
    tools: [add],
    middleware: [cacheResults({ ttlMs: 1_000 })],
    script: [call("add", { a: 1, b: 2 }), again, call("add", { a: 2, b: 2 }), say("ok"), again, say("ok")],
  });
  expect(listAnswers(await agent.run().result)).toEqual(["3, run 1", "3, run 1", "4, run 2"]);
  await agent.world.advance(1_000);
  expect(listAnswers(await agent.run("again").result).at(-1)).toBe("3, run 3");
});

test("cacheResults never caches effectful tools, tools with hidden arguments, or failures", async () => {
  const log: string[] = [];
  let failures = 0;
  const mine = defineTool({
    name: "mine",
    description: "Mine.",
    input: z.object({}),
    effect: "pure",
    inject: { key: inject.secret("KEY") },
    run: () => void log.push("mine"),
  });
  const flaky = defineTool({
    name: "flaky",
    description: "Flaky.",
    input: z.object({}),
    effect: "pure",
    run: () => {
      failures += 1;
      throw new Error("no");
    },
  });
  expect(Object.keys(mine.spec.inject)).toEqual(["key"]);
  const tools = [
    createRecordingTool(log, "write", { effect: "idempotent" }),
    createRecordingTool(log, "once", { effect: "once" }),
    flaky,
  ];
  const names = ["write", "once", "flaky"];
  const round = names.map((name) => call(name, {}));
  const agent = createDesk({ tools, middleware: [cacheResults({ ttlMs: 1_000 })], script: [round, round, say("ok")] });
  await agent.run().result;
  expect([log, failures]).toEqual([["write", "once", "write", "once"], 2]);
  const hook = cacheResults({ ttlMs: 1_000 }).aroundTool;
  const result = { callId: "c", name: "mine", content: [], isError: false, attempts: 1, elapsedMs: 0 };
  const at = { call: { id: "c", name: "mine", args: {} }, tool: mine.spec };
  let made = 0;
  for (let turn = 0; turn < 2; turn++)
    await hook?.(at, async () => ({ ...result, attempts: ++made }), { clock: agent.world.clock, run: {} } as never);
  expect(made).toBe(2);
});

test("cacheResults never caches artifact pages, since each thread has its own", async () => {
  const pages: string[] = [];
  const artifactReader = readArtifact();
  const read: Tool = {
    spec: artifactReader.spec,
    call: async (_state, { run }) => {
      pages.push(run.thread ?? "");
      return `of ${run.thread}`;
    },
  };
  const asked = call("read_artifact", { artifact: "0123456789abcdef" });
  const agent = createAgent({
    name: "reader",
    model: scriptedModel([asked, say("ok"), asked, say("ok")]),
    tools: [read],
    middleware: [cacheResults({ ttlMs: 1_000 })],
    store: memoryStore(),
  });
  for (const thread of ["one", "two"]) {
    const end = await agent.run({ thread, input: "go" }).result;
    expect(listAnswers(end)).toEqual([`of ${thread}`]);
  }
  expect(pages).toEqual(["one", "two"]);
});

test("cacheResults keeps at most maxEntries and evicts the least recently used", async () => {
  const log: string[] = [];
  const texts = ["a", "b", "a", "c", "a", "b"];
  const agent = createDesk({
    tools: [createRecordingTool(log, "echo", { effect: "pure" })],
    middleware: [cacheResults({ ttlMs: 1_000, maxEntries: 2 })],
    script: [...texts.map((text) => call("echo", { text })), say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["echo a", "echo b", "echo c", "echo b"]);
});

test("cacheResults keeps at most its byte limit and skips results larger than the limit", async () => {
  const log: string[] = [];
  const page = defineTool({
    name: "page",
    description: "A page.",
    input: z.object({ of: z.string(), size: z.number() }),
    effect: "pure",
    run: ({ of, size }) => {
      log.push(of);
      return of.repeat(size);
    },
  });
  const pages = [
    ["a", 400],
    ["b", 400],
    ["a", 400],
    ["huge", 300],
    ["huge", 300],
    ["a", 400],
    ["c", 400],
    ["b", 400],
  ] as const;
  const agent = createDesk({
    tools: [page],
    middleware: [cacheResults({ ttlMs: 1_000, maxBytes: 1_400 })],
    script: [...pages.map(([of, size]) => call("page", { of, size })), say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["a", "b", "huge", "huge", "c", "b"]);
  expect(() => cacheResults({ ttlMs: 1, maxBytes: 0 })).toThrow(/invalid_option.*maxBytes/);
});

test("cacheResults refuses an invalid TTL", () => {
  for (const ttlMs of [0, -1, Number.NaN]) expect(() => cacheResults({ ttlMs })).toThrow(/invalid_option/);
});

const Shop = defineContext({ customerId: z.string() });

type Customer = { readonly customerId: string };

/** Runs an agent for each customer in turn, with two calls per run; returns the answers of the tool. */
async function serve(tool: Tool<unknown, Customer>, middleware: Middleware<Customer>, customers: readonly string[]) {
  const observed: string[] = [];
  for (const customerId of customers) {
    const agent = createAgent({
      name: "shop",
      model: scriptedModel([call(tool.spec.name, {}), call(tool.spec.name, {}), say("ok")]),
      tools: [tool],
      context: Shop,
      middleware: [middleware],
      store: memoryStore(),
    });
    observed.push(...listAnswers(await agent.run({ thread: "t", input: "go", context: { customerId } }).result));
  }
  return observed;
}

/** A class tool that reads state and context, as on the page about tools. */
class CountCart implements Tool<unknown, Customer> {
  readonly spec = toolSpec({
    name: "count_cart",
    description: "Count what the customer has in the cart.",
    input: z.object({}),
    effect: "pure",
  });
  runs = 0;
  call(_state: unknown, { context }: ToolRuntime<Customer>) {
    return `cart of ${context.customerId}, run ${++this.runs}`;
  }
}

test("a class tool that reads state and context is cached only with a scope, which keeps customers apart [FX61]", async () => {
  const customers = ["ann", "bob", "ann"];
  expect(await serve(new CountCart(), cacheResults({ ttlMs: 60_000 }), customers)).toEqual([
    "cart of ann, run 1",
    "cart of ann, run 2",
    "cart of bob, run 3",
    "cart of bob, run 4",
    "cart of ann, run 5",
    "cart of ann, run 6",
  ]);
  const scopes = {
    count_cart: ({ context }: { readonly context: { readonly customerId: string } }) => context.customerId,
  };
  expect(await serve(new CountCart(), cacheResults({ ttlMs: 60_000, scopes }), customers)).toEqual([
    "cart of ann, run 1",
    "cart of ann, run 1",
    "cart of bob, run 2",
    "cart of bob, run 2",
    "cart of ann, run 1",
    "cart of ann, run 1",
  ]);
});

test("a tool without injections shares results within a run, and between runs only with a scope [FX61]", async () => {
  const log: string[] = [];
  const profile = () =>
    defineTool({
      name: "profile",
      description: "Profile.",
      input: z.object({}),
      effect: "pure",
      run: (_args, { context }) => {
        const { customerId } = context as Customer;
        log.push(customerId);
        return customerId;
      },
    });
  const observed = await serve(profile(), cacheResults({ ttlMs: 60_000 }), ["ann", "bob", "ann"]);
  expect([observed, log]).toEqual([
    ["ann", "ann", "bob", "bob", "ann", "ann"],
    ["ann", "bob", "ann"],
  ]);
  log.length = 0;
  await serve(profile(), cacheResults({ ttlMs: 60_000, scopes: { profile: () => "all" } }), ["ann", "bob"]);
  expect(log).toEqual(["ann"]);
});

test("runs without a context do not share the results of a tool without injections [FX61]", async () => {
  let runs = 0;
  const count = defineTool({
    name: "count",
    description: "Count the runs.",
    input: z.object({}),
    effect: "pure",
    run: () => `run ${++runs}`,
  });
  const caching = cacheResults({ ttlMs: 60_000 });
  const runOnce = async () => {
    const agent = createAgent({
      name: "shop",
      model: scriptedModel([call("count", {}), call("count", {}), say("ok")]),
      tools: [count],
      middleware: [caching],
      store: memoryStore(),
    });
    return listAnswers(await agent.run({ thread: "t", input: "go" }).result);
  };
  expect([await runOnce(), await runOnce()]).toEqual([
    ["run 1", "run 1"],
    ["run 2", "run 2"],
  ]);
});

test("a tool with injections is cached by the declared scope only, and not without one [FX61]", async () => {
  let runs = 0;
  const cart = defineTool({
    name: "cart",
    description: "Cart.",
    input: z.object({}),
    effect: "pure",
    inject: { customer: Shop.from(({ customerId }) => customerId) },
    run: (_args, { injected }) => `${injected.customer} ${++runs}`,
  });
  type Source = { readonly context: { readonly customerId: string } };
  const scopes = { cart: ({ context }: Source) => (context.customerId === "eve" ? undefined : context.customerId) };
  const observed = await serve(cart, cacheResults({ ttlMs: 60_000, scopes }), ["ann", "bob", "eve"]);
  expect(observed).toEqual(["ann 1", "ann 1", "bob 2", "bob 2", "eve 3", "eve 4"]);
  expect(await serve(cart, cacheResults({ ttlMs: 60_000 }), ["ann"])).toEqual(["ann 5", "ann 6"]);
});

test("arguments that are not plain data are not cached, since a Map and a Set read as equal text [FX61]", async () => {
  let runs = 0;
  const size = defineTool({
    name: "size",
    description: "Size.",
    input: z.object({ names: z.array(z.string()).transform((names) => new Set(names)) }),
    effect: "pure",
    run: ({ names }) => `${[...names].join()} ${++runs}`,
  });
  const script = [call("size", { names: ["a"] }), call("size", { names: ["b"] }), say("ok")];
  const agent = createDesk({ tools: [size], middleware: [cacheResults({ ttlMs: 1_000 })], script });
  expect(listAnswers(await agent.run().result)).toEqual(["a 1", "b 2"]);
});

test("cacheResults refuses a scope that is not a function [FX61]", () => {
  expect(() => cacheResults({ ttlMs: 1, scopes: { cart: "ann" as never } })).toThrow(/invalid_option.*cart/);
});
