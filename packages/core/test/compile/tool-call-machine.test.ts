import { expect, test } from "vitest";
import { getSimplePaths } from "xstate/graph";
import * as z from "zod";
import { getToolCallMachine } from "../../src/compile/tool-call-machine.ts";
import { decide, defineMiddleware, defineTool, memoryStore, ToolError } from "../../src/index.ts";
import { createKernel } from "../../src/run/kernel/kernel.ts";
import { ignoreResult } from "../support/failure.ts";
import { call, createToolLoop } from "../support/tool-loop.ts";

const toolCallMachine = getToolCallMachine();

const paths = getSimplePaths(toolCallMachine, { toState: (state) => state.status === "done" });
const arrows = Object.values(toolCallMachine.states).flatMap((state) =>
  [...state.transitions.values()].flatMap((list) =>
    list.map(({ eventType, target }) => ({ from: state.key, event: eventType, to: String(target?.[0]?.key) })),
  ),
);

/** Events from a state to answered, on any path. */
function findWayOut(from: string): readonly string[] {
  for (const { steps } of paths) {
    const index = steps.findIndex(({ state }) => state.value === from);
    if (index >= 0) return steps.slice(index + 1).map(({ event }) => event.type);
  }
  throw new Error(`no way out of ${from}`);
}

test("the tool call machine ends only in answered, takes every transition, and stores the state at a crash in its row [K3]", async () => {
  expect(new Set(paths.map(({ state }) => state.value))).toEqual(new Set(["answered"]));
  const kernel = createKernel(toolCallMachine);
  expect(arrows.length).toBeGreaterThan(25);
  for (const { from, event, to } of arrows) {
    const [entered] = kernel.step(kernel.restore(from), { type: event });
    expect([from, event, entered.value]).toEqual([from, event, to]);
    const end = findWayOut(to).reduce((at, type) => kernel.step(at, { type })[0], entered);
    expect([from, event, end.value, end.status]).toEqual([from, event, "answered", "done"]);
  }
  const known = new Set([
    "received",
    "resolved",
    "validated",
    "admitted",
    "started",
    "before",
    "executing",
    "retryWait",
    "waitingHuman",
    "after",
    "formatted",
    "persisted",
    "answered",
    "rejected",
    "skipped",
    "cancelled",
  ]);
  expect(new Set(Object.keys(toolCallMachine.states))).toEqual(known);

  const hang = (): Promise<string> => new Promise(() => undefined);
  const tools = [
    defineTool({ name: "runs", description: "Runs.", input: z.object({}), run: hang }),
    defineTool({
      name: "retries",
      description: "Retries.",
      input: z.object({}),
      effect: "pure",
      retry: { attempts: 2, initialMs: 1_000 },
      run: () => Promise.reject(ToolError.unavailable("no")),
    }),
    defineTool({ name: "asks", description: "Asks.", input: z.object({}), run: hang }),
    defineTool({ name: "ends", description: "Ends.", input: z.object({}), run: () => "x" }),
  ];
  const ask = defineMiddleware({
    name: "ask",
    beforeTool: ({ call: made }) => (made.name === "asks" ? decide.interrupt(made, "why") : undefined),
  });
  const store = memoryStore();
  const loop = createToolLoop({
    tools,
    middleware: [ask],
    store,
    turns: [[call("runs"), call("retries"), call("asks"), call("ends")], ["ok"]],
  });
  ignoreResult(loop.start().result);
  await loop.world.waitUntilIdle();
  store.crash();
  const rows = await store.peer().effects("t", "main", 1);
  expect(rows.map(({ name, state, stage }) => [name, state, stage]).sort()).toEqual([
    ["ends", "ok", "persisted"],
    ["retries", "started", "retryWait"],
    ["runs", "started", "executing"],
  ]);
});

test("the tool call machine never answers before the after hooks and never executes before the checks", () => {
  for (const { steps } of paths) {
    const values = steps.map(({ state }) => String(state.value));
    // Without an artifact store no artifact is persisted.
    const end = values.filter((value) => value !== "persisted").slice(-3);
    expect(end).toEqual(["after", "formatted", "answered"]);
    if (values.includes("executing"))
      expect(values.slice(0, 6)).toEqual(["received", "resolved", "validated", "admitted", "started", "before"]);
  }
});

test("the tool call machine accepts a cancel in every waiting state, and a skip only before the call has started", () => {
  const listStatesWith = (event: string): readonly string[] =>
    Object.entries(toolCallMachine.states).flatMap(([name, state]) => (state.ownEvents.includes(event) ? [name] : []));
  expect(listStatesWith("call.skipped")).toEqual(["received"]);
  expect(listStatesWith("call.cancelled")).toEqual(["received", "before", "waitingHuman", "executing", "retryWait"]);
});
