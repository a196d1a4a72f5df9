import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, isStatewrightError, memoryStore, type RunHandle, type Store, steer } from "../../../src/index.ts";
import {
  type ChatState,
  call,
  checkTranscript,
  createToolLoop,
  type DeskTool,
  gate,
  getAnswerText,
  type LoopOptions,
  listEvents,
  listToolAnswers,
  user,
} from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const named = z.object({ name: z.string() });

function slow(world: VirtualWorld, ms: number, more: DeskTool["spec"]["execution"] = {}, log: string[] = []): DeskTool {
  const tool = defineTool({
    name: "work",
    description: "Work.",
    input: named,
    effect: "pure",
    run: async ({ name }) => {
      log.push(`+${name}`);
      await new Promise<void>((resolve) => world.schedule.after(ms, resolve));
      log.push(`-${name} ${world.clock.monotonic()}`);
      return name;
    },
  });
  return { ...tool, spec: { ...tool.spec, execution: more } };
}

const works = (...names: string[]) => names.map((name) => call("work", { name }, name));

/** Creates a store that records each inbox read. */
function polled(log: string[], store: Store = memoryStore()): Store {
  return {
    ...store,
    inbox: (thread, branch) => {
      log.push("poll");
      return store.inbox(thread, branch);
    },
  };
}

/** Counts inputs, and records each read. */
function countReads(log: string[], store: Store): Store["countInputs"] {
  return (threads) => {
    log.push("count");
    return store.countInputs(threads);
  };
}

/** Describes the messages of a transcript in short texts. */
function listMessageTexts({ messages }: ChatState): readonly string[] {
  checkTranscript(messages);
  return messages.map((message) => {
    if (message.role === "tool") return `${message.callId}: ${message.isError ? "!" : ""}${getAnswerText(message)}`;
    if (message.role === "user")
      return `user: ${message.content.map((block) => (block.type === "text" ? block.text : "")).join("")}`;
    return message.role;
  });
}

const skipped = (id: string): string => `${id}: !Skipped: a message of the user is queued and comes first.`;

async function steered(
  options: Omit<LoopOptions, "tools" | "world"> & { readonly at: number; readonly text?: string },
  tools: (world: VirtualWorld) => readonly DeskTool[] = (world) => [slow(world, 10)],
) {
  const world = createVirtualWorld();
  const loop = createToolLoop({ ...options, tools: tools(world), world });
  const handle = loop.start();
  await world.advance(options.at);
  await handle.steer(options.text ?? "stop");
  await world.advance(1_000);
  const result = await handle.result;
  return { ...loop, result };
}

