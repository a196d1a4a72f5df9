/** Agent methods other than `run`: stream, abort, steer, followUp, setTools, subscribe. */
import {
  defineTool,
  engine,
  getMessageText,
  memoryStore,
  type RunEvent,
  type Store,
  submit,
  toolRegistry,
} from "@statewright/core";
import { call, failWith, say, scriptedModel } from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { piDialect, type YoagentEvent, yoagentDialect } from "../../src/dialects.ts";
import { createAgent } from "../../src/index.ts";
import { confirmTools } from "../../src/middleware.ts";

function createPureTool(name: string, run: () => unknown = () => `${name} done`) {
  return defineTool({ name, description: `Does ${name}.`, input: z.object({}), effect: "pure", run });
}

/** Tool that runs until the test releases it. */
function slow() {
  let release = (): void => undefined;
  let markStarted = (): void => undefined;
  const isAtWork = new Promise<void>((resolve) => {
    markStarted = resolve;
  });
  const tool = createPureTool("slow", async () => {
    markStarted();
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return "finished";
  });
  return { tool, isAtWork, letGo: () => release() };
}

function listYoagentEvents(events: readonly RunEvent[]): readonly YoagentEvent[] {
  return events.flatMap(yoagentDialect());
}

describe("agent runs", () => {
  test("an agent stream is returned before the run ends, emits text deltas, and emits the agent end last [S0.52, S2.52]", async () => {
    const model = scriptedModel([say("one two three")]);
    const agent = createAgent({ name: "a", model });
    const run = agent.stream({ input: "Go" });
    expect(model.requests).toEqual([]);
    const events: RunEvent[] = [];
    let isOver = false;
    void run.result.then(() => {
      isOver = true;
    });
    for await (const event of run) {
      if (event.type === "message.delta") expect(isOver).toBe(false);
      events.push(event);
    }
    const observed = listYoagentEvents(events);
    const deltas = observed.flatMap((event) =>
      event.type === "MessageUpdate" && event.kind === "text" ? [event.delta] : [],
    );
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.join("")).toBe("one two three");
    expect(observed.at(-1)).toEqual({ type: "AgentEnd", status: "completed" });
    expect(observed.filter(({ type }) => type === "AgentEnd")).toHaveLength(1);
    expect(events.at(-1)?.type).toBe("run.completed");
  });

  test("an agent stream emits text deltas and tool events during the run, up to the agent end [S2.68]", async () => {
    const work = slow();
    const model = scriptedModel([[say("I look it up."), call("slow", {})], say("There it is.")]);
    const agent = createAgent({ name: "a", model, tools: [work.tool] });
    const run = agent.stream({ input: "Go" });
    const events: RunEvent[] = [];
    const reading = (async () => {
      for await (const event of run) events.push(event);
    })();
    await work.isAtWork;
    await new Promise((resolve) => setImmediate(resolve));
    const before = listYoagentEvents(events).map(({ type }) => type);
    expect(before).toContain("MessageUpdate");
    expect(before).toContain("ToolExecutionStart");
    expect(before).not.toContain("ToolExecutionEnd");
    work.letGo();
    await reading;
    const observed = listYoagentEvents(events);
    const types = observed.map(({ type }) => type);
    expect(types.indexOf("ToolExecutionEnd")).toBeLessThan(types.lastIndexOf("MessageUpdate"));
    expect(observed.at(-1)?.type).toBe("AgentEnd");
    const text = observed.flatMap((event) => (event.type === "MessageUpdate" ? [event.delta] : [])).join("");
    expect(text).toBe("I look it up.There it is.");
  });

  test("a run continues after its stream loop is left", async () => {
    const agent = createAgent({ name: "a", model: scriptedModel([say("one two")]) });
    const run = agent.stream({ input: "Go" });
    for await (const event of run) if (event.type === "message.delta") break;
    expect(await run.result).toMatchObject({ status: "done" });
  });

  test("a failed run emits run.failed to its stream, whose loop throws, and its result promise still rejects [FX1]", async () => {
    const agent = createAgent({ name: "a", model: scriptedModel([failWith(new Error("no"))]), retry: { attempts: 1 } });
    const run = agent.stream({ input: "Go" });
    const types: string[] = [];
    const read = async (): Promise<void> => {
      for await (const { type } of run) types.push(type);
    };
    await expect(read()).rejects.toThrow(/no/);
    expect(types.at(-1)).toBe("run.failed");
    await expect(run.result).rejects.toThrow(/no/);
  });

  test("an agent without an output schema returns its state as output", async () => {
    const result = await createAgent({ name: "a", model: scriptedModel([say("Hi")]) }).run({ input: "Go" }).result;
    if (result.status !== "done") throw new Error(result.status);
    expectTypeOf(result.output).toEqualTypeOf(result.state);
    expectTypeOf(result.ended.by).toEqualTypeOf<string>();
    expect(result.output).toEqual(result.state);
  });
});

