import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  memoryStore,
  resume,
  route,
  run,
  START,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";

const Log = defineState({ log: channel.list(z.string()) });
const createLogNode = (name: string) => () => ({ log: [name] });
const line = defineGraph({ name: "line", state: Log })
  .nodes({ a: createLogNode("a"), b: createLogNode("b"), c: createLogNode("c") })
  .edges({ [START]: "a", a: "b", b: "c", c: END });
const loop = defineGraph({ name: "loop", state: Log })
  .nodes({ a: createLogNode("a"), b: createLogNode("b") })
  .edges({ [START]: "a", a: "b", b: route(["a", END], (state) => (state.log.length < 6 ? "a" : END)) });

describe("breakpoints", () => {
  test("a breakpoint before a node pauses the run and names the node, and a resume without an answer continues [E33]", async () => {
    const store = memoryStore();
    const breakpoints = { before: ["b"] } as const;
    const handle = run(line, { store, thread: "t", breakpoints });
    const events = collectEvents(handle);
    expect(await handle.result).toMatchObject({
      status: "paused",
      state: { log: ["a"] },
      steps: 1,
      cause: {
        code: "breakpoint",
        message: expect.stringContaining('the run paused before the node "b"'),
        place: { graph: "line", thread: "t", step: 1 },
        details: { before: ["b"], after: [] },
      },
    });
    expect(events.at(-1)).toMatchObject({ type: "run.paused", cause: { code: "breakpoint" } });
    expect(await listRuns(store, { status: "paused" })).toMatchObject([{ thread: "t", attempt: 1 }]);
    expect(await getState(line, { store, thread: "t" })).toMatchObject({ next: ["b"], status: "paused" });
    await getFailure(run(line, { store, thread: "t" }).result, "thread_busy");
    const going = await resume(line, { store: store.peer(), thread: "t", breakpoints }).result;
    expect(going).toMatchObject({ status: "done", state: { log: ["a", "b", "c"] } });
  });

  test("a breakpoint after a node saves its result, and breakpoints on both sides of one boundary pause the run once [E33]", async () => {
    const store = memoryStore();
    const breakpoints = { after: ["a", "b"], before: ["b"] } as const;
    const first = await run(line, { store, thread: "t", breakpoints }).result;
    expect(first).toMatchObject({
      status: "paused",
      state: { log: ["a"] },
      cause: { details: { after: ["a"], before: ["b"] } },
    });
    const second = await resume(line, { store, thread: "t", breakpoints }).result;
    expect(second).toMatchObject({
      status: "paused",
      state: { log: ["a", "b"] },
      cause: { details: { after: ["b"] } },
    });
    expect((await resume(line, { store, thread: "t", breakpoints }).result).status).toBe("done");
  });

  test("a breakpoint in a loop pauses each iteration and leaves the same history as a run without breakpoints [E33]", async () => {
    const entries = async (store: ReturnType<typeof memoryStore>) => {
      const found: unknown[] = [];
      for await (const { step, nodes, next, changes } of getHistory(loop, { store, thread: "t" }))
        found.push({ step, nodes, next, changes });
      return found;
    };
    const paused = memoryStore();
    const breakpoints = { before: ["a"] } as const;
    const logs: number[] = [];
    let result = await run(loop, { store: paused, thread: "t", breakpoints }).result;
    while (result.status === "paused") {
      logs.push(result.state.log.length);
      result = await resume(loop, { store: paused, thread: "t", breakpoints }).result;
    }
    expect(logs).toEqual([0, 2, 4]);
    const whole = memoryStore();
    await run(loop, { store: whole, thread: "t" }).result;
    expect(await entries(paused)).toEqual(await entries(whole));
  });

  test("a run paused at a breakpoint can be inspected, forked and resumed, and its step limit counts as usual [E33]", async () => {
    const store = memoryStore();
    await run(loop, { store, thread: "t", breakpoints: { after: ["b"] } }).result;
    const { checkpointId } = await getState(loop, { store, thread: "t" });
    const branch = await fork(loop, {
      store,
      thread: "t",
      at: checkpointId,
      name: "other",
      update: { log: ["x", "y"] },
    });
    expect((await resume(loop, { store, thread: "t", branch }).result).state.log).toEqual("abxyab".split(""));
    const error = await getFailure(
      resume(loop, { store, thread: "t", branch: "main", maxSteps: 3 }).result,
      "step_limit",
    );
    expect(error.place).toMatchObject({ thread: "t" });
  });

  test("a breakpoint after the last node does not pause: the run is done", async () => {
    const store = memoryStore();
    expect((await run(line, { store, breakpoints: { after: ["c"] } }).result).status).toBe("done");
  });

  test("a run with empty breakpoint lists completes without a pause event", async () => {
    const handle = run(line, { store: memoryStore(), breakpoints: { before: [], after: [] } });
    const events = collectEvents(handle);
    expect((await handle.result).status).toBe("done");
    expect(getOnlyEvent(events, "run.paused")).toEqual([]);
  });

  test("a breakpoint at an unknown node, or in a run without a store, is refused before a write to the store", async () => {
    const store = memoryStore();
    const wrong = await getFailure(
      run(line, { store, thread: "t", breakpoints: { before: ["z" as "a"] } }).result,
      "invalid_option",
    );
    expect(wrong.message).toContain('expected nodes of the graph "line", got "z". Use one of "a", "b", "c"');
    expect(await store.threads()).toEqual([]);
    await getFailure(run(line, { breakpoints: { after: ["a"] } }).result, "missing_store");
  });
});
