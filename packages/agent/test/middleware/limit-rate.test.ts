import { limitRate } from "@statewright/agent/middleware";
import { decide, defineMiddleware } from "@statewright/core";
import { call, say, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

const four = ["a", "b", "c", "d"].map((text) => call("ping", { text }));

test("tool calls above the rate wait for their turn in order, on the run's clock", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "ping")],
    middleware: [limitRate({ calls: 2, perMs: 1_000 })],
    script: [four, say("ok")],
  });
  const result = agent.run().result;
  await agent.world.waitUntilIdle();
  expect(log).toEqual(["ping a", "ping b"]);
  await agent.world.advance(999);
  expect(log).toHaveLength(2);
  await agent.world.advance(1);
  expect(log).toEqual(["ping a", "ping b", "ping c", "ping d"]);
  expect([(await result).status, agent.world.timers]).toEqual(["done", 0]);
});

test("a cancelled run stops waiting for its rate turn: no further call runs, and no timer remains", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "ping")],
    middleware: [limitRate({ calls: 2, perMs: 1_000 })],
    script: [four, say("ok")],
  });
  const handle = agent.run();
  await agent.world.waitUntilIdle();
  handle.cancel("enough");
  const end = await handle.result;
  expect([end.status, log, agent.world.timers]).toEqual(["cancelled", ["ping a", "ping b"], 0]);
  expect(listAnswers(end).map((text) => text.startsWith("!"))).toEqual([false, false, true, true]);
});

test("the rate turn of a cancelled waiting call goes to another call, also in another run", async () => {
  const log: string[] = [];
  const middleware = [limitRate({ calls: 1, perMs: 1_000 })];
  const world = virtualClock();
  const tools = [createRecordingTool(log, "ping")];
  const script = (text: string) => [call("ping", { text }), say("ok")];
  const first = createDesk({ tools, middleware, world, script: script("first") }).run();
  await first.result;
  const given = createDesk({ tools, middleware, world, script: script("given up") }).run();
  await world.waitUntilIdle();
  const behind = createDesk({ tools, middleware, world, script: script("behind") }).run().result;
  await world.waitUntilIdle();
  given.cancel("enough");
  await given.result;
  await world.advance(999);
  expect(log).toEqual(["ping first"]);
  await world.advance(1);
  expect([(await behind).status, log, world.timers]).toEqual(["done", ["ping first", "ping behind"], 0]);
});

test("limitRate with over refuse answers calls above the rate with the retry time, and unlisted tools are free", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "ping"), createRecordingTool(log, "free")],
    middleware: [limitRate({ calls: 2, perMs: 1_000, tools: ["ping"], atLimit: "refuse" })],
    script: [[...four, call("free", {})], say("ok")],
  });
  const end = await agent.run().result;
  expect(listAnswers(end).slice(2)).toEqual([
    '!Too many calls of "ping". Try again in 1000 ms.',
    '!Too many calls of "ping". Try again in 1000 ms.',
    "free done",
  ]);
  expect(log).toEqual(["ping a", "ping b", "free"]);
});

test("a tool call with modified arguments takes one rate turn", async () => {
  for (const over of ["wait", "refuse"] as const) {
    const log: string[] = [];
    const louder = { name: "louder", beforeTool: () => decide.modify({ text: "A" }) };
    const agent = createDesk({
      tools: [createRecordingTool(log, "ping")],
      middleware: [limitRate({ calls: 1, perMs: 1_000, atLimit: over }), louder],
      script: [call("ping", { text: "a" }), say("ok")],
    });
    expect((await agent.run().result).status).toBe("done");
    expect(log).toEqual(["ping A"]);
  }
});

test("a tool call refused by an earlier hook takes no rate turn", async () => {
  const log: string[] = [];
  const noX = defineMiddleware({
    name: "no x",
    beforeTool: ({ call: made }) => ((made.args as { text: string }).text === "x" ? decide.deny("no x") : undefined),
  });
  const agent = createDesk({
    tools: [createRecordingTool(log, "ping")],
    middleware: [noX, limitRate({ calls: 1, perMs: 1_000, atLimit: "refuse" })],
    script: [call("ping", { text: "x" }), call("ping", { text: "y" }), say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["ping y"]);
});

test("limitRate refuses invalid rates", () => {
  for (const options of [
    { calls: 0, perMs: 1 },
    { calls: 1.5, perMs: 1 },
    { calls: 1, perMs: 0 },
  ])
    expect(() => limitRate(options)).toThrow(/invalid_option/);
});
