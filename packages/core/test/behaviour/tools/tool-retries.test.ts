import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { systemWorld } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  memoryStore,
  run,
  START,
  ToolError,
  type ToolErrorKind,
  toolNode,
} from "../../../src/index.ts";
import { subscribeToAbort } from "../../../src/run/session/abort.ts";
import { ignoreResult } from "../../support/failure.ts";
import {
  call,
  createToolLoop,
  getAnswerText,
  type Loop,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const input = z.object({});

/** Runs a loop and advances the clock. */
async function pass(
  options: LoopOptions,
  ms = 1_000_000,
): Promise<Loop & { readonly result: Awaited<ReturnType<Loop["start"]>["result"]> }> {
  const loop = createToolLoop(options);
  const end = loop.start().result;
  ignoreResult(end);
  await loop.world.advance(ms);
  return { ...loop, result: await end };
}

describe("tool retry", () => {
  test("tool attempts count the first, delays grow to a limit, Retry-After is respected, and events, hooks and key are single [S1.24, S1.91]", async () => {
    const starts: [number, number, string][] = [];
    const hooks: string[] = [];
    const counting = defineMiddleware({
      name: "counting",
      beforeTool: () => void hooks.push("before") as undefined,
      afterTool: () => void hooks.push("after") as undefined,
    });
    const failures: readonly ToolError[] = [
      ToolError.unavailable("1"),
      ToolError.unavailable("2"),
      ToolError.unavailable("3", { retryAfterMs: 700 }),
      ToolError.unavailable("4", { retryAfterMs: 60_000 }),
      ToolError.failed("5", { retryAfterMs: 0 }),
    ];
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      effect: "pure",
      retry: { attempts: 6, initialMs: 100, factor: 3, maxMs: 1_000, jitter: 0 },
      run: (_args, { attempt, clock, idempotencyKey }) => {
        starts.push([attempt, clock.monotonic(), idempotencyKey]);
        const failure = failures[attempt - 1];
        return failure === undefined ? "at last" : Promise.reject(failure);
      },
    });
    const done = await pass({ tools: [tool], middleware: [counting], turns: [[call("act")], ["ok"]] });
    expect(starts.map(([attempt, at]) => [attempt, at])).toEqual([
      [1, 0],
      [2, 100],
      [3, 400],
      [4, 1_100],
      [5, 2_100],
      [6, 2_100],
    ]);
    expect(new Set(starts.map(([, , key]) => key)).size).toBe(1);
    expect(listEvents(done, "tool.retried").map(({ attempt, delayMs, error }) => [attempt, delayMs, error])).toEqual([
      [1, 100, "1"],
      [2, 300, "2"],
      [3, 700, "3"],
      [4, 1_000, "4"],
      [5, 0, "5"],
    ]);
    expect([listEvents(done, "tool.started").length, listEvents(done, "tool.completed", "tool.failed").length]).toEqual(
      [1, 1],
    );
    expect(hooks).toEqual(["before", "after"]);
    expect(listResults(done)[0]).toMatchObject({ isError: false, attempts: 6 });

    const tries: number[] = [];
    const jittery = (seed: number) => {
      const world = createVirtualWorld();
      for (let skip = 0; skip < seed; skip++) world.random.next();
      const unlucky = defineTool({
        name: "act",
        description: "Act.",
        input,
        effect: "pure",
        retry: { attempts: 3, initialMs: 100, jitter: 0.5 },
        run: (_args, { clock }) => {
          tries.push(clock.monotonic());
          throw ToolError.unavailable("no");
        },
      });
      return pass({ tools: [unlucky], world, turns: [[call("act")], ["ok"]] });
    };
    const listDelays = async (seed: number) =>
      listEvents(await jittery(seed), "tool.retried").map(({ delayMs }) => delayMs);
    const first = await listDelays(0);
    expect(await listDelays(0)).toEqual(first);
    expect(await listDelays(9)).not.toEqual(first);
    expect(first[0]).toBeGreaterThanOrEqual(50);
    expect(first[0]).toBeLessThanOrEqual(150);

    const kinds: readonly ToolErrorKind[] = ["failed", "not_found", "invalid_args", "cancelled", "denied", "crashed"];
    for (const kind of kinds) {
      let ran = 0;
      const plain = defineTool({
        name: "act",
        description: "Act.",
        input,
        effect: "pure",
        retry: { attempts: 3 },
        run: () => {
          ran += 1;
          throw new ToolError(kind, "no");
        },
      });
      await pass({ tools: [plain], turns: [[call("act")], ["ok"]] });
      expect([kind, ran]).toEqual([kind, 1]);
    }
    let chosen = 0;
    const byFunction = defineTool({
      name: "act",
      description: "Act.",
      input,
      effect: "pure",
      retry: {
        attempts: 5,
        on: (error, attempt) => error instanceof ToolError && error.kind === "failed" && attempt < 3,
      },
      run: () => {
        chosen += 1;
        throw new Error("plain");
      },
    });
    await pass({ tools: [byFunction], turns: [[call("act")], ["ok"]] });
    expect(chosen).toBe(3);

    const world = createVirtualWorld();
    const patient = defineTool({
      name: "act",
      description: "Act.",
      input,
      effect: "pure",
      retry: { attempts: 2, initialMs: 60_000, maxMs: 60_000, jitter: 0 },
      run: () => Promise.reject(ToolError.unavailable("no")),
    });
    const loop = createToolLoop({ tools: [patient], world, turns: [[call("act")], ["ok"]] });
    const handle = loop.start();
    await world.waitUntilIdle();
    expect(world.timers).toBe(1);
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    await world.waitUntilIdle();
    expect([world.timers, world.clock.monotonic()]).toEqual([0, 0]);
  });

  test("a once tool is retried only after its own unavailable error, never after a timeout, a failure or a crash [S1.92]", async () => {
    const ran: string[] = [];
    const outcomes: Record<string, () => unknown> = {
      unavailable: () => Promise.reject(ToolError.unavailable("not there")),
      timeout: () => new Promise(() => undefined),
      failed: () => Promise.reject(new Error("no")),
      crashed: () => Promise.reject(new ToolError("crashed", "gone")),
    };
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: z.object({ how: z.string() }),
      retry: { attempts: 3, initialMs: 1, on: ["unavailable"] },
      timeoutMs: 50,
      run: ({ how }) => {
        ran.push(how);
        return outcomes[how]?.();
      },
    });
    const done = await pass({
      tools: [tool],
      turns: [Object.keys(outcomes).map((how) => call("act", { how }, how)), ["ok"]],
    });
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([true, true, true, true]);
    const times = Object.fromEntries(
      Object.keys(outcomes).map((how) => [how, ran.filter((name) => name === how).length]),
    );
    expect(times).toEqual({ unavailable: 3, timeout: 1, failed: 1, crashed: 1 });
    const others: readonly ToolErrorKind[] = ["timeout", "failed", "crashed", "not_found", "cancelled"];
    for (const kind of others) {
      const defineInvalidTool = (): unknown =>
        defineTool({
          name: "act",
          description: "Act.",
          input,
          retry: { attempts: 2, on: ["unavailable", kind] },
          run: () => "x",
        });
      expect(defineInvalidTool).toThrow(/invalid_tool/);
    }
  });

  test("a retry after a timeout has the idempotency key of the attempt that may have succeeded [T33]", async () => {
    const asked: { readonly key: string; readonly attempt: number }[] = [];
    const tool = defineTool({
      name: "pay",
      description: "Pay.",
      input,
      effect: "idempotent",
      timeoutMs: 100,
      retry: { attempts: 2, initialMs: 10, jitter: 0 },
      run: (_args, { idempotencyKey: key, attempt }) => {
        asked.push({ key, attempt });
        return attempt === 1 ? new Promise<string>(() => undefined) : "paid";
      },
    });
    const done = await pass({ tools: [tool], turns: [[call("pay")], ["ok"]] });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["paid"]);
    expect(asked).toEqual([
      { key: asked[0]?.key, attempt: 1 },
      { key: asked[0]?.key, attempt: 2 },
    ]);
    expect(() =>
      defineTool({
        name: "pay",
        description: "Pay.",
        input,
        timeoutMs: 100,
        retry: { attempts: 2, on: ["timeout"] },
        run: () => "x",
      }),
    ).toThrow(/invalid_tool/);
  });
});

