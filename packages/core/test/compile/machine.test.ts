import { expect, test } from "vitest";
import { createActor } from "xstate";
import * as z from "zod";
import {
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  goto,
  inputNode,
  join,
  route,
  run,
  START,
  send,
} from "../../src/index.ts";

const Log = defineState({ n: z.number().default(0) });
const returnNothing = () => undefined;

test("a sequential graph compiles to one state per node with the edges as transitions", () => {
  const { machine } = defineGraph({ name: "line", state: Log })
    .nodes({ model: returnNothing, tools: returnNothing })
    .edges({ [START]: "model", model: route(["tools", END], () => END), tools: "model" });
  expect(Object.keys(machine.states)).toEqual(["start", "model", "tools", "done"]);
  expect(Object.keys(machine.states["model"]!.states)).toEqual(["executing", "committing", "interrupted", "failed"]);
  const targets = machine.states["model"]!.transitions.get("step.commit")!.flatMap(({ target }) => target ?? []);
  expect(targets.map(({ key }) => key)).toEqual(["tools", "done"]);
});

test.each([
  ["several targets", { a: ["b", "c"] }],
  ["a route that may choose several targets", { a: route(["b", "c"], () => "b", { many: true }) }],
  ["a join", { a: join("b") }],
])("%s makes the machine parallel, with a region per node", (_name, edges) => {
  const { machine } = defineGraph({ name: "wide", state: Log })
    .nodes({ a: returnNothing, b: returnNothing, c: returnNothing })
    .edges({ [START]: ["a", "c"], b: END, c: END, ...edges } as never);
  expect(machine.root.type).toBe("parallel");
  expect(Object.keys(machine.states)).toEqual(["driver", "a", "b", "c"]);
  expect(Object.keys(machine.states["a"]!.states)).toEqual([
    "idle",
    "executing",
    "committing",
    "interrupted",
    "failed",
    "done",
  ]);
});

test("a route or goto edge with several targets but one choice keeps one state per node", () => {
  const graph = defineGraph({ name: "line", state: Log })
    .nodes({ a: () => (Math.PI > 3 ? goto("b") : goto("c")), b: returnNothing, c: returnNothing })
    .edges({ [START]: route(["a", "b"], () => "a"), a: commandTargets("b", "c"), b: END, c: END });
  expect(Object.keys(graph.machine.states)).toEqual(["start", "a", "b", "c", "done"]);
});

test("sends and send commands make the machine parallel, with a region per node", () => {
  const each = inputNode(z.string(), returnNothing);
  const bySends = defineGraph({ name: "wide", state: Log })
    .nodes({ each })
    .edges({ [START]: fanOut("each", () => ["x"]), each: END });
  const byCommand = defineGraph({ name: "wide", state: Log })
    .nodes({ a: () => send("each", "x"), each })
    .edges({ [START]: "a", a: commandTargets("each"), each: END });
  expect([bySends.machine.root.type, byCommand.machine.root.type]).toEqual(["parallel", "parallel"]);
});

test("a graph name with dots and a node named commit compile to a machine that runs", async () => {
  const graph = defineGraph({ name: "shop.orders:v2", state: Log })
    .nodes({ commit: () => goto("next"), next: () => ({ n: 1 }) })
    .edges({ [START]: "commit", commit: commandTargets("next"), next: END });
  expect(createActor(graph.machine).getSnapshot().value).toBe("start");
  expect((await run(graph, {}).result).state).toEqual({ n: 1 });
});

test("the machine of a graph is created on first access, once", () => {
  const graph = defineGraph({ name: "line", state: Log })
    .nodes({ a: returnNothing })
    .edges({ [START]: "a", a: END });
  expect(graph.machine).toBe(graph.machine);
});
