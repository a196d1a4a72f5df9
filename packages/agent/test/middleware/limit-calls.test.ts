import { createAgent } from "@statewright/agent";
import { limitCalls } from "@statewright/agent/middleware";
import {
  channel,
  decide,
  defineGraph,
  defineState,
  END,
  type Middleware,
  memoryStore,
  START,
  type Tool,
  toolNode,
  updateState,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

const ping = (text = "") => call("ping", { text });
const isRefusal = (text: string): boolean => text.startsWith("!The limit of");

describe("call limits", () => {
  test("a limitCalls perRun covers all messages of a run and restarts with a new run", async () => {
    const log: string[] = [];
    const agent = createDesk({
      tools: [createRecordingTool(log, "ping"), createRecordingTool(log, "pong")],
      middleware: [limitCalls({ perRun: 3 })],
      script: [[ping(), call("pong", {})], [ping(), ping()], say("ok"), ping(), say("ok")],
    });
    expect(listAnswers(await agent.run().result).map(isRefusal)).toEqual([false, false, false, true]);
    expect(listAnswers(await agent.run("more").result).map(isRefusal)).toEqual([false, false, false, true, false]);
    expect(log).toHaveLength(4);
  });

  test("a limitCalls perThread covers all runs of a thread, and a limit of one tool does not affect others", async () => {
    const log: string[] = [];
    const agent = createDesk({
      tools: [createRecordingTool(log, "ping"), createRecordingTool(log, "pong")],
      middleware: [limitCalls({ tools: { ping: { perThread: 2 }, pong: { perRun: 1 } } })],
      script: [[ping(), call("pong", {})], say("ok"), [ping(), ping(), call("pong", {}), call("pong", {})], say("ok")],
    });
    await agent.run().result;
    const end = await agent.run("more").result;
    expect(listAnswers(end).map(isRefusal)).toEqual([false, false, false, true, false, true]);
    expect(listAnswers(end)[3]).toBe(
      '!The limit of 2 calls of "ping" in this conversation is reached. Continue without this call.',
    );
  });

  test("limitCalls with atLimit end ends the run as cancelled with the reason", async () => {
    const log: string[] = [];
    const agent = createDesk({
      tools: [createRecordingTool(log, "ping")],
      middleware: [limitCalls({ perRun: 1, atLimit: "end" })],
      script: [ping(), ping()],
    });
    expect(await agent.run().result).toMatchObject({
      status: "cancelled",
      reason: "The limit of 1 calls in this run is reached.",
    });
    expect(log).toEqual(["ping"]);
  });

  test("limitCalls does not count a refused call", async () => {
    const log: string[] = [];
    const agent = createDesk({
      tools: [createRecordingTool(log, "ping")],
      middleware: [
        limitCalls({ perRun: 1 }),
        {
          name: "no x",
          beforeTool: ({ call: made }) =>
            (made.args as { text: string }).text === "x" ? decide.deny("no x") : undefined,
        },
      ],
      script: [ping("x"), ping("y"), ping("z"), say("ok")],
    });
    expect(listAnswers(await agent.run().result).map(isRefusal)).toEqual([false, false, true]);
    expect(log).toEqual(["ping y"]);
  });
});

test("limitCalls stores its counts in the state: a killed process and a trimmed conversation do not reset them", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const options = { tools: [createRecordingTool(log, "ping")], middleware: [limitCalls({ perRun: 2, perThread: 3 })] };
  const dying = createDesk({
    ...options,
    store,
    script: [[ping(), ping()], () => new Promise(() => undefined) as never],
  });
  void dying.run().result.catch(() => "died");
  await dying.world.waitUntilIdle();
  store.crash();
  const peer = store.peer();
  const resumed = await createDesk({ ...options, store: peer, script: [[ping(), ping()], ping(), say("ok")] }).resume()
    .result;
  expect([resumed.status, listAnswers(resumed).map(isRefusal)]).toEqual(["done", [false, false, true]]);

  const cutter = createAgent({
    name: "desk",
    model: scriptedModel([ping(), ping(), say("ok")]),
    ...options,
    store: peer,
  });
  await updateState(cutter, {
    thread: "t",
    store: peer,
    as: "model",
    values: { messages: resumed.state.messages.map(({ id }) => ({ remove: id })) } as never,
  });
  const end = await cutter.run({ thread: "t", input: "again" }).result;
  expect(listAnswers(end).map(isRefusal)).toEqual([false, true]);
  expect(log).toHaveLength(3);
});

test("a custom graph without the channel of limitCalls is refused at definition", () => {
  const limits = limitCalls({ perRun: 1 });
  const tools = toolNode({ tools: [createRecordingTool([], "ping") as Tool], middleware: [limits] });
  const define = (channels: Middleware["channels"]) =>
    defineGraph({ name: "g", state: defineState({ ...channels, messages: channel.messages() }) })
      .nodes({ tools })
      .edges({ [START]: "tools", tools: END });
  expect(() => define({})).toThrow(
    /"limitCalls" of the tool node "tools" stores its state in the channel "callCounts"/,
  );
  expect(() => define(limits.channels)).not.toThrow();
});

test("limitCalls refuses invalid limits", () => {
  for (const options of [{ perRun: -1 }, { perThread: 1.5 }, { tools: { a: { perRun: Number.NaN } } }])
    expect(() => limitCalls(options)).toThrow(/invalid_option/);
  expect(() => limitCalls({ tools: { pay: { max: 1 } } } as never)).toThrow(
    'limitCalls.tools["pay"] has no option "max"',
  );
});
