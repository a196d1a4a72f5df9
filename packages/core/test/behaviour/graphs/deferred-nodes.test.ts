import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  join,
  memoryStore,
  resume,
  route,
  run,
  START,
  send,
} from "../../../src/index.ts";
import { createDeferred, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()), turns: z.number().default(0) });
const createLogNode = (name: string) => () => ({ log: [name] });
const createDeferredNode = <Body>(body: Body) => ({ run: body, defer: true }) as const;

test("a deferred node runs when no other node is runnable, once for all edges that led to it [E15, E19]", async () => {
  const graph = (defer: boolean) =>
    defineGraph({ name: "late", state: Log })
      .nodes({
        a: createLogNode("a"),
        b: createLogNode("b"),
        b2: createLogNode("b2"),
        z: { run: createLogNode("z"), defer },
      })
      .edges({ [START]: ["a", "b"], a: "z", b: "b2", b2: "z", z: END });
  expect((await run(graph(true), {}).result).state.log).toEqual(["a", "b", "b2", "z"]);
  expect((await run(graph(false), {}).result).state.log).toEqual(["a", "b", "b2", "z", "z"]);
});

test("a deferred node runs in every iteration of a loop, after the last undeferred node and with other deferred nodes [E15]", async () => {
  const graph = defineGraph({ name: "rounds", state: Log })
    .nodes({
      a: createLogNode("a"),
      b: createLogNode("b"),
      b2: createLogNode("b2"),
      y: createDeferredNode(createLogNode("y")),
      z: createDeferredNode((state: { readonly turns: number }) => ({ log: ["z"], turns: state.turns + 1 })),
    })
    .edges({
      [START]: ["a", "b"],
      a: ["y", "z"],
      b: "b2",
      b2: END,
      y: END,
      z: route(["a", "b", END], (state) => (state.turns < 2 ? ["a", "b"] : END), { many: true }),
    });
  const round = ["a", "b", "b2", "y", "z"];
  expect((await run(graph, {}).result).state.log).toEqual([...round, ...round]);
});

test("a deferred node in a sequential graph runs in order, and the machine keeps its sequential shape [E15]", async () => {
  const graph = defineGraph({ name: "line", state: Log })
    .nodes({ a: createLogNode("a"), z: createDeferredNode(createLogNode("z")), end: createLogNode("end") })
    .edges({ [START]: "a", a: "z", z: "end", end: END });
  expect((await run(graph, {}).result).state.log).toEqual(["a", "z", "end"]);
  expect(Object.keys(graph.machine.states)).toEqual(["start", "a", "z", "end", "done"]);
});

test("joins and deferred nodes wait for each other [E15]", async () => {
  const graph = defineGraph({ name: "joined", state: Log })
    .nodes({
      a: createLogNode("a"),
      b: createLogNode("b"),
      b2: createLogNode("b2"),
      d: createDeferredNode(createLogNode("d")),
      z: createDeferredNode(createLogNode("z")),
    })
    .edges({ [START]: ["a", "b"], a: "d", b: "b2", b2: join("z"), d: join("z"), z: END });
  expect((await run(graph, {}).result).state.log).toEqual(["a", "b", "b2", "d", "z"]);
});

test("sends to a deferred node keep their inputs and their order [E15]", async () => {
  const graph = defineGraph({ name: "sent", state: Log })
    .nodes({
      a: createLogNode("a"),
      b: () => [{ log: ["b"] }, send("each", "of b"), send("b2", 1)],
      b2: inputNode(z.number(), () => ({ log: ["b2"] })),
      each: inputNode(z.string(), (_state, { input }) => ({ log: [input] }), { defer: true }),
    })
    .edges({
      [START]: ["a", "b"],
      a: fanOut("each", () => ["x", "y"]),
      b: commandTargets("each", "b2"),
      b2: END,
      each: END,
    });
  expect((await run(graph, {}).result).state.log).toEqual(["a", "b", "b2", "x", "y", "of b"]);
});

test("deferred tasks survive a crash and a resume [E15]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const hold = createDeferred();
  const graph = defineGraph({ name: "crash", state: Log, interrupts: { go: z.boolean() } })
    .nodes({
      a: createLogNode("a"),
      b: createLogNode("b"),
      b2: async (_state, { interrupt }) => {
        await hold.promise;
        await interrupt("go");
        return { log: ["b2"] };
      },
      each: inputNode(z.object({ at: z.date() }), (_state, { input }) => ({ log: [`each ${input.at.getTime()}`] }), {
        defer: true,
      }),
      z: createDeferredNode(createLogNode("z")),
    })
    .edges({
      [START]: ["a", "b"],
      a: ["z", "b2"],
      b: fanOut("each", () => [{ at: new Date(7) }]),
      b2: END,
      each: END,
      z: END,
    });
  ignoreResult(run(graph, { world, store, thread: "t" }).result);
  await world.waitUntilIdle();
  store.crash();
  hold.resolve();
  const peer = store.peer();
  expect((await resume(graph, { world, store: peer, thread: "t" }).result).status).toBe("waiting");
  const { state } = await resume(graph, { world, store: peer, thread: "t", answers: { go: true } }).result;
  expect(state.log).toEqual(["a", "b", "b2", "z", "each 7"]);
});

test("a control state without deferred tasks has no field for them", async () => {
  const store = memoryStore();
  const graph = defineGraph({ name: "plain", state: Log })
    .nodes({ a: createLogNode("a"), z: createDeferredNode(createLogNode("z")) })
    .edges({ [START]: "a", a: "z", z: END });
  await run(graph, { store, thread: "t" }).result;
  for (const { control } of await store.history("t", { limit: 9 })) expect(control).not.toContain("held");
});
