import { createAgent } from "@statewright/agent";
import { cacheReplies, promptCache } from "@statewright/agent/middleware";
import { defineContext, getMessageText, type Middleware, memoryStore } from "@statewright/core";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createRecordingTool } from "../support/desk.ts";

/** Creates agents with shared middleware; each question has its own thread. */
function createOffice(middleware: readonly Middleware[]) {
  const world = virtualClock();
  const store = memoryStore();
  let threads = 0;
  let asked = 0;
  const model = scriptedModel(() => say(`answer ${++asked}`));
  const ask = async (input: string, more: { readonly model?: typeof model; readonly instructions?: string } = {}) => {
    const agent = createAgent({ name: "a", model, middleware, store, ...more });
    const { state } = await agent.run({ thread: `t${++threads}`, input, world }).result;
    const last = state.messages.at(-1);
    return last?.role === "assistant" ? { text: getMessageText(last), usage: last.usage } : undefined;
  };
  return { ask, model, world, store };
}

test("cacheReplies answers an equal request once, and a cached reply has no usage", async () => {
  const { ask, model } = createOffice([cacheReplies({ ttlMs: 1_000 })]);
  expect(await ask("hi")).toMatchObject({ text: "answer 1", usage: { inputTokens: expect.any(Number) } });
  expect(await ask("hi")).toEqual({ text: "answer 1", usage: undefined });
  expect([(await ask("ho"))?.text, model.requests.length]).toEqual(["answer 2", 2]);
});

test("cacheReplies treats other instructions, models or settings as different requests", async () => {
  const { ask, model } = createOffice([cacheReplies({ ttlMs: 1_000 })]);
  await ask("hi");
  await ask("hi", { instructions: "Be brief." });
  const other = scriptedModel(() => say("other"), { id: "other" });
  expect((await ask("hi", { model: other }))?.text).toBe("other");
  expect([model.requests.length, other.requests.length]).toEqual([2, 1]);
});

test("cacheReplies ignores prompt cache marks when it compares requests", async () => {
  const { ask, model } = createOffice([promptCache(), cacheReplies({ ttlMs: 1_000 })]);
  await ask("hi");
  expect([(await ask("hi"))?.text, model.requests.length]).toEqual(["answer 1", 1]);
});

test("cacheReplies expires a reply after its TTL and evicts the oldest at capacity", async () => {
  const { ask, model, world } = createOffice([cacheReplies({ ttlMs: 1_000, maxEntries: 2 })]);
  await ask("a");
  await world.advance(1_000);
  expect((await ask("a"))?.text).toBe("answer 2");
  await ask("b");
  await ask("a");
  await ask("c");
  expect([(await ask("a"))?.text, (await ask("b"))?.text, model.requests.length]).toEqual(["answer 2", "answer 5", 5]);
});

test("cacheReplies does not store a reply larger than its capacity", async () => {
  const { ask, model } = createOffice([cacheReplies({ ttlMs: 1_000, maxBytes: 10 })]);
  await ask("a");
  expect([(await ask("a"))?.text, model.requests.length]).toEqual(["answer 2", 2]);
});

test("tool calls of a cached reply are executed like all others", async () => {
  const log: string[] = [];
  const model = scriptedModel((request) => (request.messages.length === 1 ? call("ping", { text: "x" }) : say("ok")));
  const middleware = [cacheReplies({ ttlMs: 1_000 })];
  const agent = createAgent({ name: "a", model, tools: [createRecordingTool(log, "ping")], middleware });
  await agent.run({ input: "go" }).result;
  const { state } = await agent.run({ input: "go" }).result;
  expect([model.requests.length, log, state.messages.length]).toEqual([2, ["ping x", "ping x"], 4]);
});

test("cached replies in the long-term store are found by other processes and committed with the superstep", async () => {
  const shared = createOffice([cacheReplies({ ttlMs: 1_000, namespace: ["replies"] })]);
  await shared.ask("hi");
  const model = scriptedModel(() => say("never"));
  const agent = createAgent({
    name: "a",
    model,
    store: shared.store,
    middleware: [cacheReplies({ ttlMs: 9, namespace: ["replies"] })],
  });
  const { state } = await agent.run({ thread: "other", input: "hi", world: shared.world }).result;
  expect([state.messages.length, model.requests.length]).toEqual([2, 0]);
  await shared.world.advance(1_000);
  expect((await shared.ask("hi"))?.text).toBe("answer 2");
});

test("cacheReplies refuses invalid options", () => {
  for (const options of [
    {},
    { ttlMs: 0 },
    { ttlMs: 5, maxEntries: 0 },
    { ttlMs: 5, maxBytes: 0.5 },
    { ttlMs: 5, namespace: "x" },
    { ttlMs: 5, store: 1 },
  ])
    expect(() => cacheReplies(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});

test("requests with other headers, or of another scope, do not share a cached reply [FX61]", async () => {
  let asked = 0;
  const model = scriptedModel(() => say(`answer ${++asked}`));
  const Tenant = defineContext({ tenant: z.string() });
  type Source = { readonly context: { readonly tenant: string } };
  const scope = ({ context }: Source) => (context.tenant === "none" ? undefined : context.tenant);
  const serve = async (
    middleware: Middleware<{ readonly tenant: string }>,
    tenant: string,
    headers?: Record<string, string>,
  ) => {
    const agent = createAgent({
      name: "a",
      model,
      context: Tenant,
      middleware: [middleware],
      ...(headers === undefined ? {} : { settings: { headers } }),
    });
    const { state } = await agent.run({ input: "hi", context: { tenant } }).result;
    const last = state.messages.at(-1);
    return last?.role === "assistant" ? getMessageText(last) : undefined;
  };
  const scoped = cacheReplies({ ttlMs: 1_000, scope });
  const observed: unknown[] = [];
  for (const tenant of ["a", "b", "a", "none", "none"]) observed.push(await serve(scoped, tenant));
  expect(observed).toEqual(["answer 1", "answer 2", "answer 1", "answer 3", "answer 4"]);
  const shared = cacheReplies({ ttlMs: 1_000 });
  const withKey = (key: string) => serve(shared, "a", { authorization: key });
  expect([await withKey("one"), await withKey("two"), await withKey("one")]).toEqual([
    "answer 5",
    "answer 6",
    "answer 5",
  ]);
});
