import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  type EffectClass,
  END,
  memoryStore,
  resume,
  run,
  START,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { ignoreResult } from "../../support/failure.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  gate,
  getAnswerText,
  type Loop,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const input = z.object({});

/** Tool that hangs in its first run until its process dies, and answers in later runs. */
function hanging(effect: EffectClass, more: { readonly reconcile?: () => unknown } = {}) {
  const keys: string[] = [];
  const asked: string[] = [];
  const { reconcile } = more;
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input,
    effect,
    run: (_args, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return keys.length === 1 ? new Promise<string>(() => undefined) : `run ${keys.length}`;
    },
    ...(reconcile === undefined
      ? {}
      : {
          reconcile: (_args, { idempotencyKey }) => {
            asked.push(idempotencyKey);
            return reconcile() as string;
          },
        }),
  });
  return { tool, keys, asked };
}

type End = Awaited<ReturnType<Loop["start"]>["result"]>;

/** Runs until the tool hangs, kills the process and resumes in another one; `again` resumes in a third one. */
async function crashAndResume(options: LoopOptions): Promise<{
  readonly loop: Loop;
  readonly end: Promise<End>;
  readonly again: (answers?: Readonly<Record<string, unknown>>) => Promise<End>;
}> {
  const store = memoryStore();
  const loop = createToolLoop({ ...options, store });
  ignoreResult(loop.start().result);
  await loop.world.waitUntilIdle();
  store.crash();
  const resumeRun = (answers: Readonly<Record<string, unknown>> = {}): Promise<End> =>
    loop.again(answers, { store: store.peer() }).result;
  return { loop, end: resumeRun(), again: resumeRun };
}