describe("inbox checks between batches of tool calls", () => {
  test("the sequential strategy ends each tool call before the next starts, and reads no inbox without an arrival [S0.56, S2.56, PK5]", async () => {
    const log: string[] = [];
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10)],
      world,
      store: polled(log),
      strategy: "sequential",
      turns: [works("a", "b", "c"), ["ok"]],
    });
    const handle = loop.start();
    handle.on((event) => {
      if (event.type === "tool.started") log.push(`+${event.callId}`);
      if (event.type === "tool.completed") log.push(`-${event.callId}`);
    });
    await world.advance(1_000);
    await handle.result;
    expect(log.slice(log.indexOf("+a"), log.indexOf("+c") + 1)).toEqual(["+a", "-a", "+b", "-b", "+c"]);
    expect(log.filter((line) => line === "poll")).toEqual([]);
    let counter = 0;
    const count = defineTool({
      name: "count",
      description: "Count.",
      input: z.object({}),
      run: async () => {
        const read = counter;
        await Promise.resolve();
        counter = read + 1;
        return `${counter}`;
      },
    });
    const two = createToolLoop({
      tools: [count],
      strategy: "sequential",
      turns: [[call("count", {}, "a"), call("count", {}, "b")], ["ok"]],
    });
    await two.start().result;
    expect(counter).toBe(2);
  });

  test("the parallel strategy starts every tool call first and checks the inbox once at the end, so that steering skips none [S0.57, S2.57]", async () => {
    for (const [strategy, ms] of [
      ["parallel", 50],
      ["sequential", 150],
    ] as const) {
      const log: string[] = [];
      const world = createVirtualWorld();
      const loop = createToolLoop({
        tools: [slow(world, 50, {}, log)],
        world,
        store: polled(log),
        strategy,
        turns: [works("a", "b", "c"), ["ok"]],
      });
      const handle = loop.start();
      handle.on((event) => {
        if (event.type === "step.committed" && event.nodes.includes("tools")) log.push("committed");
      });
      await world.advance(10);
      if (strategy === "parallel") await handle.steer("stop");
      await world.advance(1_000);
      const result = await handle.result;
      expect(log.filter((line) => line.startsWith("-")).at(-1)).toBe(`-c ${ms}`);
      if (strategy === "sequential") continue;
      expect(log.slice(log.indexOf("+a"), log.indexOf("committed"))).toEqual([
        "+a",
        "+b",
        "+c",
        "-a 50",
        "-b 50",
        "-c 50",
        "poll",
      ]);
      expect(listMessageTexts(result.state)).toEqual([
        "user: go",
        "assistant",
        "a: a",
        "b: b",
        "c: c",
        "user: stop",
        "assistant",
      ]);
    }
  });

  test("the batch strategy checks the inbox between batches, here with seven tool calls by three and a message in the first batch [S0.58, S2.58]", async () => {
    const log: string[] = [];
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10, {}, log)],
      world,
      store: polled(log),
      strategy: { batch: 3 },
      turns: [works("a", "b", "c", "d", "e", "f", "g"), ["ok"]],
    });
    const handle = loop.start();
    handle.on((event) => {
      if (event.type === "step.committed" && event.nodes.includes("tools")) log.push("committed");
    });
    await world.advance(1_000);
    await handle.result;
    const during = log.slice(log.indexOf("+a"), log.indexOf("committed")).map((line) => line.replace(/\w .*/, ""));
    expect(during.map((line) => line.slice(0, line === "poll" ? 4 : 1)).join(" ")).toBe("+ + + - - - + + + - - - + -");
    const { result, requests } = await steered({
      at: 5,
      strategy: { batch: 3 },
      turns: [works("a", "b", "c", "d", "e", "f", "g"), ["ok"]],
    });
    expect(listMessageTexts(result.state)).toEqual([
      "user: go",
      "assistant",
      ...["a: a", "b: b", "c: c"],
      ...["d", "e", "f", "g"].map(skipped),
      "user: stop",
      "assistant",
    ]);
    expect(requests).toHaveLength(2);
  });
});

