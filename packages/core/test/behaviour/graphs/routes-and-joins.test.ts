import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  goto,
  join,
  memoryStore,
  route,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";

const Log = defineState({ log: channel.list(z.string()), turns: z.number().default(0) });
const createLogNode = (name: string) => () => ({ log: [name] });

describe("routes", () => {
  test("a route leads to the target that its function selects from the state [E14]", async () => {
    const graph = defineGraph({ name: "routed", state: Log })
      .nodes({ a: (state) => ({ turns: state.turns + 1 }), b: createLogNode("b") })
      .edges({ [START]: "a", a: route(["a", "b"], (state) => (state.turns < 3 ? "a" : "b")), b: END });
    expect((await run(graph, {}).result).state).toEqual({ turns: 3, log: ["b"] });
  });

  test("a route declared with many may select several targets, also in a graph without other parallel edges [E14]", async () => {
    const routed = (many: boolean) =>
      defineGraph({ name: "routed", state: Log })
        .nodes({ a: createLogNode("a"), b: createLogNode("b"), c: createLogNode("c") })
        .edges({ [START]: "a", a: route(["b", "c", END], () => ["c", "b"], { many }), b: END, c: END });
    expect((await run(routed(true), {}).result).state.log).toEqual(["a", "b", "c"]);
    await expect(run(routed(false), {}).result).rejects.toThrow(
      /returned "c" and "b": expected one target.*many: true/,
    );
  });

  test("an undeclared target is a type error, and a run-time error that names node and target [E12]", async () => {
    const base = defineGraph({ name: "orders", state: Log }).nodes({
      review: createLogNode("review"),
      archive: createLogNode("archive"),
    });
    const typed = () => {
      // @ts-expect-error the route returns what it does not declare
      base.edges({ [START]: "review", review: route([END], () => "archive"), archive: END });
    };
    expect(typed).toThrow("invalid_graph");
    for (const [answer, said] of [
      ["archive", '"archive"'],
      ["toString", '"toString"'],
      [undefined, "undefined"],
      [["archive"], '"archive"'],
    ]) {
      const graph = base.edges({
        [START]: route(["review", "archive"], () => "review"),
        review: route([END], () => answer as never),
        archive: END,
      });
      const error = await getFailure(run(graph, {}).result, "dead_route");
      expect(error.place).toMatchObject({ graph: "orders", node: "review" });
      expect(error.message).toContain(`returned ${said as string}, which it does not declare`);
    }
  });

  test("a route that selects nothing, is async, or throws fails with the name of its node", async () => {
    const createInvalidRoute = (choose: () => unknown) =>
      defineGraph({ name: "wrong", state: Log })
        .nodes({ a: createLogNode("a") })
        .edges({ [START]: "a", a: route([END], choose as () => typeof END) });
    expect(
      (
        await getFailure(
          run(
            createInvalidRoute(() => []),
            {},
          ).result,
          "dead_route",
        )
      ).message,
    ).toContain("no target");
    const later = await getFailure(
      run(
        createInvalidRoute(() => Promise.reject(new Error("late"))),
        {},
      ).result,
      "invalid_update",
    );
    expect(later.message).toContain("asynchronous");
    const thrown = await getFailure(
      run(
        createInvalidRoute(() => {
          throw new RangeError("no way");
        }),
        {},
      ).result,
      "node_failed",
    );
    expect(thrown.cause).toMatchObject({ name: "RangeError", message: "no way" });
    expect(thrown.place).toMatchObject({ node: "a", graph: "wrong", step: 0 });
  });
});

