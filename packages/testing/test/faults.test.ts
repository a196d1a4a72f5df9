import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Message,
  type Model,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { faults, say, scriptedModel, virtualClock } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { words as letter, office } from "./support/claims-graph.ts";

const words = defineState({ seen: channel.list(z.string()) });
const steps = defineGraph({ name: "steps", state: words })
  .nodes({ one: () => ({ seen: ["one"] }), two: () => ({ seen: ["two"] }) })
  .edges({ [START]: "one", one: "two", two: END });

describe("store faults", () => {
  test("a full store pauses the run and keeps reported commits, and a resume with room completes the run [G6]", async () => {
    const store = memoryStore();
    const first = await run(steps, { store: faults.store(store, { failNth: 2, error: "store_full" }), thread: "t" })
      .result;
    expect(first).toMatchObject({ status: "paused", state: { seen: [] } });
    const second = await resume(steps, { store, thread: "t" }).result;
    expect(second).toMatchObject({ status: "done", state: { seen: ["one", "two"] } });
  });

  test("a failing store fails the run before the step is reported as done", async () => {
    const store = memoryStore();
    const failing = run(steps, { store: faults.store(store, { failNth: [2, 3] }), thread: "t" });
    const committed: number[] = [];
    failing.on((event) => {
      if (event.type === "step.committed") committed.push(event.step);
    });
    await expect(failing.result).rejects.toMatchObject({ code: "store_failed" });
    expect(committed).toEqual([0]);
  });

  test("a slow store reports commits later and in order", async () => {
    const world = virtualClock();
    const store = faults.store(memoryStore(), { failNth: [], notifyAfterMs: 500, world });
    const slow = run(steps, { store, thread: "t", world });
    await world.runAll();
    expect(await slow.result).toMatchObject({ status: "done" });
    expect(world.clock.monotonic()).toBe(1_500);
  });

  test("store faults by seed fail the same commits in every run", async () => {
    const failures = async (seed: number): Promise<string> => {
      const store = faults.store(memoryStore(), { chance: 0.5, seed });
      const claim = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 0 });
      const observed = await Promise.all(
        Array.from(
          { length: 20 },
          () =>
            new Promise<boolean>((resolve) =>
              store.commit({ thread: "t", branch: claim.branch, epoch: claim.epoch, seq: 0 }, (failure) =>
                resolve(failure !== undefined),
              ),
            ),
        ),
      );
      return observed.map((failed) => (failed ? "x" : ".")).join("");
    };
    expect(await failures(3)).toBe(await failures(3));
    expect(await failures(3)).not.toBe(await failures(4));
  });
});

const asks: Message[] = [
  { role: "assistant", id: "a", finish: "calls", content: [{ type: "call", id: "call_1", name: "look", args: {} }] },
];
const look = defineTool({
  name: "look",
  description: "Look.",
  input: z.object({}),
  effect: "pure",
  retry: { attempts: 3 },
  timeoutMs: 5_000,
  run: () => "seen",
});

describe("other store faults", () => {
  test("a locked thread cannot be claimed, and the run fails with that error", async () => {
    const store = faults.store(memoryStore(), { on: "claim", failFirst: 1, error: "store_locked" });
    await expect(run(steps, { store, thread: "t" }).result).rejects.toMatchObject({ code: "store_locked" });
    expect(await run(steps, { store, thread: "t" }).result).toMatchObject({ status: "done" });
  });

  test("a failing read rejects the reader", async () => {
    const store = memoryStore();
    await run(steps, { store, thread: "t" }).result;
    const failing = faults.store(store, { on: "read", failNth: 1 });
    await expect(failing.head("t")).rejects.toMatchObject({ code: "store_failed" });
    expect((await failing.head("t"))?.step).toBe(2);
  });

  test("a hanging commit is made and not reported", async () => {
    const store = memoryStore();
    const world = virtualClock();
    const silent = run(steps, { store: faults.store(store, { failNth: 3, hang: true }), thread: "t", world });
    const observed: number[] = [];
    silent.on((event) => {
      if (event.type === "step.committed") observed.push(event.step);
    });
    await world.waitUntilIdle();
    expect([observed, (await store.head("t"))?.step]).toEqual([[0, 1], 2]);
  });
});

