/** Thread events: gap-free, stored, readable from any number, and bounded for slow readers. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type MemoryStore,
  memoryStore,
  type RunEvent,
  resume,
  run,
  START,
  type Store,
  streamEvents,
  subgraph,
} from "../../../src/index.ts";
import { createEventQueue, isDurable } from "../../../src/run/events/event-queue.ts";
import { createEventStream } from "../../../src/run/events/events.ts";
import { collectEvents, createDeferred, getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()), fail: z.boolean().default(false) });

const inner = defineGraph({ name: "inner", state: Log })
  .nodes({ one: () => ({ log: ["one"] }), two: () => ({ log: ["two"] }) })
  .edges({ [START]: "one", one: "two", two: END });

const graph = defineGraph({ name: "graph", state: Log, interrupts: { ok: z.boolean() } })
  .nodes({
    begin: (_state, { progress, emit }) => {
      progress("beginning");
      emit("said", { word: "hello" });
      return { log: ["begin"] };
    },
    call: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) }),
    ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("ok"))] }),
    end: (state) => {
      if (state.fail) throw new Error("it fails");
      return { log: ["end"] };
    },
  })
  .edges({ [START]: "begin", begin: ["call", "ask"], call: "end", ask: "end", end: END });

/** Runs one thread to every kind of end; returns its events in order. */
async function recordEveryEnd(store: Store): Promise<readonly RunEvent[]> {
  const observed: RunEvent[] = [];
  const watched = async (handle: ReturnType<typeof run<NonNullable<typeof graph.types>>>) => {
    handle.on((event) => observed.push(event));
    await handle.result.catch((error: unknown) => error);
  };
  const at = { store, thread: "t" };
  const drained = run(graph, { ...at, input: { fail: true } });
  drained.drain();
  await watched(drained);
  await watched(resume(graph, at));
  await watched(resume(graph, { ...at, answers: { ok: true } }));
  const cancelled = resume(graph, at);
  cancelled.on(({ type }) => {
    if (type === "task.started") cancelled.cancel("enough");
  });
  await watched(cancelled);
  await watched(run(graph, { ...at, input: { fail: false } }));
  await watched(resume(graph, { ...at, answers: { ok: false } }));
  return observed;
}

async function read(store: Store, after = 0): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of streamEvents({ store, thread: "t", after })) events.push(event);
  return events;
}

test("durable events have gap-free numbers and are stored as emitted, including events of inner graphs [E58]", async () => {
  const store = memoryStore();
  const observed = await recordEveryEnd(store);
  const saved = await read(store);
  expect(saved.map(({ seq }) => seq)).toEqual(saved.map((_, index) => index + 1));
  const types = saved.map(({ type }) => type);
  for (const type of ["started", "waiting", "failed", "paused", "cancelled", "completed"])
    expect(types).toContain(`run.${type}`);
  expect(saved.filter(({ within }) => within === "call")).not.toHaveLength(0);
  const durable = observed.filter(isDurable);
  expect(saved).toEqual(durable);
  // Every other event carries the number of the preceding durable event.
  let last = 0;
  for (const event of observed) {
    if (isDurable(event)) expect(event.seq).toBe(++last);
    else expect(event.seq).toBe(last);
  }
});

test("a reader that passes its last event number misses no event and sees no event twice, from any position [E58]", async () => {
  const store = memoryStore();
  await recordEveryEnd(store);
  const all = await read(store);
  for (let seen = 0; seen <= all.length; seen++) expect(await read(store, seen)).toEqual(all.slice(seen));
});

test("the event stream of an active run returns earlier events first, then new events [E58]", async () => {
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  const before = await read(store);
  const handle = resume(graph, { store, thread: "t", answers: { ok: true } });
  const events: RunEvent[] = [];
  for await (const event of handle.events({ after: 2 })) events.push(event);
  const numbers = events.filter(isDurable).map(({ seq }) => seq);
  expect(numbers).toEqual(numbers.map((_, index) => index + 3));
  expect(numbers.length).toBeGreaterThan(before.length - 2);
  expect(events.at(-1)?.type).toBe("run.completed");
  const alone = run(graph, { input: {} });
  const refused = getFailure(async () => {
    for await (const event of alone.events({ after: 0 })) expect(event).toBeUndefined();
  }, "missing_store");
  await getFailure(alone.result, "missing_store");
  await refused;
});

