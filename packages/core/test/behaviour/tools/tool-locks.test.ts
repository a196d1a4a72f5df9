import { describe, expect, test } from "vitest";
import * as z from "zod";
import { decide, defineTool, isStatewrightError, memoryStore, ToolError, toolNode } from "../../../src/index.ts";
import { countHeldLocks } from "../../../src/run/tool-call/locks.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
} from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const edit = z.object({ files: z.array(z.string()).default([]), ms: z.number().default(10) });

/** Creates a tool that locks the files of its arguments while it runs. */
function editor(
  world: VirtualWorld,
  log: string[],
  more: Pick<Parameters<typeof defineTool>[0], "effect" | "retry" | "timeoutMs" | "graceMs"> & {
    readonly body?: (attempt: number) => void;
  } = {},
): DeskTool {
  const { body, ...policy } = more;
  return defineTool({
    name: "edit",
    description: "Edit.",
    input: edit,
    effect: "idempotent",
    ...policy,
    execution: { lock: async ({ files }) => files },
    run: async ({ ms }, { callId, attempt }) => {
      log.push(`+${callId} ${world.clock.monotonic()}`);
      await new Promise<void>((resolve) => world.schedule.after(ms, resolve));
      log.push(`-${callId} ${world.clock.monotonic()}`);
      body?.(attempt);
      return callId;
    },
  });
}

const edits = (files: Readonly<Record<string, readonly string[]>>, ms = 10) =>
  Object.entries(files).map(([id, names]) => call("edit", { files: [...names], ms }, id));

async function runLoop(options: Omit<LoopOptions, "world">, world: VirtualWorld, ms = 20_000) {
  const loop = createToolLoop({ ...options, world });
  const handle = loop.start();
  await world.advance(ms);
  const result = await handle.result;
  expect(countHeldLocks(world)).toBe(0);
  return { ...loop, result };
}