describe("agent.abort", () => {
  test("abort cancels the run of one thread or all runs, and every tool call is answered", async () => {
    const waits = defineTool({
      name: "waits",
      description: "Waits until it is told to stop.",
      input: z.object({}),
      run: (_args, { signal }) =>
        new Promise<string>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    const agent = createAgent({
      name: "a",
      model: scriptedModel((request) => (request.messages.length === 1 ? call("waits", {}) : say("Done"))),
      tools: [waits],
    });
    const [one, two, three] = ["one", "two", "three"].map((thread) => agent.run({ thread, input: "Go" }));
    const started = (run = one) =>
      new Promise<void>((resolve) => {
        run?.on(({ type }) => {
          if (type === "tool.started") resolve();
        });
      });
    await Promise.all([started(one), started(two), started(three)]);
    expect(await agent.abort({ thread: "one", reason: "not this one" })).toEqual([one?.id]);
    const first = await one?.result;
    expect(first).toMatchObject({ status: "cancelled", reason: "not this one" });
    expect(first?.state.messages.at(-1)).toMatchObject({ role: "tool", isError: true });
    expect(await agent.abort()).toEqual([two?.id, three?.id]);
    expect((await two?.result)?.status).toBe("cancelled");
    expect((await three?.result)?.status).toBe("cancelled");
    expect(await agent.abort()).toEqual([]);
  });
});

describe("abort of a thread", () => {
  /** Agent whose tool ends only when its signal fires. */
  function createWaitingAgent(store?: Store) {
    let markStarted = (): void => undefined;
    const isAtWork = new Promise<void>((resolve) => {
      markStarted = resolve;
    });
    const waits = defineTool({
      name: "waits",
      description: "Waits until its signal fires.",
      input: z.object({}),
      run: (_args, { signal }) => {
        markStarted();
        return new Promise<string>((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
    });
    const agent = createAgent({
      name: "a",
      model: scriptedModel((request) => (request.messages.at(-1)?.role === "user" ? call("waits", {}) : say("Done"))),
      tools: [waits],
      ...(store && { store }),
    });
    return { agent, isAtWork };
  }

  test("abort cancels a run that an engine of this process started, with and without a store of the agent [FX8]", async () => {
    for (const given of [true, false]) {
      const store = memoryStore();
      const { agent, isAtWork } = createWaitingAgent(given ? store : undefined);
      const host = engine({ store, graphs: [agent] });
      const run = host.run(agent, { thread: "t", input: agent.toInput("Go") });
      await isAtWork;
      expect(await agent.abort({ thread: "t", reason: "not needed" })).toEqual([run.id]);
      expect(await run.result).toMatchObject({ status: "cancelled", reason: "not needed" });
      expect(await agent.abort({ thread: "t", store })).toEqual([]);
      await host.stop();
    }
  });

  test("abort of a resumed run resolves to the id of the run in the store [FX16, SE2]", async () => {
    const store = memoryStore();
    const { agent, isAtWork } = createWaitingAgent(store);
    const first = agent.run({ thread: "t", input: "Go", breakpoints: { before: ["tools"] } });
    expect((await first.result).status).toBe("paused");
    const next = agent.resume({ thread: "t", breakpoints: {} });
    await isAtWork;
    expect(await agent.abort({ thread: "t" })).toEqual([first.id]);
    expect(await next.result).toMatchObject({ status: "cancelled", run: first.id });
  });

  test("abort cancels a run that an engine took from the queue of another process [FX8]", async () => {
    const store = memoryStore();
    const { agent } = createWaitingAgent(store);
    const started: string[] = [];
    const host = engine({
      store,
      graphs: [agent],
      onRun: (run) => void run.on(({ type }) => (type === "tool.started" ? started.push(run.id) : undefined)),
    });
    const waitForCall = async (count: number) => {
      while (started.length < count) await new Promise<void>((resolve) => setImmediate(resolve));
    };
    await host.start();
    const first = host.run(agent, { thread: "t", input: agent.toInput("Go") });
    await waitForCall(1);
    const elsewhere = createWaitingAgent(store.peer()).agent;
    const queued = elsewhere.run({ thread: "t", input: "And then", onBusy: "enqueue" });
    expect((await queued.result).status).toBe("queued");
    expect(await agent.abort({ thread: "t" })).toEqual([first.id]);
    await waitForCall(2);
    expect(await agent.abort({ thread: "t" })).toEqual([queued.id]);
    await host.stop();
    expect((await store.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
  });

  test("abort of a thread whose run is active in another process fires its signals there and resolves to its id [FX8, SE5]", async () => {
    const store = memoryStore();
    const elsewhere = createWaitingAgent(store.peer()).agent;
    const { agent, isAtWork } = createWaitingAgent(store);
    const run = agent.run({ thread: "t", input: "Go" });
    await isAtWork;
    expect(await elsewhere.abort({ thread: "t", reason: "not needed" })).toEqual([run.id]);
    expect(await run.result).toMatchObject({ status: "cancelled", reason: "not needed" });
    expect(await elsewhere.abort({ thread: "t" })).toEqual([]);
  });

  test("abort of a thread whose run waits for an answer ends the run, and abort without a known store is refused with missing_store [FX8]", async () => {
    const store = memoryStore();
    const agent = createAgent({
      name: "a",
      model: scriptedModel([call("pay", {}), say("Done")]),
      tools: [createPureTool("pay")],
      middleware: [confirmTools({ policy: () => true })],
      store,
    });
    const waiting = await agent.run({ thread: "t", input: "Go" }).result;
    expect(waiting.status).toBe("waiting");
    expect(await agent.abort({ thread: "t", reason: "too late" })).toEqual([waiting.run]);
    expect(await store.run(waiting.run)).toMatchObject({ status: "cancelled", reason: "too late" });
    const storeless = createWaitingAgent().agent;
    await expect(storeless.abort({ thread: "t" })).rejects.toMatchObject({ code: "missing_store" });
  });
});

describe("steer and followUp", () => {
  test("steer and followUp reach the run of a thread without its handle, in process and through the store", async () => {
    const store = memoryStore();
    const work = slow();
    const model = scriptedModel([call("slow", {}), say("one"), say("two"), say("three")]);
    const agent = createAgent({ name: "a", model, tools: [work.tool], store });
    const run = agent.run({ thread: "t", input: "Go" });
    await work.isAtWork;
    await agent.steer({ thread: "t", input: "Faster" });
    await agent.followUp({ thread: "t", input: { text: "And then?" } });
    work.letGo();
    const { state } = await run.result;
    expect(state.messages.map(getMessageText)).toEqual(["Go", "", "finished", "Faster", "one", "And then?", "two"]);
    await agent.steer({ thread: "t", input: "Before you begin" });
    const next = await agent.run({ thread: "t", input: "Go on" }).result;
    expect(next.state.messages.slice(-3).map(getMessageText)).toEqual(["Before you begin", "Go on", "three"]);
  });

  test("steer reaches an active run without a store, and fails with missing_store when no run is active", async () => {
    const work = slow();
    const agent = createAgent({ name: "a", model: scriptedModel([call("slow", {}), say("one")]), tools: [work.tool] });
    const run = agent.run({ thread: "t", input: "Go" });
    await work.isAtWork;
    await agent.steer({ thread: "t", input: "Faster" });
    work.letGo();
    expect((await run.result).state.messages.map(getMessageText)).toContain("Faster");
    await expect(agent.steer({ thread: "t", input: "Too late" })).rejects.toMatchObject({ code: "missing_store" });
    await expect(agent.followUp({ thread: "t", input: "" })).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("setTools", () => {
  test("setTools applies from the next model request, and active tool calls finish with the previous tools [S4.24, S4.25]", async () => {
    const work = slow();
    const model = scriptedModel([call("slow", {}), call("quick", {}), say("Done"), say("Done")]);
    const agent = createAgent({ name: "a", model, tools: [work.tool, createPureTool("other")] });
    const run = agent.run({ input: "Go" });
    await work.isAtWork;
    agent.setTools([createPureTool("quick")]);
    work.letGo();
    const { state } = await run.result;
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ["other", "slow"],
      ["quick"],
      ["quick"],
    ]);
    const answers = state.messages.filter(({ role }) => role === "tool");
    expect(answers.map(getMessageText)).toEqual(["finished", "quick done"]);
    await createAgent({ name: "b", model, tools: [] }).run({ input: "Go" }).result;
    expect(model.requests.at(-1)?.tools).toEqual([]);
  });

  test("setTools works on an agent made without tools and on one made with an empty tool list [FX90]", async () => {
    for (const options of [{}, { tools: [] }]) {
      const agent = createAgent({ name: "a", model: scriptedModel([call("quick", {}), say("Done")]), ...options });
      agent.setTools([createPureTool("quick")]);
      const { state } = await agent.run({ input: "Go" }).result;
      expect(state.messages.map(getMessageText)).toContain("quick done");
    }
  });

  test("a pi tool in tools names fromPiTool, and a strategy with batch and size is refused [FX90]", () => {
    const model = scriptedModel([]);
    const piTool = { name: "look", label: "Look", description: "x", parameters: {}, execute: async () => ({}) };
    const create = (options: object) => () => createAgent({ name: "a", model, ...options });
    expect(create({ tools: [piTool] })).toThrow(/fromPiTool/);
    expect(create({ tools: [], strategy: { batch: 2, size: 3 } })).toThrow(/size/);
    expect(create({ tools: [], strategy: { batch: 2 } })).not.toThrow();
  });

  test("setTools refuses tools that a registry refuses and leaves the tools unchanged", async () => {
    const registry = toolRegistry([createPureTool("quick")]);
    const agent = createAgent({ name: "a", model: scriptedModel([]), tools: registry });
    expect(() => agent.setTools([createPureTool("a_tool"), createPureTool("a_tool")])).toThrow(/two tools/);
    expect(registry.names()).toEqual(["quick"]);
  });
});

describe("resume", () => {
  test("resume refuses an answer without an interrupt key or id", async () => {
    const agent = createAgent({
      name: "a",
      model: scriptedModel([call("pay", {}), say("Done")]),
      tools: [createPureTool("pay")],
      middleware: [confirmTools({ policy: () => "money" })],
      store: memoryStore(),
    });
    expect((await agent.run({ thread: "t", input: "Go" }).result).status).toBe("waiting");
    const answered = agent.resume({ thread: "t", answers: true as never }).result;
    await expect(answered).rejects.toThrow(/answers: \{ approve: … \}/);
    expect((await agent.resume({ thread: "t", answers: { approve: true } }).result).status).toBe("done");
  });
});

describe("subscribe", () => {
  test("subscribe receives the events of every run of the agent, also active ones, until unsubscribed", async () => {
    const work = slow();
    const model = scriptedModel([call("slow", {}), say("one"), say("two"), say("three")]);
    const agent = createAgent({ name: "a", model, tools: [work.tool] });
    const first = agent.run({ thread: "one", input: "Go" });
    await work.isAtWork;
    const receivedTypes: string[] = [];
    const unsubscribe = agent.subscribe(({ type }, { thread }) => receivedTypes.push(`${thread} ${type}`));
    work.letGo();
    await first.result;
    await agent.run({ thread: "two", input: "Go" }).result;
    expect(receivedTypes).toContain("one tool.completed");
    expect(receivedTypes).not.toContain("one run.started");
    expect(receivedTypes).toContain("two run.started");
    expect(receivedTypes.at(-1)).toBe("two run.completed");
    unsubscribe();
    unsubscribe();
    receivedTypes.length = 0;
    await agent.run({ thread: "three", input: "Go" }).result;
    expect(receivedTypes).toEqual([]);
  });

  test("a listener unsubscribed during a run receives no further event, and other listeners still do", async () => {
    const work = slow();
    const agent = createAgent({ name: "a", model: scriptedModel([call("slow", {}), say("one")]), tools: [work.tool] });
    const first: string[] = [];
    const second: string[] = [];
    const offFirst = agent.subscribe(({ type }) => first.push(type));
    const offSecond = agent.subscribe(({ type }) => second.push(type));
    const run = agent.run({ input: "Go" });
    await work.isAtWork;
    offFirst();
    const receivedTypes = first.length;
    work.letGo();
    await run.result;
    offSecond();
    expect(first).toHaveLength(receivedTypes);
    expect(second.at(-1)).toBe("run.completed");
  });

  test("a subscribed listener that throws affects neither the run nor other listeners", async () => {
    const agent = createAgent({ name: "a", model: scriptedModel([say("one")]) });
    const receivedTypes: string[] = [];
    agent.subscribe(() => {
      throw new Error("listener");
    });
    agent.subscribe(({ type }) => receivedTypes.push(type));
    expect(await agent.run({ input: "Go" }).result).toMatchObject({ status: "done" });
    expect(receivedTypes).toContain("run.completed");
  });
});

test("a dialect translates the events of a subscription", async () => {
  const agent = createAgent({
    name: "a",
    model: scriptedModel([call("quick", {}), say("one")]),
    tools: [createPureTool("quick")],
  });
  const read = piDialect();
  const types: string[] = [];
  agent.subscribe((event) => types.push(...read(event).map(({ type }) => type)));
  await agent.run({ input: "Go" }).result;
  expect(types.at(0)).toBe("agent_start");
  expect(types).toContain("tool_execution_end");
  expect(types.at(-1)).toBe("agent_end");
});

test("a text of an agent is equal input each time, so a repeated start under a key is the same run", async () => {
  const store = memoryStore();
  const agent = createAgent({ name: "talker", model: scriptedModel([say("One."), say("Two.")]), store });
  const start = { store, thread: "t", key: "m1" } as const;
  const queued = await submit(agent, { ...start, input: agent.toInput("Hello") });
  expect(await submit(agent, { ...start, input: agent.toInput("Hello") })).toEqual(queued);
  await expect(submit(agent, { ...start, input: agent.toInput("Bye") })).rejects.toMatchObject({ code: "key_reused" });
  const first = await agent.run({ ...start, onKeyReused: "refuse", input: "Hello" }).result;
  const second = await agent.run({ store, thread: "t", input: "Hello" }).result;
  expect(first.text).toBe("One.");
  const ids = second.state.messages.map(({ id }) => id);
  expect(new Set(ids).size).toBe(4);
  expect(ids.every((id) => id !== "")).toBe(true);
});