test("streamEvents refuses a follow that is no signal and names the type to pass [FX46]", async () => {
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  const error = await getFailure(
    // @ts-expect-error follow is a signal
    streamEvents({ store, thread: "t", follow: true }).next(),
    "invalid_option",
  );
  expect(error.message).toContain(
    "streamEvents: `follow` must be the signal of an AbortController that ends the stream, got true",
  );
});

test("the events of a thread can be followed from another process [E58]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const peer: MemoryStore = store.peer();
  await run(graph, { store, world, thread: "t" }).result;
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    const following = { follow: stop.signal, world, everyMs: 50, views: ["checkpoints"] } as const;
    for await (const event of streamEvents({ store: peer, thread: "t", ...following })) seen.push(event.type);
  })();
  await world.advance(10);
  expect(seen.at(-1)).toBe("run.waiting");
  await resume(graph, { store, world, thread: "t", answers: { ok: true } }).result;
  expect(seen.at(-1)).toBe("run.waiting");
  await world.advance(60);
  expect(seen.at(-1)).toBe("run.completed");
  stop.abort();
  await following;
  expect(world.timers).toBe(0);
});

test("event views filter the stream, and the values stream gives the state after each superstep [E58]", async () => {
  const handle = run(graph, { store: memoryStore(), thread: "t" });
  const views = [["updates"], ["custom"], ["tasks"], ["checkpoints"], ["debug"], ["messages", "tools"]] as const;
  const seen = views.map((each) => ({ each, events: handle.events({ views: each }) }));
  const values = handle.values();
  const all = collectEvents(handle);
  await handle.result;
  const types = new Map<string, Set<string>>();
  for (const { each, events } of seen) {
    const found = new Set<string>();
    for await (const { type } of events) found.add(type);
    types.set(each.join(), found);
  }
  expect([...(types.get("updates") ?? [])]).toEqual(["step.committed"]);
  expect([...(types.get("custom") ?? [])].sort()).toEqual(["custom", "node.progress"]);
  expect([...(types.get("tasks") ?? [])].every((type) => type.startsWith("task."))).toBe(true);
  expect(types.get("checkpoints")).toEqual(new Set(all.filter(isDurable).map(({ type }) => type)));
  expect(types.get("debug")).toEqual(new Set(all.map(({ type }) => type)));
  expect(types.get("messages,tools")?.size).toBe(0);
  const states: unknown[] = [];
  for await (const value of values) states.push(value.log);
  expect(states).toEqual([[], ["begin"]]);
});

const place = { seq: 1, at: 0, branch: "main" };
const delta = (task: string, text: string): RunEvent => ({
  ...place,
  type: "message.delta",
  messageId: "m",
  kind: "text",
  node: "model",
  task,
  text,
});

test("the queue of a slow reader is bounded: deltas of one message are joined, and only the newest update is saved with a count [E59]", () => {
  const queue = createEventQueue();
  for (let nth = 0; nth < 50_000; nth++) {
    queue.push(delta("1:0", "a"));
    queue.push(delta("1:1", "b"));
    queue.push({
      ...place,
      type: "tool.update",
      node: "tools",
      task: "1:2",
      callId: "c",
      tool: "t",
      partial: { content: [{ type: "text", text: String(nth) }] },
    });
  }
  const rest: RunEvent[] = [];
  for (let event = queue.shift(); event !== undefined; event = queue.shift()) rest.push(event);
  expect(rest.length).toBeLessThan(1_100);
  const text = (task: string): string =>
    rest.flatMap((event) => (event.type === "message.delta" && event.task === task ? [event.text] : [])).join("");
  expect(text("1:0")).toBe("a".repeat(50_000));
  expect(text("1:1")).toBe("b".repeat(50_000));
  const updates = rest.flatMap((event) => (event.type === "tool.update" ? [event] : []));
  expect(updates.at(-1)?.partial).toEqual({ content: [{ type: "text", text: "49999" }] });
  expect(updates.reduce((sum, { dropped = 0 }) => sum + dropped + 1, 0)).toBe(50_000);
});

