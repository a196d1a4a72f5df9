import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Model,
  type NodePolicy,
  type NodeRuntime,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

function createOneNodeGraph(body: (runtime: NodeRuntime) => Promise<unknown>, policy: NodePolicy) {
  return defineGraph({ name: "one", state: Log })
    .nodes({ a: { run: async (_state, runtime) => void (await body(runtime)), ...policy } })
    .edges({ [START]: "a", a: END });
}

const wait = (world: VirtualWorld, ms: number): Promise<void> =>
  new Promise((resolve) => void world.schedule.after(ms, resolve));

describe("idle timeout", () => {
  test("an idle timeout aborts an attempt without a heartbeat, and the next attempt has its own idle timeout [E19]", async () => {
    const world = createVirtualWorld();
    const at: number[] = [];
    const reasons: unknown[] = [];
    const graph = createOneNodeGraph(
      ({ attempt, signal, clock }) => {
        at.push(clock.monotonic());
        signal.addEventListener("abort", () => reasons.push(signal.reason));
        return attempt === 1 ? new Promise(() => undefined) : wait(world, 40);
      },
      { idleTimeoutMs: 50, retry: { attempts: 2, initialMs: 10, jitter: 0 } },
    );
    const handle = run(graph, { world });
    await world.advance(200);
    expect((await handle.result).status).toBe("done");
    expect(at).toEqual([0, 60]);
    expect(reasons).toMatchObject([{ code: "task_timeout", place: { node: "a", attempt: 1 } }]);
    expect(world.timers).toBe(0);
  });

  test("the error of an idle timeout states the idle time", async () => {
    const world = createVirtualWorld();
    const failing = getFailure(
      run(
        createOneNodeGraph(() => new Promise(() => undefined), { idleTimeoutMs: 50 }),
        { world },
      ).result,
    );
    await world.advance(50);
    expect((await failing).message).toContain("showed no activity for 50 ms");
    expect(world.timers).toBe(0);
  });

  const model: Model = {
    id: "slow",
    respond: async (_request, { delta }) => {
      await wait(shared, 5);
      delta?.({ type: "text", text: "so" });
      await wait(shared, 45);
      return { content: [{ type: "text", text: "so" }], finish: "stop" };
    },
  };
  const shared = createVirtualWorld();
  test.each<[string, (runtime: NodeRuntime, nth: number) => unknown]>([
    ["a heartbeat", ({ heartbeat }) => heartbeat()],
    ["progress", ({ progress }) => progress("on it")],
    ["an event", ({ emit }) => emit("seen", 1)],
    ["a finished step", ({ step }, nth) => step(`s${nth}`, () => nth)],
    [
      "a part of a model's answer",
      ({ model: ask }, nth) => ask({ model, request: { messages: [], tools: [] } }, `m${nth}`),
    ],
  ])("%s counts as a sign of life, also when no reader receives the events", async (_name, sign) => {
    const graph = createOneNodeGraph(
      async (runtime) => {
        for (let nth = 1; nth <= 3; nth++) {
          await wait(shared, 40);
          await sign(runtime, nth);
        }
      },
      { idleTimeoutMs: 50 },
    );
    const handle = run(graph, { world: shared });
    await shared.advance(400);
    expect((await handle.result).status).toBe("done");
    expect(shared.timers).toBe(0);
  });

  test("a body with regular heartbeats still obeys the timeout of the attempt", async () => {
    const world = createVirtualWorld();
    const graph = createOneNodeGraph(
      async ({ heartbeat, signal }) => {
        while (!signal.aborted) {
          heartbeat();
          await wait(world, 10);
        }
      },
      { idleTimeoutMs: 50, timeoutMs: 200 },
    );
    const failing = getFailure(run(graph, { world }).result, "task_timeout");
    await world.advance(300);
    expect((await failing).message).toContain("took longer than 200 ms");
    expect(world.timers).toBe(0);
  });

  test("a node without an idle timeout sets no timer, and its heartbeat has no effect", async () => {
    const world = createVirtualWorld();
    let timers = -1;
    const graph = createOneNodeGraph(async ({ heartbeat }) => {
      heartbeat();
      timers = world.timers;
    }, {});
    await run(graph, { world }).result;
    expect(timers).toBe(0);
  });
});

describe("graph defaults", () => {
  const tries: Record<string, number> = {};
  const failing = (name: string) => () => {
    tries[name] = (tries[name] ?? 0) + 1;
    throw new Error(name);
  };

  test("graph defaults apply to nodes without a policy of their own, and a once node is not retried [E19]", async () => {
    const world = createVirtualWorld();
    const graph = defineGraph({
      name: "defaults",
      state: Log,
      defaults: {
        retry: { attempts: 3, initialMs: 1 },
        onError: (_state, { error, attempt }) => ({ log: [`${error.place.node} after ${attempt}`] }),
      },
    })
      .nodes({
        plain: failing("plain"),
        own: { run: failing("own"), retry: { attempts: 2, initialMs: 1 }, onError: () => ({ log: ["own handler"] }) },
        single: { run: failing("single"), effect: "once" },
      })
      .edges({ [START]: "plain", plain: "own", own: "single", single: END });
    const handle = run(graph, { world });
    await world.advance(1_000);
    expect((await handle.result).state.log).toEqual(["plain after 3", "own handler", "single after 1"]);
    expect(tries).toEqual({ plain: 3, own: 2, single: 1 });
  });

  test("graph defaults apply timeouts to every node [E19]", async () => {
    const world = createVirtualWorld();
    for (const [defaults, said] of [
      [{ timeoutMs: 30 }, "longer than 30 ms"],
      [{ idleTimeoutMs: 20 }, "showed no activity for 20 ms"],
    ] as const) {
      const graph = defineGraph({ name: "defaults", state: Log, defaults })
        .nodes({ a: () => new Promise<undefined>(() => undefined) })
        .edges({ [START]: "a", a: END });
      const stopped = getFailure(run(graph, { world }).result, "task_timeout");
      await world.advance(100);
      expect((await stopped).message).toContain(said);
    }
  });

  test.each([
    [{ defaults: { retry: { attempts: 0 } } }, {}, 'the defaults of the graph "bad"'],
    [
      { defaults: { idleTimeoutMs: 0 } },
      {},
      'the defaults of the graph "bad": `idleTimeoutMs` must be a number of milliseconds > 0, got 0',
    ],
    [{}, { idleTimeoutMs: -1 }, 'the node "a": `idleTimeoutMs` must be a number of milliseconds > 0, got -1'],
    [
      {},
      { cache: { key: () => "k", ttlMs: Number.NaN } },
      'the node "a": `cache.ttlMs` must be a number of milliseconds > 0, got NaN',
    ],
    [
      {},
      { effect: "once", retry: { attempts: 2 } },
      'the node "a": `retry` must be absent for a node with effect "once"',
    ],
  ] as const)(
    "invalid graph options %j with the node policy %j are refused at definition",
    async (options, policy, said) => {
      const error = await getFailure(
        () =>
          defineGraph({ name: "bad", state: Log, ...options }).nodes({
            a: { run: () => undefined, ...policy },
          }) as never,
        "invalid_option",
      );
      expect(error.message).toContain(said);
    },
  );
});