describe("started tool call after a crash", () => {
  test("a started pure or idempotent tool call reruns after a crash under the same idempotency key", async () => {
    for (const effect of ["pure", "idempotent"] as const) {
      const { tool, keys } = hanging(effect);
      const { loop, end } = await crashAndResume({ tools: [tool], turns: [[call("act", {}, "c1")], ["ok"]] });
      expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["run 2"]);
      expect(keys).toEqual([keys[0], keys[0]]);
      expect(
        listEvents(loop, "effect.repeated").map(({ key, effect: observed, idempotencyKey }) => [
          key,
          observed,
          idempotencyKey,
        ]),
      ).toEqual([["c1", effect, keys[0]]]);
    }
  });

  test("a started once tool call is in doubt after a crash: no rerun, and an interrupt stays open over every resume", async () => {
    const { tool, keys } = hanging("once");
    const { loop, end, again } = await crashAndResume({ tools: [tool], turns: [[call("act", {}, "c1")], ["ok"]] });
    const first = await end;
    expect(first).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "in_doubt", payload: { callId: "c1", tool: "act", idempotencyKey: keys[0] } }],
    });
    expect(await again()).toMatchObject({ status: "waiting" });
    expect(keys).toHaveLength(1);
    expect(listEvents(loop, "effect.repeated")).toEqual([]);
  });

  test("a tool call in doubt takes the answer of a person that it happened, without a rerun", async () => {
    const { tool, keys } = hanging("once");
    const { end, again } = await crashAndResume({ tools: [tool], turns: [[call("act")], ["ok"]] });
    await end;
    const result = await again({ in_doubt: { happened: true, content: "it is in the bank's log" } });
    expect(listToolAnswers(result).map(getAnswerText)).toEqual(["it is in the bank's log"]);
    expect(keys).toHaveLength(1);
  });

  test("a tool call in doubt reruns under the same key when a person answers that it did not happen", async () => {
    const { tool, keys } = hanging("once");
    const { end, again } = await crashAndResume({ tools: [tool], turns: [[call("act")], ["ok"]] });
    await end;
    const result = await again({ in_doubt: { happened: false } });
    expect(listToolAnswers(result).map(getAnswerText)).toEqual(["run 2"]);
    expect(keys).toEqual([keys[0], keys[0]]);
  });

  test("a tool call in doubt that reran and crashed again opens a new interrupt: an answer for one start does not count for the next", async () => {
    const keys: string[] = [];
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input,
      run: (_args, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        return keys.length < 3 ? new Promise<string>(() => undefined) : "third";
      },
    });
    let store = memoryStore();
    const loop = createToolLoop({ tools: [tool], store, turns: [[call("act")], ["ok"]] });
    ignoreResult(loop.start().result);
    for (let starts = 1; starts <= 2; starts++) {
      await loop.world.waitUntilIdle();
      expect(keys).toHaveLength(starts);
      const next = store.peer();
      store.crash();
      store = next;
      for (let nth = 0; nth < 2; nth++)
        expect((await loop.again({}, { store }).result).status, `start ${starts}`).toBe("waiting");
      expect(keys).toHaveLength(starts);
      ignoreResult(loop.again({ in_doubt: { happened: false } }, { store }).result);
    }
    await loop.world.waitUntilIdle();
    expect((await loop.again({}, { store }).result).status).toBe("done");
    expect(keys).toEqual([keys[0], keys[0], keys[0]]);
  });

  test("a tool call in doubt takes the result of reconcile without a rerun", async () => {
    const { tool, keys, asked } = hanging("once", { reconcile: () => "it did happen" });
    const { end } = await crashAndResume({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["it did happen"]);
    expect([keys.length, asked]).toEqual([1, [keys[0]]]);
  });

  test("a tool call in doubt reruns under the same key when reconcile returns that it did not happen", async () => {
    const { tool, keys, asked } = hanging("once", { reconcile: () => undefined });
    const { end } = await crashAndResume({ tools: [tool], turns: [[call("act")], ["ok"]] });
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["run 2"]);
    expect([keys, asked]).toEqual([[keys[0], keys[0]], [keys[0]]]);
  });

  test("reconcile that throws unknown_outcome answers the call as unknown without a rerun, and any other throw fails the run", async () => {
    const unknown = hanging("once", {
      reconcile: () => {
        throw new ToolError("unknown_outcome", "The bank does not know either.");
      },
    });
    const { loop, end } = await crashAndResume({ tools: [unknown.tool], turns: [[call("act")], ["ok"]] });
    expect(
      listToolAnswers(await end).map(({ isError, ...answer }) => [isError, getAnswerText({ isError, ...answer })]),
    ).toEqual([[true, "The bank does not know either."]]);
    expect(listResults(loop).map(({ error }) => error?.kind)).toEqual(["unknown_outcome"]);
    expect(unknown.keys).toHaveLength(1);
    const away = hanging("once", { reconcile: () => Promise.reject(ToolError.unavailable("The bank is closed")) });
    const other = await crashAndResume({ tools: [away.tool], turns: [[call("act")], ["ok"]] });
    await expect(other.end).rejects.toMatchObject({ code: "node_failed" });
    expect(away.keys).toHaveLength(1);
  });

  test("a tool call in doubt stays in doubt when a policy would deny it now", async () => {
    const { tool } = hanging("once");
    let allowed = true;
    const policy = defineMiddleware({
      name: "policy",
      beforeTool: () => (allowed ? undefined : decide.deny("not any more")),
    });
    const store = memoryStore();
    const loop = createToolLoop({ tools: [tool], middleware: [policy], store, turns: [[call("act")], ["ok"]] });
    ignoreResult(loop.start().result);
    await loop.world.waitUntilIdle();
    store.crash();
    allowed = false;
    const result = await loop.again({}, { store: store.peer() }).result;
    expect(result).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt" }] });
  });
});