test("message deltas are not joined across the end of their message, and no durable event is dropped [E59]", () => {
  const queue = createEventQueue();
  const finished: RunEvent = {
    ...place,
    type: "message.completed",
    node: "model",
    task: "1:0",
    message: { role: "assistant", id: "m", content: [], finish: "stop" },
  };
  for (let nth = 0; nth < 20_000; nth++) {
    queue.push(delta("1:0", "x"));
    queue.push(finished);
    queue.push({
      ...place,
      seq: nth,
      type: "run.started",
      run: "r",
      thread: "t",
      branch: "main",
      graph: "g",
      attempt: 1,
      recovered: false,
    });
  }
  let durable = 0;
  let dropped = 0;
  let saved = 0;
  let before: RunEvent | undefined;
  for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
    if (isDurable(event)) durable += 1;
    else if (event.type === "events.dropped") dropped += event.count;
    else {
      saved += 1;
      if (event.type === "message.delta") expect(event.text).toBe("x");
      if (event.type === "message.completed") expect(before?.type).toBe("message.delta");
    }
    before = event;
  }
  expect(durable).toBe(20_000);
  expect(saved + dropped).toBe(40_000);
  expect(saved).toBeLessThanOrEqual(10_000);
});

test("a slow loop over events loses updates and lines with a count by default, and none with overflow keep [FX87]", async () => {
  const count = 3_000;
  const noisy = defineGraph({ name: "noisy", state: Log })
    .nodes({
      work: (_state, { progress, emit }) => {
        for (let line = 0; line < count; line++) progress(`line ${line}`);
        emit("between", 1);
        for (let line = 0; line < count; line++) progress(`more ${line}`);
      },
    })
    .edges({ [START]: "work", work: END });
  const handle = run(noisy, {});
  const loops = [handle.events(), handle.events({ overflow: "keep" })];
  await handle.result;
  const seen: { lines: number; dropped: number; last: string | undefined; overflows: number }[] = [];
  for (const loop of loops) {
    const found = { lines: 0, dropped: 0, last: undefined as string | undefined, overflows: 0 };
    for await (const event of loop) {
      if (event.type === "events.dropped") found.overflows += 1;
      if (event.type !== "node.progress") continue;
      found.lines += 1;
      found.dropped += event.dropped ?? 0;
      found.last = event.text;
    }
    seen.push(found);
  }
  const [merged, kept] = seen;
  expect(merged?.lines).toBeGreaterThan(900);
  expect(merged?.lines).toBeLessThanOrEqual(1_001);
  expect((merged?.lines ?? 0) + (merged?.dropped ?? 0)).toBe(2 * count);
  expect([merged?.last, merged?.overflows]).toEqual([`more ${count - 1}`, 0]);
  expect(kept).toEqual({ lines: 2 * count, dropped: 0, last: `more ${count - 1}`, overflows: 0 });
  expect(() => handle.events({ overflow: "block" as never })).toThrow(/"merge" or "keep"/);
});

test("breaking out of an event loop ends the subscription, and stops the run only on request [E59]", async () => {
  const goOn = createDeferred();
  const slow = defineGraph({ name: "slow", state: Log })
    .nodes({
      wait: async () => {
        await goOn.promise;
        return { log: ["done"] };
      },
    })
    .edges({ [START]: "wait", wait: END });
  const handle = run(slow, {});
  for await (const event of handle.events()) if (event.type === "task.started") break;
  goOn.resolve();
  expect((await handle.result).status).toBe("done");

  const stream = createEventStream(() => undefined);
  const reader = stream.iterate();
  expect(stream.hasReaders()).toBe(true);
  await reader.return?.();
  expect(stream.hasReaders()).toBe(false);
});