describe("tool locks", () => {
  test("two tool calls with one lock run one after the other in call order, and calls without a common lock overlap [T49]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const done = await runLoop(
      { tools: [editor(world, log)], turns: [edits({ a: ["x"], b: ["x"], c: ["y"], d: [] }), ["ok"]] },
      world,
    );
    expect(log).toEqual(["+a 0", "+c 0", "+d 0", "-a 10", "+b 10", "-c 10", "-d 10", "-b 20"]);
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["a", "b", "c", "d"]);
  });

  test("locks are acquired in sorted order: calls that name them in opposite orders do not deadlock", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const turns = [edits({ a: ["x", "y", "x"], b: ["y", "x"], c: ["z", "y"], d: ["x", "z"] }), ["ok"]];
    const done = await runLoop({ tools: [editor(world, log)], turns }, world);
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["a", "b", "c", "d"]);
    expect(log).toHaveLength(8);
  });

  test("a lock applies to all runs, threads and stores of the process", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const loops = ["one", "two"].map((id) =>
      createToolLoop({
        tools: [editor(world, log)],
        world,
        store: memoryStore(),
        turns: [edits({ [id]: ["x"] }), ["ok"]],
      }),
    );
    const ends = loops.map((loop) => loop.start().result);
    await world.advance(1_000);
    for (const end of ends) expect((await end).status).toBe("done");
    expect(log.map((line) => line.slice(0, 1))).toEqual(["+", "-", "+", "-"]);
    expect(countHeldLocks(world)).toBe(0);
  });

  test("a timed-out tool holds its lock until settled or until its grace has ended [T34]", async () => {
    for (const [graceMs, next] of [
      [1_000, "+b 50"],
      [20, "+b 25"],
    ] as const) {
      const world = createVirtualWorld();
      const log: string[] = [];
      const done = await runLoop(
        {
          tools: [editor(world, log, { timeoutMs: 5, graceMs })],
          turns: [[...edits({ a: ["x"] }, 50), ...edits({ b: ["x"] }, 1)], ["ok"]],
        },
        world,
      );
      expect(log.find((line) => line.startsWith("+b"))).toBe(next);
      expect(listResults(done).map(({ callId, error }) => [callId, error?.kind])).toEqual([
        ["a", "timeout"],
        ["b", undefined],
      ]);
    }
  });

  test("a lock is held during the retry delay of its tool call", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const flaky = editor(world, log, {
      retry: { attempts: 2, initialMs: 100, jitter: 0, on: ["unavailable"] },
      body: (attempt) => {
        if (attempt === 1) throw ToolError.unavailable("not now");
      },
    });
    await runLoop({ tools: [flaky], turns: [edits({ a: ["x"], b: ["x"] }), ["ok"]] }, world);
    expect(log.map((line) => line.split(" ")[0])).toEqual(["+a", "-a", "+a", "-a", "+b", "-b", "+b", "-b"]);
  });

  test("a lock is not held while its tool call waits for approval [T39]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const store = memoryStore();
    const options = {
      tools: [editor(world, log)],
      world,
      store,
      middleware: [
        {
          name: "ask",
          beforeTool: ({ call: made }: { readonly call: { readonly id: string } }) =>
            made.id === "a" ? decide.interrupt(made as never, "may it?") : decide.allow(),
        },
      ],
      turns: [edits({ a: ["x"], b: ["x"] }), ["ok"]],
    };
    const loop = createToolLoop(options);
    const first = loop.start();
    await world.advance(100);
    expect((await first.result).status).toBe("waiting");
    expect(log).toEqual(["+b 0", "-b 10"]);
    expect(countHeldLocks(world)).toBe(0);
    const second = loop.again({ approve: true });
    await world.advance(100);
    expect(listToolAnswers(await second.result).map(getAnswerText)).toEqual(["a", "b"]);
    expect(countHeldLocks(world)).toBe(0);
  });

  test("a lock is released after a refusal, a skip, a throw and a cancel, also for a call that still waits for it [T38]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const breaking = editor(world, log, {
      body: () => {
        throw new Error("broke");
      },
    });
    const broken = await runLoop(
      {
        tools: [breaking],
        middleware: [
          {
            name: "no",
            beforeTool: ({ call: made }) => (made.id === "c" ? { action: "deny", reason: "no" } : undefined),
          },
        ],
        turns: [edits({ a: ["x"], b: ["x"], c: ["x"] }), ["ok"]],
      },
      world,
    );
    expect(listToolAnswers(broken).map(getAnswerText)).toEqual(["broke", "broke", "no"]);
    const loop = createToolLoop({
      tools: [editor(world, log)],
      world,
      turns: [edits({ a: ["x"], b: ["x"], c: ["x"] }), ["ok"]],
    });
    const handle = loop.start();
    await world.advance(5);
    handle.cancel("enough");
    await world.advance(10_000);
    const result = await handle.result;
    expect(result.status).toBe("cancelled");
    expect(listToolAnswers(result).map(({ callId, isError }) => [callId, isError])).toEqual([
      ["a", true],
      ["b", true],
      ["c", true],
    ]);
    expect(listResults(loop).map(({ error }) => error?.kind)).toEqual(["cancelled", "cancelled", "cancelled"]);
    expect(countHeldLocks(world)).toBe(0);
  });

  test("a tool whose lock function fails does not run, and its answer says so", async () => {
    const world = createVirtualWorld();
    for (const [lock, text] of [
      [
        () => {
          throw new Error("no such path");
        },
        'The tool "edit" was not run: its lock function failed: no such path.',
      ],
      [() => [7] as never, 'The tool "edit" was not run: its lock function must return a list of names, got a list'],
    ] as const) {
      const log: string[] = [];
      const tool = editor(world, log);
      const done = await runLoop(
        { tools: [{ ...tool, spec: { ...tool.spec, execution: { lock } } }], turns: [edits({ a: ["x"] }), ["ok"]] },
        world,
      );
      expect(listToolAnswers(done).map(getAnswerText)).toEqual([expect.stringContaining(text)]);
      expect(log).toEqual([]);
    }
  });

  test("arguments changed by an aroundTool hook determine the locks of the call", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const done = await runLoop(
      {
        tools: [editor(world, log)],
        middleware: [
          {
            name: "elsewhere",
            aroundTool: ({ call: made }, next) =>
              next(made.id === "a" ? { ...made, args: { files: ["y"], ms: 10 } } : made),
          },
        ],
        turns: [edits({ a: ["x"], b: ["y"] }), ["ok"]],
      },
      world,
    );
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["a", "b"]);
    const overlap = log.map((line) => line[0]).join("");
    expect(overlap).toBe("+-+-");
  });
});

test("an aroundTool hook that answers early does not release the lock of the still active tool", async () => {
  const world = createVirtualWorld();
  const log: string[] = [];
  const done = await runLoop(
    {
      tools: [editor(world, log)],
      middleware: [
        {
          name: "impatient",
          aroundTool: async ({ call: made }, next) => {
            const result = next(made);
            if (made.id !== "a") return result;
            return { callId: "a", name: "edit", content: [], isError: false, attempts: 1, elapsedMs: 0 };
          },
        },
      ],
      turns: [edits({ a: ["x"], b: ["x"] }), ["ok"]],
    },
    world,
  );
  expect(log).toEqual(["+a 0", "-a 10", "+b 10", "-b 20"]);
  expect(listToolAnswers(done).map(({ callId }) => callId)).toEqual(["a", "b"]);
});

