import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  decide,
  defineMiddleware,
  defineTool,
  inject,
  isStatewrightError,
  ToolError,
  type ToolRuntime,
} from "../../../src/index.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type Loop,
  listEvents,
  listResults,
  listToolAnswers,
} from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

type Ending = (runtime: ToolRuntime, world: VirtualWorld) => unknown;

interface Slow {
  readonly world: VirtualWorld;
  readonly loop: Loop;
}

/** Creates a loop with one call of a tool that runs `ending` when its signal fires. */
function slow(
  ending: Ending,
  {
    signal,
    ...options
  }: { readonly timeoutMs?: number; readonly graceMs?: number; readonly signal?: AbortSignal } = {},
): Slow {
  const world = createVirtualWorld();
  const act: DeskTool = defineTool({
    name: "act",
    description: "Acts for long.",
    input: z.object({}),
    effect: "pure",
    ...options,
    run: (_args, runtime) =>
      new Promise((resolve) => {
        runtime.signal.addEventListener("abort", () => resolve(ending(runtime, world)), { once: true });
      }),
  });
  const turns = [[call("act", {}, "c1")], ["I see"]];
  return { world, loop: createToolLoop({ tools: [act], world, turns, ...(signal === undefined ? {} : { signal }) }) };
}

/** Fails when more real time than the limit has passed. */
function failsAfter(world: VirtualWorld, ms: number, error: unknown): Promise<never> {
  return new Promise((_, reject) => world.schedule.after(ms, () => reject(error)));
}

const endings: Readonly<Record<string, { readonly does: Ending; readonly text: string }>> = {
  "returns an error result": { does: () => ({ content: "stopped at row 7", isError: true }), text: "stopped at row 7" },
  "returns an error": { does: () => new Error("stopped at row 7"), text: "stopped at row 7" },
  "throws its own words": { does: () => Promise.reject(new Error("stopped at row 7")), text: "stopped at row 7" },
  "returns its partial result": { does: () => "rows 1 to 7", text: "rows 1 to 7" },
};

describe("tool that answers after its signal has fired", () => {
  test("a cancelled tool that still answers keeps its text with the kind and flag of a cancel, and the run ends [S3.19, D31]", async () => {
    for (const [how, { does, text }] of Object.entries(endings)) {
      const { world, loop } = slow(async (runtime, at) => {
        await failsAfter(at, 1_000, "time").catch(String);
        return does(runtime, at);
      });
      const handle = loop.start();
      await world.waitUntilIdle();
      handle.cancel("the person left");
      await world.advance(2_000);
      const end = await handle.result;
      expect([end.status, loop.requests.length]).toEqual(["cancelled", 1]);
      expect(listToolAnswers(end).map((answer) => [how, answer.callId, getAnswerText(answer), answer.isError])).toEqual(
        [[how, "c1", text, true]],
      );
      expect(listResults(loop).map(({ error }) => [error?.kind, error?.disposition])).toEqual([
        ["cancelled", "control"],
      ]);
      expect([world.timers, world.lines.filter(({ message }) => message.includes("late"))]).toEqual([0, []]);
    }
  });

  test("a timed-out tool that still answers keeps its text with the kind and flag of a timeout, and the model reads it [S3.19, D31]", async () => {
    for (const [how, { does, text }] of Object.entries(endings)) {
      const { world, loop } = slow(
        async (runtime, at) => {
          await failsAfter(at, 1_000, "time").catch(String);
          return does(runtime, at);
        },
        { timeoutMs: 100 },
      );
      const end = loop.start().result;
      await world.advance(2_000);
      expect((await end).status).toBe("done");
      expect(listToolAnswers(await end).map((answer) => [how, getAnswerText(answer), answer.isError])).toEqual([
        [how, text, true],
      ]);
      expect(listResults(loop).map(({ error, elapsedMs }) => [error?.kind, elapsedMs])).toEqual([["timeout", 1_100]]);
      expect(loop.wires[1]).toContain(text);
      expect(world.timers).toBe(0);
    }
  });

  test.each([
    ["the reason of its signal", ({ signal }: ToolRuntime) => signal.reason],
    ["an AbortError of its client", () => new DOMException("This operation was aborted", "AbortError")],
    ["a cancel error", () => ToolError.cancelled()],
  ])("a tool that throws %s after its signal gets the standard answer", async (_what, thrown) => {
    const timed = slow((runtime) => Promise.reject(thrown(runtime)), { timeoutMs: 100 });
    const first = timed.loop.start().result;
    await timed.world.advance(200);
    expect(listToolAnswers(await first).map(getAnswerText)).toEqual(["Timed out after 100 ms"]);
    const cancelled = slow((runtime) => Promise.reject(thrown(runtime)));
    const handle = cancelled.loop.start();
    await cancelled.world.waitUntilIdle();
    handle.cancel();
    expect(listToolAnswers(await handle.result).map(getAnswerText)).toEqual(["Cancelled"]);
  });
});