describe("tool faults", () => {
  const graph = (plan: Parameters<typeof faults.tool>[1]) =>
    defineGraph({ name: "look", state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [faults.tool(look, plan)] }) })
      .edges({ [START]: "tools", tools: END });

  test("a tool that fails twice is tried a third time", async () => {
    const t = await testRun(graph({ failFirst: 2 }), { input: { messages: asks } });
    await t.finish();
    expect(t.state.messages.at(-1)).toMatchObject({ role: "tool", isError: false, content: [{ text: "seen" }] });
    expect(t.trace.entries.filter((entry) => entry.type === "tool.retried")).toHaveLength(2);
  });

  test("a hanging tool is ended by its timeout without real time passing", async () => {
    const t = await testRun(graph({ failFirst: 3, hang: true }), { input: { messages: asks } });
    await t.finish();
    expect(t.state.messages.at(-1)).toMatchObject({ isError: true, content: [{ text: "Timed out after 5000 ms" }] });
    expect(t.world.clock.monotonic()).toBeGreaterThan(15_000);
  });
});

describe("other tool faults", () => {
  const slowly = (world: ReturnType<typeof virtualClock>, plan: Parameters<typeof faults.tool>[1]) =>
    defineGraph({ name: "look", state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [faults.tool(look, { ...plan, world })] }) })
      .edges({ [START]: "tools", tools: END });

  test("a slow tool completes after its delay, and a shorter timeout ends it", async () => {
    for (const [slowMs, text] of [
      [3_000, "seen"],
      [9_000, "Timed out after 5000 ms"],
    ] as const) {
      const world = virtualClock();
      const t = await testRun(slowly(world, { slowMs }), { input: { messages: asks }, clock: world });
      await t.finish();
      expect(t.state.messages.at(-1)).toMatchObject({ content: [{ text }] });
    }
  });

  test("a malformed tool result becomes an answer that the model can read", async () => {
    const world = virtualClock();
    const t = await testRun(slowly(world, { malformed: true }), { input: { messages: asks }, clock: world });
    await t.finish();
    expect(t.state.messages.at(-1)).toMatchObject({ role: "tool", isError: true });
  });
});

describe("other model faults", () => {
  const graph = (model: Model) =>
    defineGraph({ name: "talk", state: defineState({ messages: channel.messages() }) })
      .nodes({
        model: async (state, runtime) => ({
          messages: [
            await runtime.model({
              model,
              request: { messages: state.messages, tools: [] },
              timeouts: { totalMs: 60_000 },
              retry: { attempts: 2 },
            }),
          ],
        }),
      })
      .edges({ [START]: "model", model: END });

  test.each([
    ["hangs", { failFirst: 1, hang: true }],
    ["is slow", { failFirst: 1, slowMs: 30_000 }],
  ] as const)("waiting for a model that %s once takes no real time", async (_, plan) => {
    const world = virtualClock();
    const t = await testRun(graph(faults.model(scriptedModel([say("here")]), { ...plan, world })), { clock: world });
    await t.until((at) => at.status === "done" || at.status === "failed");
    expect([t.status, t.world.clock.monotonic() >= 30_000]).toEqual(["hang" in plan ? "failed" : "done", true]);
  });

  test("a malformed tool call is answered, and the model continues", async () => {
    const model = faults.model(scriptedModel([say("here")]), { failFirst: 1, malformed: true });
    const t = await testRun(office, { input: letter, model });
    await t.finish();
    expect(t.state.messages.slice(2)).toMatchObject([
      { role: "tool", isError: true },
      { role: "assistant", content: [{ text: "here" }] },
    ]);
    expect(t.trace).toHaveCalledTools([]);
  });
});

test("a clock set forward fires due timers, and a clock set back does not repeat them", async () => {
  const world = faults.clock(virtualClock(), { failNth: 2, jumpMs: 3_600_000 });
  const fired: number[] = [];
  const first = world.clock.now();
  world.schedule.at(first + 7_200_000, () => fired.push(world.clock.now() - first));
  expect(world.clock.now() - first).toBe(3_600_000);
  await world.advance(7_200_000);
  expect(fired).toEqual([10_800_000]);
  expect(world.clock.monotonic()).toBe(7_200_000);
});

describe("model faults", () => {
  const quiet = { signal: new AbortController().signal };
  const request = { messages: [], tools: [] };

  test("a model that fails once answers the next request", async () => {
    const model = faults.model(scriptedModel([say("here")]), { failFirst: 1 });
    await expect(model.respond(request, quiet)).rejects.toMatchObject({
      code: "model_failed",
      details: { retryable: true },
    });
    expect(await model.respond(request, quiet)).toMatchObject({ content: [{ text: "here" }] });
  });

  test("a truncated model stream has emitted its first words", async () => {
    const said: string[] = [];
    const model = faults.model(scriptedModel([say("one two three")]), { cutAfter: 2 });
    const answer = model.respond(request, {
      ...quiet,
      delta: (delta) => delta.type === "text" && said.push(delta.text),
    });
    await expect(answer).rejects.toThrow();
    expect(said).toEqual(["one ", "two "]);
  });
});
