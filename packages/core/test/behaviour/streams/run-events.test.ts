import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  getMessageText,
  inputNode,
  type Model,
  memoryStore,
  type RunEvent,
  type RunResult,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
} from "../../../src/index.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });
const graph = defineGraph({ name: "line", state: Log, interrupts: { go: z.boolean() } })
  .nodes({
    a: (_state, { progress, emit }) => {
      progress("thinking");
      emit("mine", { n: 1 });
      return { log: ["a"] };
    },
    b: async (_state, { interrupt }) => ({ log: [`b ${await interrupt("go")}`] }),
  })
  .edges({ [START]: "a", a: "b", b: END });
const failing = defineGraph({ name: "failing", state: Log })
  .nodes({
    a: () => {
      throw new Error("no");
    },
  })
  .edges({ [START]: "a", a: END });

async function drainLoop(loop: AsyncIterable<unknown>): Promise<void> {
  for await (const _each of loop);
}

describe("run result", () => {
  test("a run ends as done, waiting, paused or cancelled with typed output, and a failed run rejects with its error [E65]", async () => {
    const store = memoryStore();
    const ends = new Set<RunResult<unknown>["status"]>();
    const waiting = await run(graph, { store, thread: "t" }).result;
    expectTypeOf(waiting.state).toEqualTypeOf<{ readonly log: readonly string[] }>();
    if (waiting.status === "waiting") expectTypeOf(waiting.interrupts).not.toBeAny();
    ends.add(waiting.status);
    const done = await resume(graph, { store, thread: "t", answers: { go: true } }).result;
    ends.add(done.status);
    expect(done.state.log).toEqual(["a", "b true"]);
    const handle = run(graph, { store, thread: "cancelled" });
    handle.cancel();
    ends.add((await handle.result).status);
    const full: Store = {
      ...store,
      commit: (_commit, onCommitted) =>
        queueMicrotask(() => onCommitted(new StatewrightError("store_full", { what: "no room", next: "Make room" }))),
    };
    await getFailure(run(graph, { store: full, thread: "p" }).result, "store_full");
    let commits = 0;
    const fuller: Store = {
      ...store,
      commit: (commit, onCommitted) =>
        ++commits > 1 && commit.checkpoint !== undefined
          ? full.commit(commit, onCommitted)
          : store.commit(commit, onCommitted),
    };
    ends.add((await run(graph, { store: fuller, thread: "q" }).result).status);
    expect(ends).toEqual(new Set(["waiting", "done", "cancelled", "paused"]));
    const error = await getFailure(run(failing, {}).result, "node_failed");
    expect(error.cause).toMatchObject({ message: "no" });
  });

  test("the loops over the events of a failed run throw the run's error after the last event [FX1, E65]", async () => {
    const store = memoryStore();
    const readers: Readonly<Record<string, (handle: ReturnType<typeof run>) => AsyncIterable<unknown>>> = {
      events: (handle) => handle.events(),
      view: (handle) => handle.events({ views: ["messages"] }),
      after: (handle) => handle.events({ after: 0 }),
      values: (handle) => handle.values(),
      text: (handle) => handle.text(),
    };
    for (const [thread, read] of Object.entries(readers)) {
      const handle = run(failing, { store, thread });
      const seen: unknown[] = [];
      const loop = async (from: AsyncIterable<unknown>): Promise<void> => {
        for await (const each of from) seen.push(each);
      };
      expect((await getFailure(loop(read(handle)))).message, thread).toContain("no");
      if (thread === "events" || thread === "after") expect(seen.at(-1)).toMatchObject({ type: "run.failed" });
      // A loop over a run that has failed before throws too.
      await getFailure(loop(handle.text()), "node_failed");
    }
  });

  test("a loop with throwOnFailure false ends after run.failed [FX1]", async () => {
    const types: string[] = [];
    for await (const { type } of run(failing, {}).events({ throwOnFailure: false })) types.push(type);
    expect(types.at(-1)).toBe("run.failed");
  });

  test("a failure reaches the process as an unhandled rejection, unless a reader of the events receives it [FX1, E65]", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    const waitForTurns = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    // @ts-expect-error no such channel
    const refuse = () => run(graph, { input: { lgo: [] } });
    const listen = (): void => undefined;
    const read = (loop: AsyncIterable<unknown>): Promise<unknown> => getFailure(drainLoop(loop));
    const leave = async (loop: AsyncIterable<unknown>): Promise<void> => {
      for await (const _each of loop) return;
    };
    const cases: readonly (readonly [string, () => unknown, number])[] = [
      ["a loop", () => read(run(failing, {}).events()), 0],
      ["text", () => read(run(failing, {}).text()), 0],
      ["a listener", () => run(failing, {}).on(listen), 0],
      ["a quiet loop", () => drainLoop(run(failing, {}).events({ throwOnFailure: false })), 0],
      ["no reader", () => run(failing, {}), 1],
      ["a loop that was left", () => leave(run(failing, {}).events()), 1],
      [
        "a quiet loop without the event",
        () => drainLoop(run(failing, {}).events({ views: ["tools"], throwOnFailure: false })),
        1,
      ],
      ["a refused input and a loop", () => read(refuse().events()), 0],
      ["a refused input and a listener", () => refuse().on(listen), 1],
    ];
    process.on("unhandledRejection", note);
    try {
      for (const [name, start, expected] of cases) {
        await start();
        await waitForTurns();
        expect(unhandled.splice(0), name).toHaveLength(expected);
      }
    } finally {
      process.off("unhandledRejection", note);
    }
  });

  test("a failure without an event, such as a refused input or answer, is thrown by the loops over the events", async () => {
    const store = memoryStore();
    const read = async (loop: AsyncIterable<unknown>): Promise<void> => {
      for await (const _each of loop);
    };
    // @ts-expect-error no such channel
    await getFailure(read(run(graph, { input: { lgo: [] } }).events()), "invalid_input");
    // @ts-expect-error no such channel
    await getFailure(read(run(graph, { input: { lgo: [] } }).text()), "invalid_input");
    await run(graph, { store, thread: "t" }).result;
    await getFailure(read(run(graph, { store, thread: "t" }).values()), "thread_busy");
    // @ts-expect-error the answer is no boolean
    await getFailure(read(resume(graph, { store, thread: "t", answers: { go: "yes" } }).events()), "invalid_answer");
    await read(resume(graph, { store, thread: "t", answers: { go: true } }).events());
  });

  test("a run without a thread id creates one and returns it [E65]", async () => {
    const store = memoryStore();
    const handle = run(graph, { store });
    const { thread, run: id } = await handle.result;
    expect(handle.thread).toBe(thread);
    expect(handle.id).toBe(id);
    expect((await store.thread(thread))?.id).toBe(thread);
    const other = run(graph, { store });
    expect((await other.result).thread).not.toBe(thread);
  });
});