describe("sequential tools", () => {
  test("a call of a sequential tool runs alone in its position, and the other calls run in parallel [D1]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const tool = editor(world, log);
    const alone: DeskTool = {
      ...tool,
      spec: { ...tool.spec, name: "alone", execution: { mode: "sequential" } },
    };
    const [a, b, d, e] = edits({ a: [], b: [], d: [], e: [] });
    const done = await runLoop(
      {
        tools: [editor(world, log), alone],
        turns: [[a, b, call("alone", {}, "c"), d, e].flatMap((each) => each ?? []), ["ok"]],
      },
      world,
    );
    expect(log).toEqual(["+a 0", "+b 0", "-a 10", "-b 10", "+c 10", "-c 20", "+d 20", "+e 20", "-d 30", "-e 30"]);
    expect(listToolAnswers(done).map(({ callId }) => callId)).toEqual(["a", "b", "c", "d", "e"]);
  });
});

describe("maxCalls", () => {
  test("tool calls over maxCalls are refused in call order and answered, and a denied call releases its slot [S1.50, K5, T38, D4]", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const done = await runLoop(
      {
        tools: [editor(world, log)],
        maxCalls: 2,
        middleware: [
          {
            name: "slow no",
            beforeTool: async ({ call: made }) => {
              if (made.id !== "a") return undefined;
              await new Promise<void>((resolve) => world.schedule.after(100, resolve));
              return { action: "deny", reason: "no" };
            },
          },
        ],
        turns: [edits({ a: [], b: [], c: [], d: [] }), ["ok"]],
      },
      world,
    );
    expect(listToolAnswers(done).map((answer) => [answer.callId, answer.isError, getAnswerText(answer)])).toEqual([
      ["a", true, "no"],
      ["b", false, "b"],
      ["c", false, "c"],
      ["d", true, "Not run: at most 2 calls of one message are run. Ask again for what is still needed."],
    ]);
    expect(listEvents(done, "tool.rejected").map(({ callId, reason }) => [callId, reason])).toEqual([["d", "limit"]]);
    expect(listEvents(done, "tool.started").map(({ callId }) => callId)).toEqual(["a", "b", "c"]);
    expect(listResults(done).find(({ callId }) => callId === "d")?.error?.kind).toBe("limit");
    const order = done.events.filter((event) => "callId" in event && event.callId === "d").map(({ type }) => type);
    expect(order).toEqual(["tool.rejected", "tool.failed"]);
  });

  test("tool calls made before a resume count toward maxCalls, and refused calls stay refused", async () => {
    const world = createVirtualWorld();
    const log: string[] = [];
    const store = memoryStore();
    const options: LoopOptions = {
      tools: [editor(world, log)],
      world,
      store,
      maxCalls: 2,
      middleware: [{ name: "ask", beforeTool: ({ call: made }) => decide.interrupt(made, "may it?") }],
      turns: [edits({ a: [], b: [], c: [] }), ["ok"]],
    };
    const loop = createToolLoop(options);
    const first = loop.start();
    await world.advance(100);
    const waiting = await first.result;
    expect(waiting.status === "waiting" && waiting.interrupts.map(({ id }) => id.split(":").at(-1))).toEqual([
      "a",
      "b",
    ]);
    const ids = waiting.status === "waiting" ? waiting.interrupts.map(({ id }) => id) : [];
    const second = loop.again({ [ids[0] ?? ""]: false, [ids[1] ?? ""]: true });
    await world.advance(100);
    const result = await second.result;
    expect(listToolAnswers(result).map(({ callId, isError }) => [callId, isError])).toEqual([
      ["a", true],
      ["b", false],
      ["c", true],
    ]);
    expect(log).toEqual(["+b 100", "-b 110"]);
  });

  test("an invalid maxCalls or steering option is refused", () => {
    const tools = [editor(createVirtualWorld(), [])];
    for (const wrong of [
      { maxCalls: 0 },
      { maxCalls: -1 },
      { maxCalls: 1.5 },
      { maxCalls: Number.NaN },
      { steering: "stop" as never },
    ]) {
      const thrown = ((): unknown => {
        try {
          return toolNode({ tools, ...wrong });
        } catch (error) {
          return error;
        }
      })();
      expect([wrong, isStatewrightError(thrown, "invalid_option")]).toEqual([wrong, true]);
    }
  });

  test("the tool call strategy defaults to parallel, and a batch size must be a positive integer [S2.65, T37]", () => {
    const tools = [editor(createVirtualWorld(), [])];
    expect(toolNode({ tools }).strategy).toBe("parallel");
    expect(toolNode({ tools, maxConcurrency: 3 }).strategy).toBe("parallel");
    for (const batch of [0, -1, 1.5, Number.NaN]) {
      const make = (): unknown => toolNode({ tools, strategy: { batch } });
      expect(make).toThrow(/strategy\.batch/);
    }
    expect(toolNode({ tools, strategy: { batch: 1 } }).strategy).toEqual({ batch: 1 });
  });
});