describe("tool call in doubt with arguments changed by hooks", () => {
  interface InDoubtSetup {
    readonly hook: "beforeTool" | "aroundTool";
    readonly reconcile?: false;
    /** Value that the hook writes; by default the number of its process. */
    readonly by?: unknown;
    readonly deniedFrom?: number;
  }

  /**
   * Call that hangs in every process, with a hook that writes the process number; `next` continues in another process.
   */
  function createCrashingLoop({ hook, reconcile, by, deniedFrom = Infinity }: InDoubtSetup) {
    let life = 1;
    const log: string[] = [];
    const tool = defineTool({
      name: "act",
      description: "Act.",
      input: z.object({ by: z.unknown() }),
      run: ({ by }: { readonly by: unknown }) => {
        log.push(`runs with ${by}`);
        return new Promise<string>(() => undefined);
      },
      ...(reconcile === false
        ? {}
        : {
            reconcile: ({ by }: { readonly by: unknown }) => {
              log.push(`asked about ${by}`);
              return life < 3 && deniedFrom > life ? undefined : "it did happen";
            },
          }),
    });
    const middleware = defineMiddleware({
      name: "hooks",
      beforeTool: () =>
        life >= deniedFrom
          ? decide.deny("not any more")
          : hook === "beforeTool"
            ? decide.modify({ by: by ?? life })
            : undefined,
      ...(hook === "aroundTool" ? { aroundTool: ({ call }, next) => next({ ...call, args: { by: by ?? life } }) } : {}),
      afterTool: ({ call }) => {
        if (tool.is(call)) log.push(`ended with ${call.args.by}`);
        return undefined;
      },
    });
    let store = memoryStore();
    const turns = [[call("act", { by: "the model" })], ["ok"]];
    const loop = createToolLoop({ tools: [tool], middleware: [middleware], store, turns });
    ignoreResult(loop.start().result);
    const next = async (answers = {}): Promise<{ readonly end: Promise<End> }> => {
      await loop.world.waitUntilIdle();
      store.crash();
      store = store.peer();
      life += 1;
      return { end: loop.again(answers, { store }).result };
    };
    return { log, next };
  }

  test("reconcile and after hooks get the arguments of the last execution, as changed by a beforeTool or aroundTool hook", async () => {
    for (const hook of ["beforeTool", "aroundTool"] as const) {
      const { log, next } = createCrashingLoop({ hook });
      ignoreResult((await next()).end);
      const { end } = await next();
      expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["it did happen"]);
      expect(log, hook).toEqual(["runs with 1", "asked about 1", "runs with 2", "asked about 2", "ended with 2"]);
    }
  });

  test("the in-doubt interrupt shows the arguments of the execution", async () => {
    const { next } = createCrashingLoop({ hook: "aroundTool", reconcile: false });
    const { end } = await next();
    expect(await end).toMatchObject({ interrupts: [{ key: "in_doubt", payload: { args: { by: 1 } } }] });
  });

  test("a tool call in doubt with unsavable arguments opens an interrupt and does not call reconcile", async () => {
    const { log, next } = createCrashingLoop({ hook: "aroundTool", by: () => "a function" });
    const { end } = await next();
    expect(await end).toMatchObject({ interrupts: [{ key: "in_doubt", payload: { args: "[not saved]" } }] });
    expect(log).toHaveLength(1);
  });

  test("reconcile is called for a tool call in doubt that a policy would deny now", async () => {
    const { log, next } = createCrashingLoop({ hook: "aroundTool", deniedFrom: 2 });
    const { end } = await next();
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["it did happen"]);
    expect(log).toEqual(["runs with 1", "asked about 1", "ended with 1"]);
  });
});

describe("completed tool call after a crash", () => {
  test("a completed tool call, successful or failed, is replayed after a crash, and neither tool nor hook reruns", async () => {
    const log: string[] = [];
    const outcomes: Record<string, () => unknown> = {
      good: () => ({ content: "good", details: { n: 1 } }),
      bad: () => Promise.reject(ToolError.notFound("bad")),
      hangs: () => (log.filter((line) => line === "run hangs").length === 1 ? new Promise(() => undefined) : "late"),
    };
    const tools: DeskTool[] = Object.keys(outcomes).map((name) =>
      defineTool({
        name,
        description: name,
        input,
        effect: name === "hangs" ? "idempotent" : "once",
        run: () => {
          log.push(`run ${name}`);
          return outcomes[name]?.();
        },
      }),
    );
    const hook = defineMiddleware({
      name: "hook",
      beforeTool: ({ call: made }) => void log.push(`before ${made.name}`) as undefined,
      afterTool: ({ call: made }) => void log.push(`after ${made.name}`) as undefined,
    });
    const { loop, end } = await crashAndResume({
      tools,
      middleware: [hook],
      turns: [[call("good"), call("bad"), call("hangs")], ["ok"]],
    });
    expect(listToolAnswers(await end).map((answer) => [getAnswerText(answer), answer.isError])).toEqual([
      ["good", false],
      ["bad", true],
      ["late", false],
    ]);
    for (const name of ["good", "bad"])
      for (const what of ["before", "run", "after"])
        expect(log.filter((line) => line === `${what} ${name}`)).toHaveLength(1);
    expect(log.filter((line) => line === "run hangs")).toHaveLength(2);
    expect(
      listEvents(loop, "effect.reused")
        .filter(({ kind }) => kind === "tool")
        .map(({ name }) => name)
        .sort(),
    ).toEqual(["bad", "good"]);
    expect(listResults(loop).map(({ name }) => name)).toEqual(["good", "bad", "hangs"]);
  });
});