test("attempts of a transiently failing tool call share one row; a once tool is retried only after its own unavailable error [F18]", async () => {
  const ran: string[] = [];
  const flaky = (name: string, more: object, fail: () => unknown) =>
    defineTool({
      name,
      description: "Fails in passing.",
      input,
      ...more,
      run: (_args, { attempt }) => {
        ran.push(name);
        return attempt < 3 ? (fail() as Promise<never>) : "there";
      },
    });
  const retry = { attempts: 3, initialMs: 1, jitter: 0 };
  const rejectBusy = (): Promise<never> => Promise.reject(ToolError.unavailable("busy"));
  const tools = [
    flaky("idem", { effect: "idempotent", retry }, rejectBusy),
    flaky("once_says_no", { retry: { ...retry, on: ["unavailable"] } }, rejectBusy),
    flaky("once_plain", { retry: { ...retry, on: ["unavailable"] } }, () => Promise.reject(new Error("no"))),
    flaky(
      "once_slow",
      { retry: { ...retry, on: ["unavailable"] }, timeoutMs: 10, graceMs: 0 },
      () => new Promise(() => undefined),
    ),
  ];
  const store = memoryStore();
  const done = await pass({ tools, store, turns: [tools.map(({ name }) => call(name)), ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["there", "there", "no", "Timed out after 10 ms"]);
  const rows = (await store.effects("t", "main")).filter(({ kind }) => kind === "tool");
  expect(rows.map(({ name, attempts, state }) => [name, attempts, state]).sort()).toEqual([
    ["idem", 3, "ok"],
    ["once_plain", 1, "ok"],
    ["once_says_no", 3, "ok"],
    ["once_slow", 1, "ok"],
  ]);
  expect(ran.filter((name) => name.startsWith("once_p") || name.startsWith("once_slow"))).toEqual([
    "once_plain",
    "once_slow",
  ]);
});

describe("tool timeout", () => {
  test("a slow tool is answered with a timeout after its limit, its signal fires, and its late result is dropped and logged [S1.23]", async () => {
    const world = createVirtualWorld();
    const signals: (readonly [boolean, number])[] = [];
    for (const late of ["result", "failure"] as const) {
      const tool = defineTool({
        name: "slow",
        description: "Slow.",
        input,
        effect: "pure",
        timeoutMs: 100,
        graceMs: 0,
        run: (_args, { signal, clock }) =>
          new Promise((resolve, reject) => {
            const began = clock.monotonic();
            signal.addEventListener("abort", () => signals.push([signal.aborted, clock.monotonic() - began]));
            world.schedule.after(300, () => (late === "result" ? resolve("SENTINEL") : reject(new Error("SENTINEL"))));
          }),
      });
      const loop = createToolLoop({ tools: [tool], world, turns: [[call("slow", {}, "c9")], ["ok"]] });
      const end = loop.start().result;
      await world.advance(150);
      const [answer] = listToolAnswers(await end);
      expect([
        answer && getAnswerText(answer),
        answer?.isError,
        listResults(loop)[0]?.error?.kind,
        listResults(loop)[0]?.elapsedMs,
      ]).toEqual(["Timed out after 100 ms", true, "timeout", 100]);
      await world.advance(500);
      expect(loop.saved() + JSON.stringify(loop.events) + loop.wires.join()).not.toContain("SENTINEL");
    }
    expect(signals).toEqual([
      [true, 100],
      [true, 100],
    ]);
    expect(world.lines.map(({ level, message, fields }) => [level, message, fields?.["callId"]])).toEqual([
      ["warn", 'a late result of the tool "slow" was dropped', "c9"],
      ["warn", 'a late result of the tool "slow" was dropped', "c9"],
    ]);
    expect(world.timers).toBe(0);
  });

  test("a tool that completes in time leaves no timer", async () => {
    const world = createVirtualWorld();
    const tool = defineTool({
      name: "quick",
      description: "Quick.",
      input,
      effect: "pure",
      timeoutMs: 10_000,
      run: () => "x",
    });
    await runToolLoop({ tools: [tool], world, turns: [[call("quick")], ["ok"]] });
    expect(world.timers).toBe(0);
  });

  test("a delay above the maximum of platform timers does not fire at once [T35]", () => {
    vi.useFakeTimers();
    try {
      const longest = 2 ** 31 - 1;
      let fired = 0;
      systemWorld().schedule.after(2 * longest + 5, () => fired++);
      const cancel = systemWorld().schedule.after(longest + 5, () => fired++);
      vi.advanceTimersByTime(longest + 1);
      cancel();
      vi.advanceTimersByTime(longest + 3);
      expect(fired).toBe(0);
      vi.advanceTimersByTime(1);
      expect(fired).toBe(1);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("cancel of a run with tools", () => {
  test("a tool result after the cancel of its run is dropped and leaves no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", onUnhandled);
    try {
      const world = createVirtualWorld();
      for (const late of ["result", "failure"]) {
        const tool = defineTool({
          name: "slow",
          description: "Slow.",
          input,
          graceMs: 50,
          run: () =>
            new Promise((resolve, reject) =>
              world.schedule.after(100, () =>
                late === "result" ? resolve("SENTINEL") : reject(new Error("SENTINEL")),
              ),
            ),
        });
        const loop = createToolLoop({ tools: [tool], world, turns: [[call("slow")], ["ok"]] });
        const handle = loop.start();
        await world.advance(10);
        handle.cancel("enough");
        await world.advance(60);
        const end = await handle.result;
        await world.advance(500);
        expect([end.status, loop.requests.length]).toEqual(["cancelled", 1]);
        expect(loop.saved() + JSON.stringify(loop.events)).not.toContain("SENTINEL");
      }
      await world.waitUntilIdle();
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", onUnhandled);
    }
  });

  test("1,000 tool calls leave at most one listener on any signal, and 50 parallel calls cause no warning [T36]", async () => {
    const counts = new Map<EventTarget, number>();
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    process.on("warning", onWarning);
    EventTarget.prototype.addEventListener = function (
      this: EventTarget,
      ...given: Parameters<EventTarget["addEventListener"]>
    ) {
      if (this instanceof AbortSignal) counts.set(this, (counts.get(this) ?? 0) + 1);
      addEventListener.apply(this, given);
    } as EventTarget["addEventListener"];
    EventTarget.prototype.removeEventListener = function (
      this: EventTarget,
      ...given: Parameters<EventTarget["removeEventListener"]>
    ) {
      if (this instanceof AbortSignal) counts.set(this, (counts.get(this) ?? 0) - 1);
      removeEventListener.apply(this, given);
    } as EventTarget["removeEventListener"];
    try {
      let attempt = 0;
      const tool = defineTool({
        name: "act",
        description: "Act.",
        input,
        effect: "pure",
        timeoutMs: 5_000,
        retry: { attempts: 2, initialMs: 1 },
        run: () => (attempt++ % 10 === 0 ? Promise.reject(ToolError.unavailable("again")) : "x"),
      });
      const turns = Array.from({ length: 20 }, () =>
        Array.from({ length: 50 }, (_, index) => call("act", {}, `c${index}`)),
      );
      const done = await pass({ tools: [tool], store: "none", turns: [...turns, ["ok"]] });
      expect(listToolAnswers(done)).toHaveLength(1_000);
      const left = [...counts.values()].filter((count) => count > 0);
      expect(left.every((count) => count === 1)).toBe(true);
      expect(left.length).toBeLessThanOrEqual(turns.length + 1);
      const shared = new AbortController();
      let called = 0;
      const stops = Array.from({ length: 1_000 }, () => subscribeToAbort(shared.signal, () => called++));
      expect(counts.get(shared.signal)).toBe(1);
      for (const stop of stops.slice(1)) stop();
      shared.abort();
      expect(called).toBe(1);
      await done.world.waitUntilIdle();
      expect(warnings).toEqual([]);
    } finally {
      EventTarget.prototype.addEventListener = addEventListener;
      EventTarget.prototype.removeEventListener = removeEventListener;
      process.off("warning", onWarning);
    }
  });
});

test("the signal of a completed tool call does not change when its run is cancelled [T36]", async () => {
  const signals = new Map<string, AbortSignal>();
  const tool = (name: string, run: () => Promise<string>) =>
    defineTool({
      name,
      description: "Acts.",
      input,
      timeoutMs: 60_000,
      run: (_args, { signal }) => {
        signals.set(name, signal);
        return run();
      },
    });
  const tools = [
    tool("quick", async () => "done"),
    tool("failing", () => Promise.reject(new Error("no"))),
    tool("endless", () => new Promise(() => undefined)),
  ];
  const loop = createToolLoop({ tools, turns: [[call("quick"), call("failing"), call("endless")], ["ok"]] });
  const handle = loop.start();
  await loop.world.waitUntilIdle();
  handle.cancel("enough");
  await loop.world.advance(100_000);
  expect(await handle.result).toMatchObject({ status: "cancelled" });
  expect([...signals].map(([name, { aborted }]) => [name, aborted])).toEqual([
    ["quick", false],
    ["failing", false],
    ["endless", true],
  ]);
});

test("30,000 tool calls leave no timer and no pending row, and at most one listener per task", async () => {
  const { addEventListener } = EventTarget.prototype;
  let added = 0;
  EventTarget.prototype.addEventListener = function (
    this: EventTarget,
    ...given: Parameters<EventTarget["addEventListener"]>
  ) {
    if (this instanceof AbortSignal) added += 1;
    addEventListener.apply(this, given);
  } as EventTarget["addEventListener"];
  try {
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      effect: "pure",
      timeoutMs: 5_000,
      graceMs: 1_000,
      run: () => "x",
    });
    const world = createVirtualWorld();
    const graph = defineGraph({ name: "many", state: defineState({ messages: channel.messages() }) })
      .nodes({ tools: toolNode({ tools: [tool] }) })
      .edges({ [START]: "tools", tools: END });
    const content = Array.from({ length: 1_000 }, (_, n) => call("act", {}, `c${n}`));
    const asking = { role: "assistant", id: "asking", finish: "calls", content } as const;
    for (let time = 0; time < 30; time++) {
      const end = await run(graph, { world, input: { messages: [asking] } }).result;
      expect(end.state.messages).toHaveLength(1_001);
    }
    expect([world.timers, world.lines]).toEqual([0, []]);
    expect(added).toBeLessThanOrEqual(2 * 30);
  } finally {
    EventTarget.prototype.addEventListener = addEventListener;
  }
});

test("a retry function that throws prevents the retry, and the call is answered with the original failure", async () => {
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input,
    effect: "pure",
    retry: {
      attempts: 2,
      on: () => {
        throw new Error("bad judge");
      },
    },
    run: () => Promise.reject(new Error("the failure")),
  });
  const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["the failure"]);
});
