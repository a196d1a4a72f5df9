/** Engine calls take each path that xstate/graph finds through the tool call machine. */
import { describe, expect, test } from "vitest";
import { getSimplePaths } from "xstate/graph";
import * as z from "zod";
import { getToolCallMachine } from "../../../src/compile/tool-call-machine.ts";
import {
  type ApprovalAnswer,
  decide,
  defineMiddleware,
  defineTool,
  type Inspector,
  memoryStore,
  ToolError,
} from "../../../src/index.ts";
import { call, createRawCall, createToolLoop, type Loop, type LoopOptions } from "../../support/tool-loop.ts";

const toolCallMachine = getToolCallMachine();

/** Path from the first to the last state, as names of the states between. */
const createPath = (...middle: string[]): string =>
  ["received", ...middle, "after", "formatted", "persisted", "answered"].join(" → ");
const checked = ["resolved", "validated", "admitted", "started", "before"];

interface Scenario {
  readonly how: string;
  readonly path: string;
  readonly options?: Partial<LoopOptions>;
  /** Drives the started run until the calls are answered. */
  readonly live?: (loop: Loop) => Promise<unknown>;
}

const runs = defineTool({
  name: "runs",
  description: "Runs.",
  input: z.object({ n: z.number().default(1) }),
  run: () => "ok",
});
let attempts = 0;
const flaky = defineTool({
  name: "runs",
  description: "Fails first.",
  input: z.object({}),
  effect: "pure",
  retry: { attempts: 2, initialMs: 1_000 },
  run: () => {
    attempts += 1;
    if (attempts % 2 === 1) throw ToolError.unavailable("busy");
    return "ok";
  },
});
const slow = defineTool({
  name: "runs",
  description: "Works until the user speaks.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { steered }) => new Promise<string>((resolve) => steered.addEventListener("abort", () => resolve("ok"))),
});
const hangs = defineTool({
  name: "hangs",
  description: "Waits for the end.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});
const createBeforeHook = (
  beforeTool: NonNullable<Parameters<typeof defineMiddleware>[0]["beforeTool"]>,
): Partial<LoopOptions> => ({
  middleware: [defineMiddleware({ name: "decides", beforeTool })],
});
const asks = createBeforeHook(({ call: made }) => decide.interrupt(made, "may it?"));
const answers = (answer: ApprovalAnswer) => async (loop: Loop) => {
  const waiting = await loop.start().result;
  expect(waiting.status).toBe("waiting");
  await loop.again({ approve: answer }).result;
};

const scenarios: readonly Scenario[] = [
  { how: "runs", path: createPath(...checked, "executing") },
  { how: "fails", path: createPath(...checked, "executing"), options: { tools: [failing()] } },
  {
    how: "is allowed by a hook",
    path: createPath(...checked, "executing"),
    options: createBeforeHook(() => decide.allow()),
  },
  {
    how: "is for a tool that does not exist",
    path: createPath("rejected"),
    options: { turns: listTurns(call("nothing")) },
  },
  { how: "was cut off", path: createPath("rejected"), options: { finish: "length" } },
  {
    how: "has arguments that are no JSON",
    path: createPath("resolved", "rejected"),
    options: { turns: listTurns(createRawCall("runs", "{")) },
  },
  {
    how: "has arguments that do not fit",
    path: createPath("resolved", "rejected"),
    options: { turns: listTurns(call("runs", { n: "x" })) },
  },
  { how: "is denied by a hook", path: createPath(...checked), options: createBeforeHook(() => decide.deny("no")) },
  {
    how: "is answered by a hook",
    path: createPath(...checked),
    options: createBeforeHook(() => decide.respond("here")),
  },
  {
    how: "is given arguments that do not fit",
    path: createPath(...checked),
    options: createBeforeHook(() => decide.modify({ n: "x" })),
  },
  {
    how: "is approved by a person",
    path: createPath(...checked, "waitingHuman", "executing"),
    options: asks,
    live: answers(true),
  },
  { how: "is refused by a person", path: createPath(...checked, "waitingHuman"), options: asks, live: answers(false) },
  {
    how: "is tried again",
    path: createPath(...checked, "executing", "retryWait", "executing"),
    options: { tools: [flaky] },
    live: async (loop) => {
      const handle = loop.start();
      await loop.world.advance(60_000);
      return handle.result;
    },
  },
  {
    how: "is cancelled while it runs",
    path: createPath(...checked, "executing", "cancelled"),
    options: { tools: [hangs], turns: listTurns(call("hangs")) },
    live: cancelled,
  },
  {
    how: "is cancelled while it waits for the next attempt",
    path: createPath(...checked, "executing", "retryWait", "cancelled"),
    options: { tools: [flaky] },
    live: cancelled,
  },
  {
    how: "is cancelled while a hook decides",
    path: createPath(...checked, "cancelled"),
    options: createBeforeHook(
      (_at, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(decide.allow()))),
    ),
    live: cancelled,
  },
  {
    how: "is cancelled by a hook",
    path: createPath(...checked, "cancelled"),
    options: createBeforeHook(() => decide.abort("enough")),
  },
  {
    how: "waits for a person while the run is cancelled",
    path: createPath(...checked, "waitingHuman", "cancelled"),
    options: {
      tools: [hangs, runs],
      turns: listTurns(call("hangs"), call("runs")),
      ...createBeforeHook(({ call: made }) => (made.name === "runs" ? decide.interrupt(made, "may it?") : undefined)),
    },
    live: cancelled,
  },
  {
    how: "is answered by a person in the tool's place",
    path: createPath(...checked, "waitingHuman"),
    options: asks,
    live: answers({ respond: "here" }),
  },
  {
    how: "is cancelled after a yes, while it runs",
    path: createPath(...checked, "waitingHuman", "executing", "cancelled"),
    options: { tools: [hangs], turns: listTurns(call("hangs")), ...asks },
    live: cancelledAfterYes,
  },
  {
    how: "is cancelled after a yes, while it waits for the next attempt",
    path: createPath(...checked, "waitingHuman", "executing", "retryWait", "cancelled"),
    options: { tools: [flaky], ...asks },
    live: cancelledAfterYes,
  },
  {
    how: "is tried again after a yes",
    path: createPath(...checked, "waitingHuman", "executing", "retryWait", "executing"),
    options: { tools: [flaky], ...asks },
    live: async (loop) => {
      await loop.start().result;
      const handle = loop.again({ approve: true });
      await loop.world.advance(60_000);
      return handle.result;
    },
  },
  {
    how: "comes after as many as may run",
    path: createPath("resolved", "validated", "rejected"),
    options: { maxCalls: 1, turns: listTurns(call("runs", {}, "c1"), call("runs", {}, "c2")) },
  },
  {
    how: "is skipped for the sake of what the user says",
    path: createPath("skipped"),
    options: {
      tools: [slow],
      strategy: "sequential",
      turns: [[call("runs", {}, "c1"), call("runs", {}, "c2")], ["heard"], ["done"]],
    },
    live: async (loop) => {
      const handle = loop.start();
      await loop.world.waitUntilIdle();
      await handle.steer("stop");
      await loop.world.advance(10);
      return handle.result;
    },
  },
  {
    how: "is cancelled before it begins",
    path: createPath("cancelled"),
    options: {
      tools: [hangs],
      turns: listTurns(call("hangs", {}, "c1"), call("hangs", {}, "c2")),
      strategy: "sequential",
    },
    live: cancelled,
  },
];

function failing() {
  return defineTool({
    name: "runs",
    description: "Fails.",
    input: z.object({}),
    run: () => Promise.reject(new Error("no")),
  });
}

function listTurns(...calls: ReturnType<typeof call>[]): LoopOptions["turns"] {
  return [calls, ["done"]];
}

async function cancelled(loop: Loop): Promise<unknown> {
  const handle = loop.start();
  await loop.world.waitUntilIdle();
  handle.cancel("enough");
  return handle.result;
}

async function cancelledAfterYes(loop: Loop): Promise<unknown> {
  await loop.start().result;
  const handle = loop.again({ approve: true });
  await loop.world.waitUntilIdle();
  handle.cancel("enough");
  return handle.result;
}

/** Lists the states of the machine of the last call in order, as an inspector sees them. */
async function getPath({ options, live }: Scenario): Promise<string> {
  const calls = new Map<unknown, string[]>();
  const inspect: Inspector = (event) => {
    const { _parent } = event.actorRef as { readonly _parent?: { readonly id: string } };
    if (_parent?.id !== "tools" || event.type !== "@xstate.snapshot") return;
    const states = calls.get(event.actorRef) ?? [];
    calls.set(event.actorRef, [...states, String((event.snapshot as { readonly value?: unknown }).value)]);
  };
  const loop = createToolLoop({
    tools: [runs],
    turns: listTurns(call("runs")),
    store: memoryStore(),
    inspect,
    ...options,
  });
  attempts = 0;
  await (live === undefined ? loop.start().result : live(loop));
  // An approved call starts again when the run continues.
  return ([...calls.values()].at(-1) ?? []).join(" → ");
}

/** Paths of a run with a store; without a store a call goes from formatted to answered. */
const simple = getSimplePaths(toolCallMachine, { toState: ({ status }) => status === "done" })
  .map(({ steps }) => steps.map(({ state }) => String(state.value)))
  .filter((path) => path.includes("persisted"));
const listArrows = (path: readonly string[]): readonly string[] =>
  path.slice(1).map((to, index) => `${path[index]} → ${to}`);

describe("paths of a tool call", () => {
  test.each(scenarios)("a tool call that $how takes the path $path [K3]", async (scenario) => {
    expect(await getPath(scenario)).toBe(scenario.path);
  });

  const storeless = scenarios.filter(({ live }) => live === undefined);
  test.each(storeless)("a tool call that $how persists nothing without a store [K3]", async ({ path, ...scenario }) => {
    expect(await getPath({ ...scenario, path, options: { ...scenario.options, store: "none" } })).toBe(
      path.replace(" → persisted", ""),
    );
  });
});

describe("paths of the tool call machine", () => {
  const taken = scenarios.map(({ path }) => path.split(" → "));

  test("tool call scenarios take every acyclic path of the machine, and every edge [K3]", () => {
    expect(simple.length).toBeGreaterThan(12);
    const known = new Set(taken.map((path) => path.join(" → ")));
    expect(simple.map((path) => path.join(" → ")).filter((path) => !known.has(path))).toEqual([]);
    expect(unreached(taken)).toEqual([]);
  });

  test("every path of the tool call machine ends in answered [K3]", () => {
    expect(new Set(simple.map((path) => path.at(-1)))).toEqual(new Set(["answered"]));
    expect(new Set(taken.map((path) => path.at(-1)))).toEqual(new Set(["answered"]));
  });
});

/** Transitions of the machine that are on no path. */
function unreached(paths: readonly (readonly string[])[]): readonly string[] {
  // Calls without a store take this transition; a separate test covers them.
  const seen = new Set([...paths.flatMap(listArrows), "formatted → answered"]);
  const all = Object.values(toolCallMachine.states).flatMap((state) =>
    [...state.transitions.values()].flat().map(({ target }) => `${state.key} → ${target?.[0]?.key}`),
  );
  return all.filter((arrow) => !seen.has(arrow));
}
