import { expect, test } from "vitest";
import { createActor } from "xstate";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  END,
  goto,
  gotos,
  join,
  route,
  run,
  START,
  send,
  sends,
  task,
} from "../../src/index.ts";

const Log = defineState({ n: z.number().default(0) });
const nothing = () => undefined;

test("a graph with one node at a time has one state per node, with the edges as arrows", () => {
  const { machine } = defineGraph({ name: "line", state: Log })
    .nodes({ model: nothing, tools: nothing })
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
])("%s make a region per node", (_name, edges) => {
  const { machine } = defineGraph({ name: "wide", state: Log })
    .nodes({ a: nothing, b: nothing, c: nothing })
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

test("a route and gotos with several targets, of which one is chosen, keep one state per node", () => {
  const graph = defineGraph({ name: "line", state: Log })
    .nodes({ a: () => (Math.PI > 3 ? goto("b") : goto("c")), b: nothing, c: nothing })
    .edges({ [START]: route(["a", "b"], () => "a"), a: gotos("b", "c"), b: END, c: END });
  expect(Object.keys(graph.machine.states)).toEqual(["start", "a", "b", "c", "done"]);
});

test("sends and commands that send make a region per node", () => {
  const each = task(z.string(), nothing);
  const bySends = defineGraph({ name: "wide", state: Log })
    .nodes({ each })
    .edges({ [START]: sends("each", () => ["x"]), each: END });
  const byCommand = defineGraph({ name: "wide", state: Log })
    .nodes({ a: () => send("each", "x"), each })
    .edges({ [START]: "a", a: gotos("each"), each: END });
  expect([bySends.machine.root.type, byCommand.machine.root.type]).toEqual(["parallel", "parallel"]);
});

test("a name with dots, and a node called commit, make a sound machine that runs", async () => {
  const graph = defineGraph({ name: "shop.orders:v2", state: Log })
    .nodes({ commit: () => goto("next"), next: () => ({ n: 1 }) })
    .edges({ [START]: "commit", commit: gotos("next"), next: END });
  expect(createActor(graph.machine).getSnapshot().value).toBe("start");
  expect((await run(graph, {}).result).state).toEqual({ n: 1 });
});

test("the machine is made when it is first asked for, once", () => {
  const graph = defineGraph({ name: "line", state: Log })
    .nodes({ a: nothing })
    .edges({ [START]: "a", a: END });
  expect(graph.machine).toBe(graph.machine);
});