describe("joins", () => {
  test("a join waits for all of its sources, whatever the length of their branches [E14]", async () => {
    const graph = defineGraph({ name: "joined", state: Log })
      .nodes({ a: createLogNode("a"), b: createLogNode("b"), b2: createLogNode("b2"), z: createLogNode("z") })
      .edges({ [START]: ["a", "b"], a: join("z"), b: "b2", b2: join("z"), z: END });
    expect((await run(graph, {}).result).state.log).toEqual(["a", "b", "b2", "z"]);
  });

  test("a join fires once per round, also inside a loop and in a later run of the thread [E15]", async () => {
    const graph = defineGraph({ name: "loop", state: Log })
      .nodes({ a: createLogNode("a"), b: createLogNode("b"), z: (state) => ({ log: ["z"], turns: state.turns + 1 }) })
      .edges({
        [START]: ["a", "b"],
        a: join("z"),
        b: join("z"),
        z: route(["a", "b", END], (state) => (state.turns % 3 === 0 ? END : ["a", "b"]), { many: true }),
      });
    const store = memoryStore();
    const first = await run(graph, { store, thread: "t" }).result;
    expect(first.state.log).toEqual(["a", "b", "z", "a", "b", "z", "a", "b", "z"]);
    const second = await run(graph, { store, thread: "t" }).result;
    expect(second.state.turns).toBe(6);
  });

  test("a branch that ends before its join fails the run", async () => {
    const waiting = defineGraph({ name: "half", state: Log })
      .nodes({ a: createLogNode("a"), b: createLogNode("b"), c: createLogNode("c"), z: createLogNode("z") })
      .edges({ [START]: ["a", "b"], a: join("z"), b: route(["c", END], () => END), c: join("z"), z: END });
    const error = await getFailure(run(waiting, {}).result, "dead_route");
    expect(error.message).toContain('still waits for "c"');
    expect(error.place).toMatchObject({ node: "z", graph: "half" });
  });
});

describe("edges", () => {
  test("an edge may have one target, several targets, or END [E14]", async () => {
    const graph = defineGraph({ name: "plain", state: Log })
      .nodes({ a: createLogNode("a"), c: createLogNode("c"), b: createLogNode("b"), z: createLogNode("z") })
      .edges({ [START]: "a", a: ["b", "c"], b: "z", c: "z", z: END });
    const { state, steps } = await run(graph, {}).result;
    expect(state.log).toEqual(["a", "c", "b", "z"]);
    expect(steps).toBe(3);
  });

  test("a node runs once in a superstep when several single edges lead to it [E15]", async () => {
    const graph = defineGraph({ name: "once", state: Log })
      .nodes({ a: createLogNode("a"), b: createLogNode("b"), c: createLogNode("c"), z: createLogNode("z") })
      .edges({
        [START]: ["a", "b", "c"],
        a: "z",
        b: ["z", "z"],
        c: route(["z", END], () => ["z", "z"], { many: true }),
        z: END,
      });
    expect((await run(graph, {}).result).state.log).toEqual(["a", "b", "c", "z"]);
  });

  test("a goto replaces the edges of its node for this step and applies its update [E14]", async () => {
    const graph = defineGraph({ name: "commands", state: Log })
      .nodes({
        a: () => goto("c", { log: ["a"] }),
        b: createLogNode("b"),
        c: () => [{ log: ["c"] }, goto("d")],
        d: createLogNode("d"),
      })
      .edges({ [START]: "a", a: commandTargets("b", "c"), b: END, c: commandTargets("b", "d"), d: END });
    expect((await run(graph, {}).result).state.log).toEqual(["a", "c", "d"]);
  });

  test("two goto commands in one node return are refused", async () => {
    const graph = defineGraph({ name: "commands", state: Log })
      .nodes({ a: () => [goto("b"), goto("c")], b: createLogNode("b"), c: createLogNode("c") })
      .edges({ [START]: "a", a: commandTargets("b", "c"), b: END, c: END });
    await expect(run(graph, {}).result).rejects.toThrow(/returned several goto commands, to "b" and "c"/);
  });

  test("a command to an undeclared target is refused, and a node that returns no command ends its branch", async () => {
    const base = defineGraph({ name: "commands", state: Log }).nodes({
      a: (state) => (state.turns > 0 ? (goto("c") as never) : undefined),
      b: createLogNode("b"),
      c: createLogNode("c"),
    });
    const graph = base.edges({ [START]: ["a", "c"], a: commandTargets("b") as never, b: END, c: END });
    expect((await run(graph, {}).result).state.log).toEqual(["c"]);
    const error = await getFailure(run(graph, { input: { turns: 1 } }).result, "dead_route");
    expect(error.message).toContain('the node "a" in graph "commands" routed to "c"');
  });

  test("a graph whose first edge leads to END is done, with and without a store", async () => {
    const graph = defineGraph({ name: "short", state: Log })
      .nodes({ a: createLogNode("a") })
      .edges({ [START]: route(["a", END], () => END), a: END });
    expect(await run(graph, { input: { turns: 2 } }).result).toMatchObject({
      status: "done",
      steps: 0,
      state: { turns: 2 },
    });
    const store = memoryStore();
    expect(await run(graph, { store, thread: "t" }).result).toMatchObject({ status: "done" });
    expect((await store.thread("t"))?.status).toBe("done");
  });
});
