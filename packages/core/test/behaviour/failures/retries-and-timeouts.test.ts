import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  memoryStore,
  type NodePolicy,
  type NodeRuntime,
  run,
  START,
} from "../../../src/index.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

function createOneNodeGraph(body: (runtime: NodeRuntime) => Promise<string> | string, policy: NodePolicy) {
  return defineGraph({ name: "one", state: Log })
    .nodes({ a: { run: async (_state, runtime) => ({ log: [await body(runtime)] }), ...policy } })
    .edges({ [START]: "a", a: END });
}

describe("node retry", () => {
  test("a failed body is retried with growing delays and gets its attempt number [E19]", async () => {
    const world = createVirtualWorld();
    const at: number[] = [];
    const graph = createOneNodeGraph(
      ({ attempt, clock }) => {
        at.push(clock.monotonic());
        if (attempt < 4) throw new Error(`no ${attempt}`);
        return `attempt ${attempt}`;
      },
      { retry: { attempts: 4, initialMs: 100, factor: 2, maxMs: 300, jitter: 0 } },
    );
    const handle = run(graph, { world });
    const events = collectEvents(handle);
    await world.advance(10_000);
    expect((await handle.result).state.log).toEqual(["attempt 4"]);
    expect(at).toEqual([0, 100, 300, 600]);
    expect(
      getOnlyEvent(events, "task.retried").map(({ attempt, delayMs, error }) => [
        attempt,
        delayMs,
        error.cause?.message,
      ]),
    ).toEqual([
      [1, 100, "no 1"],
      [2, 200, "no 2"],
      [3, 300, "no 3"],
    ]);
    expect(getOnlyEvent(events, "task.started")).toHaveLength(1);
    expect(getOnlyEvent(events, "task.completed")).toHaveLength(1);
  });

  test("a node out of attempts fails with the last failure and its attempt number [E19]", async () => {
    const world = createVirtualWorld();
    const handle = run(
      createOneNodeGraph(
        ({ attempt }) => {
          throw new Error(`no ${attempt}`);
        },
        { retry: { attempts: 2, jitter: 0 } },
      ),
      { world },
    );
    const failing = getFailure(handle.result, "node_failed");
    await world.advance(1_000);
    const error = await failing;
    expect(error.place).toMatchObject({ node: "a", attempt: 2 });
    expect(error.cause).toMatchObject({ message: "no 2" });
  });

  test.each([
    ["a programming error", new TypeError("x is undefined")],
    ["another programming error", new ReferenceError("x")],
  ])("%s is not retried by default [E19]", async (_name, thrown) => {
    let tries = 0;
    const graph = createOneNodeGraph(
      () => {
        tries++;
        throw thrown;
      },
      { retry: { attempts: 5 } },
    );
    const error = await getFailure(run(graph, {}).result, "node_failed");
    expect(error.cause).toBe(thrown);
    expect(tries).toBe(1);
  });

  test("retry.on decides about a retry, and when it throws the original failure is reported [E19]", async () => {
    const world = createVirtualWorld();
    const asked: unknown[] = [];
    let tries = 0;
    const graph = (on: (error: unknown, attempt: number) => boolean) =>
      createOneNodeGraph(
        () => {
          tries++;
          throw new TypeError("flaky");
        },
        { retry: { attempts: 9, initialMs: 1, on } },
      );
    const handle = run(
      graph((error, attempt) => {
        asked.push([error instanceof TypeError, attempt]);
        return attempt < 3;
      }),
      { world },
    );
    const failing = getFailure(handle.result, "node_failed");
    await world.advance(1_000);
    expect((await failing).place.attempt).toBe(3);
    expect(asked).toEqual([
      [true, 1],
      [true, 2],
      [true, 3],
    ]);
    tries = 0;
    const broken = await getFailure(
      run(
        graph(() => {
          throw new Error("broken predicate");
        }),
        {},
      ).result,
      "node_failed",
    );
    expect(broken.cause).toMatchObject({ message: "flaky" });
    expect(tries).toBe(1);
  });

  test.each(["without a store", "with one"])("a recorded step is replayed in the next attempt %s", async (store) => {
    const world = createVirtualWorld();
    const work: string[] = [];
    const graph = createOneNodeGraph(
      async ({ step, attempt }) => {
        const found = await step("find", () => {
          work.push(`find in attempt ${attempt}`);
          return { n: work.length };
        });
        if (attempt === 1) throw new Error("after the step");
        return `${found.n}`;
      },
      { retry: { attempts: 2 } },
    );
    const handle = run(graph, { world, ...(store === "with one" ? { store: memoryStore() } : {}) });
    await world.advance(10_000);
    expect((await handle.result).state.log).toEqual(["1"]);
    expect(work).toEqual(["find in attempt 1"]);
  });
});

