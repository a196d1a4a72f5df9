import {
  defineGraph,
  defineState,
  defineTool,
  END,
  list,
  type Message,
  memoryStore,
  messages,
  resume,
  run,
  START,
  toolNode,
} from "@statewright/core";
import { faults, say, scriptedModel, virtualClock } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const words = defineState({ seen: list(z.string()) });
const steps = defineGraph({ name: "steps", state: words })
  .nodes({ one: () => ({ seen: ["one"] }), two: () => ({ seen: ["two"] }) })
  .edges({ [START]: "one", one: "two", two: END });

describe("faults of a store", () => {
  test("G6 a full store pauses the run and keeps what was told; resumed with room it ends", async () => {
    const store = memoryStore();
    const first = await run(steps, { store: faults.store(store, { failNth: 2, error: "store_full" }), thread: "t" })
      .result;
    expect(first).toMatchObject({ status: "paused", state: { seen: [] } });
    const second = await resume(steps, { store, thread: "t" }).result;
    expect(second).toMatchObject({ status: "done", state: { seen: ["one", "two"] } });
  });

  test("a failing store fails the run before anybody is told that the step is done", async () => {
    const store = memoryStore();
    const failing = run(steps, { store: faults.store(store, { failNth: [2, 3] }), thread: "t" });
    const committed: number[] = [];
    failing.on((event) => {
      if (event.type === "step.committed") committed.push(event.step);
    });
    await expect(failing.result).rejects.toMatchObject({ code: "store_failed" });
    expect(committed).toEqual([0]);
  });

  test("a slow store tells later, in order", async () => {
    const world = virtualClock();
    const store = faults.store(memoryStore(), { failNth: [], tellAfterMs: 500, world });
    const slow = run(steps, { store, thread: "t", world });
    await world.runAll();
    expect(await slow.result).toMatchObject({ status: "done" });
    expect(world.clock.monotonic()).toBe(1_500);
  });

  test("by seed the same commits fail in every run", async () => {
    const failures = async (seed: number): Promise<string> => {
      const store = faults.store(memoryStore(), { chance: 0.5, seed });
      const claim = await store.claim({ thread: "t", graph: "g", version: 1, shape: "s", at: 0 });
      const told = await Promise.all(
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
      return told.map((failed) => (failed ? "x" : ".")).join("");
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

describe("faults of a tool", () => {
  const graph = (plan: Parameters<typeof faults.tool>[1]) =>
    defineGraph({ name: "look", state: defineState({ messages: messages() }) })
      .nodes({ tools: toolNode({ tools: [faults.tool(look, plan)] }) })
      .edges({ [START]: "tools", tools: END });

  test("a tool that fails twice is tried a third time", async () => {
    const t = await testRun(graph({ failFirst: 2 }), { input: { messages: asks } });
    await t.finish();
    expect(t.state.messages.at(-1)).toMatchObject({ role: "tool", isError: false, content: [{ text: "seen" }] });
    expect(t.trace.entries.filter((entry) => entry.type === "tool.retried")).toHaveLength(2);
  });

  test("a tool that hangs is ended by its time limit, in no time", async () => {
    const t = await testRun(graph({ failFirst: 3, hang: true }), { input: { messages: asks } });
    await t.finish();
    expect(t.state.messages.at(-1)).toMatchObject({ isError: true, content: [{ text: "Timed out after 5000 ms" }] });
    expect(t.world.clock.monotonic()).toBeGreaterThan(15_000);
  });
});

describe("faults of a model", () => {
  const quiet = { signal: new AbortController().signal };
  const request = { messages: [], tools: [] };

  test("a model that fails once answers the next time", async () => {
    const model = faults.model(scriptedModel([say("here")]), { failFirst: 1 });
    await expect(model.respond(request, quiet)).rejects.toMatchObject({
      code: "model_failed",
      details: { retryable: true },
    });
    expect(await model.respond(request, quiet)).toMatchObject({ content: [{ text: "here" }] });
  });

  test("a stream that is cut has said its first words", async () => {
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