describe("skipped tool calls", () => {
  /** Runs three calls sequentially; a message is steered while the first call runs. */
  async function interruptedWork() {
    const ran: string[] = [];
    const once = await steered({ at: 5, strategy: "sequential", turns: [works("a", "b", "c"), ["ok"]] }, (world) => {
      return [slow(world, 10, {}, ran)];
    });
    return { ran, once };
  }

  test("steering skips and answers unstarted tool calls, and an active call ends with its own result [S0.59, S2.59, S0.60, S2.60, S0.61, S2.61]", async () => {
    const { ran, once } = await interruptedWork();
    expect(ran).toEqual(["+a", "-a 10"]);
    const answers = listToolAnswers(once);
    expect(answers.map(({ isError }) => isError)).toEqual([false, true, true]);
    expect(answers.map(getAnswerText)).toEqual([
      "a",
      "Skipped: a message of the user is queued and comes first.",
      "Skipped: a message of the user is queued and comes first.",
    ]);
  });

  test("a completed tool call keeps its result, and each skipped call is rejected with the reason skipped [T2, T3, S0.60, S2.60]", async () => {
    const { once } = await interruptedWork();
    const of = (id: string) =>
      listEvents(once, "tool.started", "tool.rejected", "tool.completed", "tool.failed")
        .filter(({ callId }) => callId === id)
        .map((event) => (event.type === "tool.rejected" ? `rejected ${event.reason}` : event.type));
    expect(of("a")).toEqual(["tool.started", "tool.completed"]);
    expect(of("b")).toEqual(["rejected skipped", "tool.failed"]);
    expect(of("c")).toEqual(["rejected skipped", "tool.failed"]);
    expect(listEvents(once, "tool.failed").map(({ result }) => result.error?.kind)).toEqual(["skipped", "skipped"]);
  });

  test("a steering message is stored after all answers and before the next request, in the same commit [S0.62, S2.62, T7]", async () => {
    const store = memoryStore();
    const once = await steered({ at: 5, strategy: "sequential", store, turns: [works("a", "b"), ["ok"]] });
    expect(once.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "user"]);
    const steps = listEvents(once, "step.committed").filter(({ nodes }) => nodes.includes("tools"));
    expect(steps).toHaveLength(1);
    const { messages } = steps[0]?.changes ?? {};
    expect(messages?.kind).toBe("append");
    expect(JSON.stringify(messages)).toContain("stop");
    expect(await store.inbox("t", "main")).toEqual([]);
    const order = once.events.map(({ type }) => type);
    expect(order.indexOf("inbox.delivered")).toBeGreaterThan(order.lastIndexOf("tool.failed"));
    expect(order.indexOf("inbox.delivered")).toBeLessThan(order.lastIndexOf("model.started"));
  });

  test("all tool calls of the parallel strategy are one unit, including calls that wait for a slot or a lock [S0.68, S2.74]", async () => {
    for (const more of [{ maxConcurrency: 2 }, {}]) {
      const once = await steered({ at: 5, ...more, turns: [works("a", "b", "c", "d", "e"), ["ok"]] }, (world) => [
        slow(world, 10, "maxConcurrency" in more ? {} : { lock: () => ["one"] }),
      ]);
      expect(listToolAnswers(once).map(getAnswerText)).toEqual(["a", "b", "c", "d", "e"]);
      expect(listMessageTexts(once.result.state).at(-2)).toBe("user: stop");
    }
  });

  test("tool calls skipped for a system message are not attributed to the user [D17, S0.60, S2.60]", async () => {
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10)],
      world,
      strategy: "sequential",
      turns: [works("a", "b"), ["ok"]],
    });
    const handle = loop.start();
    await world.advance(5);
    await handle.steer([{ role: "system", id: "n1", content: "The disk is nearly full." }]);
    await world.advance(1_000);
    const answers = listToolAnswers(await handle.result);
    expect(answers.map(getAnswerText)).toEqual(["a", "Skipped: a note of the system is queued and comes first."]);
    expect(answers[1]?.isError).toBe(true);
  });

  test("steering finish-batch runs all requested tool calls, and a tool may opt out of being skipped [T5, D2]", async () => {
    const turns = [works("a", "b", "c"), ["ok"]] as const;
    const finished = await steered({ at: 5, strategy: "sequential", steering: "finish-batch", turns });
    expect(listToolAnswers(finished).map(getAnswerText)).toEqual(["a", "b", "c"]);
    expect(listMessageTexts(finished.result.state).at(-2)).toBe("user: stop");
    const submit = await steered(
      { at: 5, strategy: "sequential", turns: [[...works("a", "b"), call("submit", {}, "s"), ...works("c")], ["ok"]] },
      (world) => {
        const tool = defineTool({
          name: "submit",
          description: "Hand it in.",
          input: z.object({}),
          execution: { onSteer: "run" },
          run: () => "handed in",
        });
        return [slow(world, 10), tool];
      },
    );
    expect(listMessageTexts(submit.result.state).slice(2, -1)).toEqual([
      "a: a",
      skipped("b"),
      "s: handed in",
      skipped("c"),
      "user: stop",
    ]);
    const soft = await steered({ at: 5, turns: [[call("wait", {}, "w")], ["ok"]] }, (world) => [
      defineTool({
        name: "wait",
        description: "Wait.",
        input: z.object({}),
        run: (_, { steered: signal }) =>
          new Promise<string>((resolve) => {
            const end = (): void => resolve(`${signal.aborted ? "spoken to" : "waited"} at ${world.clock.monotonic()}`);
            world.schedule.after(500, end);
            signal.addEventListener("abort", end, { once: true });
          }),
      }),
    ]);
    expect(listToolAnswers(soft).map(getAnswerText)).toEqual(["spoken to at 5"]);
  });

  describe("steered signal of a tool", () => {
    /** Tool that waits for a minute or until a message is steered. */
    const patient = (world: VirtualWorld): DeskTool =>
      defineTool({
        name: "wait",
        description: "Wait.",
        input: z.object({}),
        run: (_, { steered: signal }) =>
          new Promise<string>((resolve) => {
            const end = (): void => resolve(`${signal.aborted ? "spoken to" : "waited"} at ${world.clock.monotonic()}`);
            world.schedule.after(60_000, end);
            if (signal.aborted) end();
            signal.addEventListener("abort", end, { once: true });
          }),
      });

    test.each(["with a store", "without a store"])(
      "the steered signal of a tool is aborted by a message sent while the model was answering, %s",
      async (way) => {
        const world = createVirtualWorld();
        const handles: RunHandle<ChatState>[] = [];
        const speak = (): void => void handles[0]?.steer("stop");
        const loop = createToolLoop({
          tools: [patient(world)],
          world,
          ...(way === "without a store" ? { store: "none" } : {}),
          turns: [
            () => {
              speak();
              return [call("wait", {}, "a")];
            },
            [call("wait", {}, "b")],
            ["ok"],
          ],
        });
        handles.push(loop.start());
        await world.advance(120_000);
        const result = await handles[0]?.result;
        // A message in the state does not steer again.
        expect(result && listMessageTexts(result.state).slice(2)).toEqual([
          "a: spoken to at 0",
          "user: stop",
          "assistant",
          "b: waited at 60000",
          "assistant",
        ]);
      },
    );

    test("the steered signal of a tool is aborted by a message sent during the commit of the previous superstep", async () => {
      const world = createVirtualWorld();
      const handles: RunHandle<ChatState>[] = [];
      const store = memoryStore();
      let hasSpoken = false;
      const loop = createToolLoop({
        tools: [patient(world)],
        world,
        turns: [[call("wait", {}, "a")], [call("wait", {}, "b")], ["ok"]],
        store: {
          ...store,
          commit: (commit, saved) => {
            const isLate = !hasSpoken && commit.checkpoint?.row.nodes[0] === "tools";
            if (!isLate) return store.commit(commit, saved);
            hasSpoken = true;
            void handles[0]?.steer("stop").then(() => store.commit(commit, saved));
          },
        },
      });
      handles.push(loop.start());
      await world.advance(120_000);
      const result = await handles[0]?.result;
      expect(result && listToolAnswers(result).map(getAnswerText)).toEqual(["waited at 60000", "spoken to at 60000"]);
    });

    test("the steered signal of a tool is not aborted by a message that the run had already taken in", async () => {
      const world = createVirtualWorld();
      const handles: RunHandle<ChatState>[] = [];
      const store = memoryStore();
      const loop = createToolLoop({
        tools: [slow(world, 10), patient(world)],
        world,
        turns: [works("x"), works("y"), [call("wait", {}, "a")], ["ok"]],
        store: {
          ...store,
          post: async (letter) => {
            const row = await store.post(letter);
            await new Promise<void>((resolve) => world.schedule.after(15, resolve));
            return row;
          },
        },
      });
      handles.push(loop.start());
      await world.advance(5);
      const sent = handles[0]?.steer("stop");
      await world.advance(120_000);
      await sent;
      const result = await handles[0]?.result;
      expect(result && listToolAnswers(result).map(getAnswerText)).toEqual(["x", "y", "waited at 60020"]);
    });
  });

  test("skipped tool calls pass the after hooks", async () => {
    const seen: string[] = [];
    const once = await steered({
      at: 5,
      strategy: "sequential",
      turns: [works("a", "b"), ["ok"]],
      middleware: [
        { name: "audit", afterTool: ({ result }) => void seen.push(`${result.callId} ${result.error?.kind}`) },
      ],
    });
    expect(seen).toEqual(["a undefined", "b skipped"]);
    listToolAnswers(once);
  });

  test("an inbox that cannot be read is reported and logged, and no tool call is skipped [T4]", async () => {
    const store = memoryStore();
    let broken = false;
    const failing: Store = {
      ...store,
      inbox: (thread, branch) => (broken ? Promise.reject(new Error("no disk")) : store.inbox(thread, branch)),
    };
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10)],
      world,
      store: failing,
      strategy: "sequential",
      turns: [works("a", "b", "c"), ["ok"]],
    });
    const handle = loop.start();
    await world.advance(5);
    await handle.steer("stop");
    broken = true;
    await world.advance(20);
    broken = false;
    await world.advance(100);
    const result = await handle.result;
    expect(listMessageTexts(result.state)).toEqual([
      "user: go",
      "assistant",
      "a: a",
      "b: b",
      "c: c",
      "user: stop",
      "assistant",
    ]);
    expect(listEvents(loop, "inbox.failed").map(({ error }) => error.message)).toEqual(["no disk", "no disk"]);
    expect(
      world.lines.filter(({ message }) => message === "inbox messages could not be delivered to a run"),
    ).toHaveLength(2);
  });
});