describe("run events", () => {
  test("run events are emitted in order from start to end, each after its commit", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const savedAt: (readonly [string, number | undefined])[] = [];
    const watched: Store = {
      ...store,
      commit: (commit, onCommitted) =>
        store.commit(commit, (failure) => {
          if (commit.checkpoint !== undefined) savedAt.push(["saved", commit.checkpoint.row.id]);
          onCommitted(failure);
        }),
    };
    const handle = run(graph, { world, store: watched, thread: "t" });
    handle.on((event) => {
      if (event.type === "step.committed") savedAt.push(["event", event.checkpoint]);
    });
    const events = collectEvents(handle);
    await handle.result;
    expect(savedAt).toEqual([
      ["saved", 1],
      ["event", 1],
      ["saved", 2],
      ["event", 2],
    ]);
    expect(events.map(({ type }) => type)).toEqual([
      "run.started",
      "step.committed",
      "transition.taken",
      "task.started",
      "node.progress",
      "custom",
      "task.completed",
      "transition.taken",
      "step.committed",
      "transition.taken",
      "task.started",
      "transition.taken",
      "task.interrupted",
      "run.waiting",
    ]);
    expect(getOnlyEvent(events, "custom")).toMatchObject([{ name: "mine", payload: { n: 1 }, node: "a", task: "0:0" }]);
    expect(getOnlyEvent(events, "node.progress")).toMatchObject([{ text: "thinking" }]);
    expect(getOnlyEvent(events, "step.committed")[1]).toMatchObject({
      step: 1,
      nodes: ["a"],
      next: ["b"],
      changes: { log: { kind: "append", items: ["a"] } },
    });
    expect(getOnlyEvent(events, "transition.taken").map(({ from, event, to }) => [from, event, to])).toEqual([
      ["start", "step.commit", { a: "executing" }],
      [{ a: "executing" }, "xstate.done.actor.a", { a: "committing" }],
      [{ a: "committing" }, "step.commit", { b: "executing" }],
      [{ b: "executing" }, "task.interrupted", { b: "interrupted" }],
    ]);
    expect(events.every(({ at }) => at === world.clock.now())).toBe(true);
  });

  test("an event of a saved superstep carries its number, and every other event the preceding number", async () => {
    const store = memoryStore();
    const handle = run(graph, { store, thread: "t" });
    const events = collectEvents(handle);
    await handle.result;
    const rows = await store.history("t", { limit: 10 });
    for (const { checkpoint, seq } of getOnlyEvent(events, "step.committed"))
      expect(rows.find(({ id }) => id === checkpoint)?.seq).toBe(seq);
    const numbers = events.map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
  });

  test("an event reader that throws does not affect the run and is logged", async () => {
    const world = createVirtualWorld();
    const handle = run(failing, { world });
    handle.on(() => {
      throw new Error("reader");
    });
    const events = collectEvents(handle);
    await getFailure(handle.result, "node_failed");
    expect(events.at(-1)?.type).toBe("run.failed");
    expect(world.lines[0]).toMatchObject({ level: "error", message: "a reader of events threw" });
  });

  test("breaking out of an event loop ends the subscription and not the run, and a loop over an ended run ends", async () => {
    const handle = run(graph, { store: memoryStore(), thread: "t" });
    const seen: RunEvent["type"][] = [];
    for await (const { type } of handle.events()) {
      seen.push(type);
      if (type === "step.committed") break;
    }
    expect(seen).toEqual(["run.started", "step.committed"]);
    expect((await handle.result).status).toBe("waiting");
    for await (const { type } of handle.events()) seen.push(type);
    expect(seen).toHaveLength(2);
  });

  test("an unsubscribed listener gets no further event", async () => {
    const handle = run(graph, { store: memoryStore(), thread: "t" });
    let eventCount = 0;
    const stop = handle.on(() => {
      eventCount++;
      stop();
    });
    await handle.result;
    expect(eventCount).toBe(1);
  });
});