describe("tool that never settles", () => {
  test("a tool that never settles holds the run for its grace at most, and its late answer is dropped and reported [T34]", async () => {
    for (const [graceMs, waits] of [
      [undefined, 5_000],
      [200, 200],
      [0, 0],
    ] as const) {
      const { world, loop } = slow(
        (_runtime, at) => failsAfter(at, 60_000, new Error("SENTINEL")),
        graceMs === undefined ? {} : { graceMs },
      );
      const handle = loop.start();
      let ended = false;
      void handle.result.then(() => {
        ended = true;
      });
      await world.waitUntilIdle();
      handle.cancel();
      if (waits > 0) {
        await world.advance(waits - 1);
        expect(ended).toBe(false);
      }
      await world.advance(1);
      expect(ended).toBe(true);
      expect(listToolAnswers(await handle.result).map(getAnswerText)).toEqual(["Cancelled"]);
      await world.advance(60_000);
      expect(world.lines.map(({ message, fields }) => [message, fields?.["callId"]])).toEqual([
        ['a late result of the tool "act" was dropped', "c1"],
      ]);
      expect(loop.saved() + JSON.stringify(loop.events)).not.toContain("SENTINEL");
      expect(world.timers).toBe(0);
    }
  });

  test("the signal of a tool fires on a cancel, on the signal given to the run, and on a timeout [S3.16, S3.17, S3.18]", async () => {
    const fired: string[] = [];
    const ending =
      (name: string): Ending =>
      ({ signal }) => {
        fired.push(name);
        expect(signal.aborted).toBe(true);
        return Promise.reject(signal.reason);
      };
    const cancelled = slow(ending("cancel"));
    const handle = cancelled.loop.start();
    await cancelled.world.waitUntilIdle();
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    const quit = new AbortController();
    const quitting = slow(ending("quit"), { signal: quit.signal });
    const second = quitting.loop.start().result;
    await quitting.world.waitUntilIdle();
    quit.abort();
    expect((await second).status).toBe("cancelled");
    const timed = slow(ending("timeout"), { timeoutMs: 50 });
    const third = timed.loop.start().result;
    await timed.world.advance(100);
    expect((await third).status).toBe("done");
    expect(fired).toEqual(["cancel", "quit", "timeout"]);
  });

  test("the next attempt of a tool starts when the previous attempt has settled or its grace has ended, and not earlier [T34]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const act = defineTool({
      name: "act",
      description: "Acts.",
      input: z.object({}),
      effect: "idempotent",
      timeoutMs: 100,
      graceMs: 1_000,
      retry: { attempts: 3, initialMs: 0, jitter: 0 },
      run: async (_args, { attempt, clock, signal }) => {
        log.push(`${attempt} begins at ${clock.monotonic()}`);
        if (attempt === 1) await failsAfter(world, 400, signal.reason ?? new Error("slow")).catch(String);
        if (attempt === 1) throw new Error("given up");
        if (attempt === 2) return new Promise<string>(() => undefined);
        return "done";
      },
    });
    const loop = createToolLoop({ tools: [act], world, turns: [[call("act")], ["ok"]] });
    const end = loop.start().result;
    await world.advance(5_000);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["done"]);
    expect(log).toEqual(["1 begins at 0", "2 begins at 400", "3 begins at 1500"]);
  });

  test("a value returned in the grace of a timeout is the answer and is not retried", async () => {
    let attempts = 0;
    const world = createVirtualWorld();
    const act = defineTool({
      name: "act",
      description: "Acts.",
      input: z.object({}),
      effect: "idempotent",
      timeoutMs: 100,
      retry: { attempts: 3, initialMs: 0 },
      run: async () => {
        attempts++;
        await failsAfter(world, 150, "time").catch(String);
        return { content: "paid", details: { receipt: 7 } };
      },
    });
    const loop = createToolLoop({ tools: [act], world, turns: [[call("act")], ["ok"]] });
    const end = loop.start().result;
    await world.advance(5_000);
    expect([attempts, listToolAnswers(await end).map(getAnswerText)]).toEqual([1, ["paid"]]);
    expect(listResults(loop)[0]).toMatchObject({ isError: true, details: { receipt: 7 }, error: { kind: "timeout" } });
  });

  test("updates, progress and events of a tool after its signal are not emitted", async () => {
    const { world, loop } = slow(
      (runtime) => {
        runtime.update?.({ content: "late" });
        runtime.progress("late");
        runtime.emit("late", {});
        return "in time";
      },
      { timeoutMs: 10 },
    );
    const end = loop.start().result;
    await world.advance(100);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["in time"]);
    expect(listEvents(loop, "tool.update", "tool.progress", "custom")).toEqual([]);
  });
});