describe("node timeout", () => {
  test("a timed-out attempt gets its abort signal, and its late result is dropped and reported [E20]", async () => {
    const world = createVirtualWorld();
    const late = createDeferred<string>();
    const reasons: unknown[] = [];
    const graph = createOneNodeGraph(
      ({ attempt, signal }) => {
        if (attempt > 1) return "in time";
        signal.addEventListener("abort", () => reasons.push(signal.reason));
        return late.promise;
      },
      { timeoutMs: 50, retry: { attempts: 2, initialMs: 10, jitter: 0 } },
    );
    const handle = run(graph, { world });
    await world.advance(49);
    expect(reasons).toEqual([]);
    await world.advance(1);
    expect(reasons).toMatchObject([{ code: "task_timeout", place: { node: "a", attempt: 1 } }]);
    late.resolve("late");
    await world.advance(1_000);
    expect((await handle.result).state.log).toEqual(["in time"]);
    expect(world.lines.map(({ level, message }) => [level, message])).toEqual([
      ["warn", 'a late result of "a" was dropped'],
    ]);
    expect(world.timers).toBe(0);
  });

  test("a late failure after a timeout is reported and causes no unhandled rejection [E20]", async () => {
    const world = createVirtualWorld();
    const late = createDeferred<string>();
    const handle = run(
      createOneNodeGraph(() => late.promise, { timeoutMs: 50 }),
      { world },
    );
    const failing = getFailure(handle.result, "task_timeout");
    await world.advance(50);
    expect((await failing).message).toContain("50 ms");
    late.reject(new Error("too late"));
    await world.waitUntilIdle();
    expect(world.lines).toMatchObject([
      { message: 'a late failure of "a" was dropped', fields: { error: { message: "too late" } } },
    ]);
  });

  test("a late body after a timeout starts no further step [E20]", async () => {
    const world = createVirtualWorld();
    const late = createDeferred();
    const steps: string[] = [];
    const graph = createOneNodeGraph(
      async ({ step }) => {
        await step("one", () => void steps.push("one"));
        await late.promise;
        await step("two", () => void steps.push("two"));
        return "late";
      },
      { timeoutMs: 50 },
    );
    const handle = run(graph, { world, store: memoryStore() });
    const failing = getFailure(handle.result, "task_timeout");
    await world.advance(50);
    await failing;
    late.resolve();
    await world.waitUntilIdle();
    expect(steps).toEqual(["one"]);
  });

  test("a body that completes in time leaves no timer", async () => {
    const world = createVirtualWorld();
    await run(
      createOneNodeGraph(() => "x", { timeoutMs: 50 }),
      { world },
    ).result;
    expect(world.timers).toBe(0);
  });

  test("a late step result of an abandoned attempt after the fold of its superstep is not journaled", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const hold = createDeferred();
    const graph = defineGraph({ name: "late", state: Log })
      .nodes({
        a: {
          run: async (_state, { step, attempt }) => {
            if (attempt === 1) await step("slow", () => hold.promise);
            return { log: [`a${attempt}`] };
          },
          timeoutMs: 10,
          retry: { attempts: 2, initialMs: 1 },
        },
        b: async () => {
          hold.resolve();
          await world.waitUntilIdle();
          return { log: ["b"] };
        },
      })
      .edges({ [START]: "a", a: "b", b: END });
    const handle = run(graph, { world, store, thread: "t" });
    await world.advance(100);
    expect((await handle.result).state.log).toEqual(["a2", "b"]);
    expect((await store.effects("t", "main")).map(({ key, state, outcome }) => [key, state, outcome])).toEqual([
      ["slow", "started", undefined],
    ]);
  });
});