describe("inbox delivery", () => {
  test("a message sent during a model request is answered next, and a follow-up is answered when the run would end", async () => {
    const world = createVirtualWorld();
    const doors = [gate(), gate(), gate()];
    let turn = 0;
    const loop = createToolLoop({ tools: [slow(world, 1)], world, turns: [["one"], ["two"], ["three"]] });
    const handle = loop.start();
    handle.on((event) => {
      if (event.type !== "model.started") return;
      turn += 1;
      if (turn === 1) {
        void handle.followUp("last");
        void handle.steer("first");
        doors[0]?.open();
      }
    });
    const { state } = await handle.result;
    expect(listMessageTexts(state)).toEqual([
      "user: go",
      "assistant",
      "user: first",
      "assistant",
      "user: last",
      "assistant",
    ]);
    expect(listEvents(loop, "inbox.delivered").map(({ kind }) => kind)).toEqual(["steer", "followUp"]);
  });

  test("the inbox delivers one message at a time or all waiting messages", async () => {
    for (const inbox of ["one", "all"] as const) {
      const world = createVirtualWorld();
      const loop = createToolLoop({ tools: [slow(world, 10)], world, inbox, turns: [works("a"), ["one"], ["two"]] });
      const handle = loop.start();
      await world.advance(5);
      await Promise.all([handle.steer("x"), handle.steer("y")]);
      await world.advance(100);
      const { state } = await handle.result;
      expect(listMessageTexts(state).slice(3)).toEqual(
        inbox === "all" ? ["user: x", "user: y", "assistant"] : ["user: x", "assistant", "user: y", "assistant"],
      );
    }
  });

  test("a run being cancelled takes no inbox message: the message waits for the next run and precedes its input [T6]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const options = { tools: [slow(world, 10)], world, store, strategy: "sequential" as const };
    const loop = createToolLoop({ ...options, turns: [works("a", "b"), ["after"]] });
    const handle = loop.start();
    await world.advance(5);
    await handle.steer("important");
    handle.cancel("no more");
    await world.advance(10_000);
    const cancelled = await handle.result;
    expect(cancelled.status).toBe("cancelled");
    checkTranscript(cancelled.state.messages);
    expect((await store.inbox("t", "main")).length).toBe(1);
    const next = loop.start(user("and now", "u2"));
    await world.advance(100);
    const { state } = await next.result;
    expect(listMessageTexts(state).slice(-3)).toEqual(["user: important", "user: and now", "assistant"]);
    expect(await store.inbox("t", "main")).toEqual([]);
  });

  test("the inbox of a run without a store is in memory, and an ended run refuses further messages", async () => {
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10)],
      world,
      store: "none",
      strategy: "sequential",
      turns: [works("a", "b"), ["ok"]],
    });
    const handle = loop.start();
    await world.advance(5);
    await handle.steer("stop");
    await world.advance(100);
    expect(listMessageTexts((await handle.result).state).slice(2)).toEqual([
      "a: a",
      skipped("b"),
      "user: stop",
      "assistant",
    ]);
    const late = await handle.steer("late").catch((error: unknown) => error);
    expect(isStatewrightError(late, "missing_store")).toBe(true);
  });

  test("messages sent before the start of the run are delivered in the order of sending", async () => {
    for (const store of [memoryStore(), "none"] as const) {
      const loop = createToolLoop({ tools: [slow(createVirtualWorld(), 1)], store, turns: [["one"], ["two"]] });
      const handle = loop.start();
      void handle.steer("x");
      void handle.steer("y");
      expect(listMessageTexts((await handle.result).state)).toEqual([
        "user: go",
        "assistant",
        "user: x",
        "user: y",
        "assistant",
      ]);
    }
  });

  test("any process with the store can steer a run, and an idle thread keeps the message for its next run", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const loop = createToolLoop({
      tools: [slow(world, 10)],
      world,
      store,
      strategy: "sequential",
      turns: [works("a", "b"), ["ok"], ["more"]],
    });
    const handle = loop.start();
    await world.advance(5);
    await steer(loop.graph, { store: store.peer(), thread: "t", input: "from elsewhere", world });
    await world.advance(100);
    expect(listMessageTexts((await handle.result).state).slice(2)).toEqual([
      "a: a",
      skipped("b"),
      "user: from elsewhere",
      "assistant",
    ]);
    await steer(loop.graph, { store, thread: "t", input: "later", world });
    const next = loop.start(user("and now", "u2"));
    await world.advance(100);
    expect(listMessageTexts((await next.result).state).slice(-3)).toEqual([
      "user: later",
      "user: and now",
      "assistant",
    ]);
  });

  test("a message from another process reaches a waiting tool at once by a hint, within a second without hints, and an unshared run does not poll [PK5, PK12]", async () => {
    for (const { local, hasHints, answer } of [
      { local: false, hasHints: true, answer: "spoken to at 2500" },
      { local: false, hasHints: false, answer: "spoken to at 3000" },
      { local: true, hasHints: false, answer: "waited at 5000" },
    ]) {
      const log: string[] = [];
      const mine = memoryStore();
      const world = createVirtualWorld();
      const wait = defineTool({
        name: "wait",
        description: "Wait.",
        input: z.object({}),
        run: (_, { steered: signal }) =>
          new Promise<string>((resolve) => {
            const end = (): void => resolve(`${signal.aborted ? "spoken to" : "waited"} at ${world.clock.monotonic()}`);
            const stop = world.schedule.after(5_000, end);
            signal.addEventListener("abort", () => [stop(), end()], { once: true });
          }),
      });
      const { watch, ...unwatched } = polled(log, mine);
      const counted = { ...unwatched, local, countInputs: countReads(log, mine) };
      const store = hasHints && watch !== undefined ? { ...counted, watch } : counted;
      const loop = createToolLoop({ tools: [wait], world, store, turns: [[call("wait", {}, "w")], ["ok"], ["ok"]] });
      const handle = loop.start();
      await world.advance(2_500);
      expect(log).toEqual(local ? [] : ["count", "count"]);
      await steer(loop.graph, { store: mine.peer(), thread: "t", input: "hurry", world });
      await world.advance(10_000);
      expect(listToolAnswers(await handle.result).map(getAnswerText)).toEqual([answer]);
      expect(world.timers).toBe(0);
    }
  });

  test("an invalid inbox message is refused with a hint", async () => {
    const store = memoryStore();
    const loop = createToolLoop({ tools: [slow(createVirtualWorld(), 1)], store, turns: [["ok"]] });
    const handle: RunHandle<ChatState> = loop.start();
    await handle.result;
    const getCode = (sent: Promise<void>): Promise<unknown> =>
      sent.then(
        () => "kept",
        (error: unknown) => (isStatewrightError(error) ? error.code : error),
      );
    expect(await getCode(handle.steer([]))).toBe("invalid_input");
    expect(await getCode(handle.steer(""))).toBe("invalid_input");
    expect(await getCode(handle.followUp(" \n"))).toBe("invalid_input");
    expect(await getCode(handle.steer(7 as never))).toBe("invalid_input");
    expect(await getCode(handle.steer([{ role: "assistant", id: "x", content: [], finish: "stop" }]))).toBe(
      "invalid_input",
    );
    expect(await getCode(handle.followUp([user("fine"), null as never]))).toBe("invalid_input");
    const given = { store, thread: "t", input: "x" };
    expect(await getCode(steer(loop.graph, { ...given, thread: "none" }))).toBe("unknown_thread");
    expect(await getCode(steer(loop.graph, { ...given, branch: "none" }))).toBe("unknown_branch");
    expect(await getCode(steer(loop.graph, { ...given, kind: "shout" as never }))).toBe("invalid_option");
    expect(await getCode(steer(loop.graph, { ...given, store: {} as never }))).toBe("invalid_option");
    expect(await store.inbox("t", "main")).toEqual([]);
  });
});