describe("run-ending failures and tool answers", () => {
  test("a tool and a hook that catch every error do not prevent the end of a cancelled run [T32]", async () => {
    const world = createVirtualWorld();
    const catching = defineTool({
      name: "act",
      description: "Catches everything.",
      input: z.object({}),
      effect: "pure",
      run: (_args, { wait }) => wait(10_000).catch(() => "nothing happened"),
    });
    const around = defineMiddleware({
      name: "catch-all",
      aroundTool: async ({ call: { id } }, next) => {
        try {
          return await next({ id, name: "act", args: {} });
        } catch {
          return {
            callId: id,
            name: "act",
            content: [{ type: "text", text: "all is well" }],
            isError: false,
            attempts: 1,
            elapsedMs: 0,
          };
        }
      },
    });
    const loop = createToolLoop({
      tools: [catching],
      middleware: [around],
      world,
      turns: [[call("act")], ["never asked"]],
    });
    const handle = loop.start();
    await world.waitUntilIdle();
    handle.cancel();
    await world.advance(6_000);
    const end = await handle.result;
    expect([end.status, loop.requests.length]).toEqual(["cancelled", 1]);
    expect(listResults(loop).map(({ error }) => error?.kind)).toEqual(["cancelled"]);
  });

  test("an aroundTool hook that catches failures does not change an interrupt or a missing secret [T32]", async () => {
    const asking = defineTool({ name: "act", description: "Needs a secret.", input: z.object({}), run: () => "x" });
    const needy: DeskTool = {
      ...asking,
      call: async (_state, runtime) => (await inject.secret("NONE").resolve({ ...runtime, state: {} })).reveal(),
    };
    const swallowing = defineMiddleware({
      name: "swallow",
      aroundTool: async ({ call: { id } }, next) => {
        const well = { callId: id, name: "act", content: [{ type: "text", text: "well" } as const] };
        return next({ id, name: "act", args: {} }).catch(() => ({
          ...well,
          isError: false,
          attempts: 1,
          elapsedMs: 0,
        }));
      },
    });
    const failing = createToolLoop({ tools: [needy], middleware: [swallowing], turns: [[call("act")], ["ok"]] });
    const failure = await failing.start().result.catch((error: unknown) => error);
    expect([isStatewrightError(failure, "missing_secret"), failing.requests.length]).toEqual([true, 1]);
    const ask = defineMiddleware({ name: "ask", beforeTool: ({ call }) => decide.interrupt(call, "sure?") });
    const waiting = createToolLoop({ tools: [asking], middleware: [swallowing, ask], turns: [[call("act")], ["ok"]] });
    expect([(await waiting.start().result).status, waiting.requests.length]).toEqual(["waiting", 1]);
    expect((await waiting.again({ approve: true }).result).status).toBe("done");
  });
});