test("a run without a store works in memory and leaves nothing behind", async () => {
  const memory = defineGraph({ name: "memory", state: Log })
    .nodes({ a: async (_state, { step }) => ({ log: [await step("s", () => "a")] }), b: () => ({ log: ["b"] }) })
    .edges({ [START]: "a", a: "b", b: END });
  const world = createVirtualWorld();
  expect(await run(memory, { world }).result).toMatchObject({
    status: "done",
    steps: 2,
    bytes: 0,
    state: { log: ["a", "b"] },
  });
  expect(world.timers).toBe(0);
  expect(world.lines).toEqual([]);
});

test("text() emits all text from its call on", async () => {
  const world = createVirtualWorld();
  const talking = defineGraph({ name: "talking", state: Log })
    .nodes({
      a: async (_state, { model }) => {
        await model({
          model: {
            id: "scripted",
            respond: async (_request, { delta }) => {
              delta?.({ type: "text", text: "hello" });
              return { content: [{ type: "text", text: "hello" }], finish: "stop" };
            },
          },
          request: { messages: [], tools: [] },
        });
      },
    })
    .edges({ [START]: "a", a: END });
  const text = run(talking, { world }).text();
  await world.waitUntilIdle();
  let said = "";
  for await (const piece of text) said += piece;
  expect(said).toBe("hello");
});

test("an event iterator with several pending reads gets each event once, and an end for the remaining reads", async () => {
  const events = run(failing, {}).events({ throwOnFailure: false });
  const asked = Array.from({ length: 9 }, () => events.next());
  const got = await Promise.all(asked);
  const observed = got.flatMap(({ value }) => (value === undefined ? [] : [value]));
  expect(new Set(observed).size).toBe(observed.length);
  expect(observed.at(-1)?.type).toBe("run.failed");
  expect(got.at(-1)).toEqual({ done: true, value: undefined });
});

/** Model that writes its prompt word by word, and leaves the processor after each word. */
const repeating: Model = {
  id: "repeating",
  respond: async ({ messages }, { delta }) => {
    const text = getMessageText(messages.at(-1));
    for (const word of text.split(/(?<= )/)) {
      delta?.({ type: "text", text: word });
      await Promise.resolve();
      if (word === "stop") throw new StatewrightError("model_failed", { what: "the line is dead", next: "Wait" });
    }
    return { content: [{ type: "text", text }], finish: "stop" };
  },
};

const [first, second, third] = ["one two three four", "five six", "seven eight stop"] as const;
function createParallelGraph(prompts: readonly string[]) {
  return defineGraph({ name: "parallel", state: Log })
    .nodes({
      write: inputNode(z.string(), async (_state, { input, generate }) => {
        const { text } = await generate({ model: repeating, prompt: input, retry: { attempts: 1 } });
        return { log: [text] };
      }),
    })
    .edges({ [START]: fanOut("write", () => [...prompts]), write: END });
}

test("text() streams messages of parallel nodes one after the other, as their events alternate", async () => {
  const handle = run(createParallelGraph([first, second]), {});
  const owners: string[] = [];
  handle.on((event) => {
    if (event.type === "message.delta") owners.push(event.task ?? "");
  });
  const pieces: string[] = [];
  for await (const text of handle.text()) pieces.push(text);
  expect(owners.slice(0, 4)).toEqual(["0:0", "0:1", "0:0", "0:1"]);
  expect(pieces.join("")).toBe(`${first}\n${second}`);
  expect(pieces.slice(0, 4)).toEqual(["one ", "two ", "three ", "four"]);
});

test("text() of a failed run ends with the text of all messages before it throws the error", async () => {
  const pieces: string[] = [];
  const loop = async () => {
    for await (const text of run(createParallelGraph([first, second, third]), {}).text()) pieces.push(text);
  };
  expect((await getFailure(loop(), "model_failed")).message).toContain("the line is dead");
  expect(pieces.join("")).toBe(`${first}\n${second}`);
});