test("a tool call that had not started runs once after a crash", async () => {
  const ran: string[] = [];
  const first = gate<string>();
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({ name: z.string() }),
    effect: "idempotent",
    run: ({ name }) => {
      ran.push(name);
      return name === "a" && ran.length === 1 ? first.passed : name;
    },
  });
  const once = defineTool({ name: "once", description: "Once.", input, run: () => void ran.push("once") });
  const { end } = await crashAndResume({
    tools: [tool, once],
    strategy: "sequential",
    turns: [[call("act", { name: "a" }, "a"), call("once")], ["ok"]],
  });
  expect((await end).status).toBe("done");
  expect(ran).toEqual(["a", "a", "once"]);
});

test("answers and interrupts survive a later crash", async () => {
  const ran: string[] = [];
  const look = defineTool({ name: "look", description: "Look.", input, run: () => void ran.push("look") });
  const store = memoryStore();
  const ask = defineMiddleware({
    name: "ask",
    beforeTool: ({ call: made }) =>
      made.name === "pay" ? { action: "interrupt", key: "approve", payload: { id: made.id } } : undefined,
  });
  const pay = defineTool({
    name: "pay",
    description: "Pay.",
    input,
    effect: "idempotent",
    run: () => (ran.push("pay") === 2 ? new Promise(() => undefined) : "paid"),
  });
  const loop = createToolLoop({
    tools: [look, pay],
    middleware: [ask],
    store,
    turns: [[call("look"), call("pay")], ["ok"]],
  });
  expect((await loop.start().result).status).toBe("waiting");
  ignoreResult(loop.again({ approve: true }).result);
  await loop.world.waitUntilIdle();
  store.crash();
  const end = await loop.again({}, { store: store.peer() }).result;
  expect([end.status, ran]).toEqual(["done", ["look", "pay", "pay"]]);
});

test("an idempotency key is the same in every attempt and differs between calls, tasks and threads", async () => {
  const keys: string[] = [];
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input,
    run: (_args, { idempotencyKey }) => void keys.push(idempotencyKey),
  });
  const turns = [
    [call("act", {}, "a"), call("act", {}, "b"), call("act", {}, "a")],
    [call("act", {}, "a")],
    ["ok"],
  ] as const;
  await createToolLoop({ tools: [tool], turns }).start().result;
  expect(new Set(keys).size).toBe(4);
});

test("the result of a tool call without an id is not confused with the result of its task after a crash", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const { tool, keys } = hanging("idempotent");
  const quick = defineTool({ name: "quick", description: "Quick.", input, effect: "idempotent", run: () => "quick" });
  const graph = defineGraph({ name: "careless", state: defineState({ messages: channel.messages() }) })
    .nodes({
      ask: () => ({
        messages: [
          {
            role: "assistant",
            id: "m",
            finish: "calls",
            content: [
              { type: "call", id: "", name: "quick", args: {} },
              { type: "call", id: "y", name: "act", args: {} },
            ],
          },
        ],
      }),
      tools: toolNode({ tools: [quick, tool] }),
      other: () => undefined,
    })
    .edges({ [START]: "ask", ask: ["tools", "other"], tools: END, other: END });
  run(graph, { world, store, thread: "t" });
  await world.waitUntilIdle();
  store.crash();
  const { state } = await resume(graph, { world, store: store.peer(), thread: "t" }).result;
  expect(state.messages.map((message) => (message.role === "tool" ? message.callId : message.role))).toEqual([
    "assistant",
    "",
    "y",
  ]);
  expect(keys).toHaveLength(2);
});
