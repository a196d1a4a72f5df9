/** The paths that xstate/graph finds through the machine of a tool call, taken by calls of the engine. */
import { describe, expect, test } from "vitest";
import { getSimplePaths } from "xstate/graph";
import * as z from "zod";
import { toolCallMachine } from "../../src/compile/tool-call-machine.ts";
import {
  allow,
  defineMiddleware,
  defineTool,
  deny,
  type Inspector,
  interruptFor,
  memoryStore,
  modify,
  respond,
  ToolError,
} from "../../src/index.ts";
import { call, type Loop, type LoopOptions, rawCall, toolLoop } from "../support/tool-loop.ts";

/** From the first state to the last, by the names of the states between. */
const whole = (...middle: string[]): string =>
  ["received", ...middle, "after", "formatted", "persisted", "answered"].join(" → ");
const checked = ["resolved", "validated", "admitted", "started", "before"];

interface Scenario {
  readonly how: string;
  readonly path: string;
  readonly options?: Partial<LoopOptions>;
  /** What happens after the start, until the calls are answered. */
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
const hangs = defineTool({
  name: "hangs",
  description: "Waits for the end.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});
const before = (
  beforeTool: NonNullable<Parameters<typeof defineMiddleware>[0]["beforeTool"]>,
): Partial<LoopOptions> => ({
  middleware: [defineMiddleware({ name: "decides", beforeTool })],
});
const asks = before(({ call: made }) => interruptFor(made, "may it?"));
const answers = (answer: boolean) => async (loop: Loop) => {
  const waiting = await loop.start().result;
  expect(waiting.status).toBe("waiting");
  await loop.again({ approve: answer }).result;
};

const scenarios: readonly Scenario[] = [
  { how: "runs", path: whole(...checked, "executing") },
  { how: "fails", path: whole(...checked, "executing"), options: { tools: [failing()] } },
  { how: "is allowed by a hook", path: whole(...checked, "executing"), options: before(() => allow()) },
  { how: "is for a tool that does not exist", path: whole("rejected"), options: { turns: turnsOf(call("nothing")) } },
  { how: "was cut off", path: whole("rejected"), options: { finish: "length" } },
  {
    how: "has arguments that are no JSON",
    path: whole("resolved", "rejected"),
    options: { turns: turnsOf(rawCall("runs", "{")) },
  },
  {
    how: "has arguments that do not fit",
    path: whole("resolved", "rejected"),
    options: { turns: turnsOf(call("runs", { n: "x" })) },
  },
  { how: "is denied by a hook", path: whole(...checked), options: before(() => deny("no")) },
  { how: "is answered by a hook", path: whole(...checked), options: before(() => respond("here")) },
  {
    how: "is given arguments that do not fit",
    path: whole(...checked),
    options: before(() => modify({ n: "x" })),
  },
  {
    how: "is approved by a person",
    path: whole(...checked, "waitingHuman", "executing"),
    options: asks,
    live: answers(true),
  },
  { how: "is refused by a person", path: whole(...checked, "waitingHuman"), options: asks, live: answers(false) },
  {
    how: "is tried again",
    path: whole(...checked, "executing", "retryWait", "executing"),
    options: { tools: [flaky] },
    live: async (loop) => {
      const handle = loop.start();
      await loop.world.advance(60_000);
      return handle.result;
    },
  },
  {
    how: "is cancelled while it runs",
    path: whole(...checked, "executing"),
    options: { tools: [hangs], turns: turnsOf(call("hangs")) },
    live: cancelled,
  },
  {
    how: "is cancelled while it waits for the next attempt",
    path: whole(...checked, "executing", "retryWait", "executing"),
    options: { tools: [flaky] },
    live: cancelled,
  },
  {
    how: "is cancelled before it begins",
    path: whole("cancelled"),
    options: {
      tools: [hangs],
      turns: turnsOf(call("hangs", {}, "c1"), call("hangs", {}, "c2")),
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

function turnsOf(...calls: ReturnType<typeof call>[]): LoopOptions["turns"] {
  return [calls, ["done"]];
}

async function cancelled(loop: Loop): Promise<unknown> {
  const handle = loop.start();
  await loop.world.settle();
  handle.cancel("enough");
  return handle.result;
}

/** The states that the machine of the last call was in, one after the other, as an inspector sees them. */
async function pathOf({ options, live }: Scenario): Promise<string> {
  const calls = new Map<unknown, string[]>();
  const inspect: Inspector = (event) => {
    const { _parent } = event.actorRef as { readonly _parent?: { readonly id: string } };
    if (_parent?.id !== "tools" || event.type !== "@xstate.snapshot") return;
    const states = calls.get(event.actorRef) ?? [];
    calls.set(event.actorRef, [...states, String((event.snapshot as { readonly value?: unknown }).value)]);
  };
  const loop = toolLoop({ tools: [runs], turns: turnsOf(call("runs")), store: memoryStore(), inspect, ...options });
  attempts = 0;
  await (live === undefined ? loop.start().result : live(loop));
  // A call that a person was asked about begins again when the run goes on.
  return ([...calls.values()].at(-1) ?? []).join(" → ");
}

const simple = getSimplePaths(toolCallMachine, { toState: ({ status }) => status === "done" }).map(({ steps }) =>
  steps.map(({ state }) => String(state.value)),
);
const arrowsOf = (path: readonly string[]): readonly string[] =>
  path.slice(1).map((to, index) => `${path[index]} → ${to}`);

describe("a call", () => {
  test.each(scenarios)("K3 a call that $how goes $path", async (scenario) => {
    expect(await pathOf(scenario)).toBe(scenario.path);
  });
});

describe("the paths of the machine", () => {
  const taken = scenarios.map(({ path }) => path.split(" → "));

  test("K3 paths that come back to no state are taken by a call each, unless they hold an arrow that no call takes yet", () => {
    const reserved = new Set(unreached(taken));
    const open = simple.filter((path) => !arrowsOf(path).some((arrow) => reserved.has(arrow)));
    expect(open.length).toBeGreaterThan(6);
    const known = new Set(taken.map((path) => path.join(" → ")));
    expect(open.map((path) => path.join(" → ")).filter((path) => !known.has(path))).toEqual([]);
  });

  test("K3 the paths hold these arrows that no call takes: a skip has no cause, and a cancel in the midst of a call is a result of it", () => {
    const cancelEarly = [
      "resolved",
      "validated",
      "admitted",
      "started",
      "before",
      "waitingHuman",
      "executing",
      "retryWait",
    ];
    expect(unreached(taken).toSorted()).toEqual(
      [
        ...["received", ...cancelEarly].map((from) => `${from} → skipped`),
        ...cancelEarly.map((from) => `${from} → cancelled`),
        "skipped → after",
        "validated → rejected",
      ].toSorted(),
    );
  });
});

/** Arrows of the machine that are on none of the paths. */
function unreached(paths: readonly (readonly string[])[]): readonly string[] {
  const seen = new Set(paths.flatMap(arrowsOf));
  const all = Object.values(toolCallMachine.states).flatMap((state) =>
    [...state.transitions.values()].flat().map(({ target }) => `${state.key} → ${target?.[0]?.key}`),
  );
  return all.filter((arrow) => !seen.has(arrow));
}
