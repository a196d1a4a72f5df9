import { createAgent } from "@statewright/agent";
import { cacheResults } from "@statewright/agent/middleware";
import { defineTool, inject, memoryStore, readArtifact, type Tool } from "@statewright/core";
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
    await hook?.(at, async () => ({ ...result, attempts: ++made }), { clock: agent.world.clock } as never);
  expect(made).toBe(2);
});

test("cacheResults never caches artifact pages, since each thread has its own", async () => {
  const pages: string[] = [];
  const kept = readArtifact();
  const read: Tool = {
    spec: kept.spec,
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
    middleware: [cacheResults({ ttlMs: 1_000, maxBytes: 1_200 })],
    script: [...pages.map(([of, size]) => call("page", { of, size })), say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["a", "b", "huge", "huge", "c", "b"]);
  expect(() => cacheResults({ ttlMs: 1, maxBytes: 0 })).toThrow(/invalid_option.*maxBytes/);
});

test("cacheResults refuses an invalid TTL", () => {
  for (const ttlMs of [0, -1, Number.NaN]) expect(() => cacheResults({ ttlMs })).toThrow(/invalid_option/);
});
