import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createInitialState } from "../../src/checkpoint/codec/saved-state.ts";
import { getPlan } from "../../src/compile/plan.ts";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  join,
  overwrite,
  route,
  START,
} from "../../src/index.ts";
import { readReturn, type State } from "../../src/run/session/returns.ts";
import { planFirstTasks, reduceSuperstep } from "../../src/run/superstep/superstep.ts";
import { applyDelta } from "../../src/store.ts";

const S = defineState({
  last: z.number().default(0),
  log: channel.list(z.string()),
  sum: channel.reduce(z.number().default(0), (sum, by: number) => sum + by),
  by: channel.record(z.number()),
  flash: channel.ephemeral(z.string()),
});
const graph = defineGraph({ name: "step", state: S })
  .nodes({
    a: () => undefined,
    b: () => undefined,
    c: () => undefined,
    each: inputNode(z.number(), () => undefined),
    z: () => undefined,
  })
  .edges({
    [START]: ["c", "a", "b"],
    a: join("z"),
    b: join("z"),
    c: fanOut("each", (state) => state.log.map((_, index) => index), { otherwise: "z" }),
    each: "z",
    z: route(["a", END], () => END),
  });
const plan = getPlan(graph);
const fresh: State = Object.freeze(createInitialState(S.channels));

function finished(node: string, returned: unknown, index = 0, state = fresh) {
  return { task: { id: `1:${index}`, node }, outcome: readReturn(plan, node, state, returned) };
}

test("the first tasks are the targets of the edge from START, in the order of declaration", () => {
  expect(planFirstTasks(plan, 0, { state: fresh, context: undefined })).toEqual({
    tasks: [
      { id: "0:0", node: "a", from: [START] },
      { id: "0:1", node: "b", from: [START] },
      { id: "0:2", node: "c", from: [START] },
    ],
    inputs: [],
    joins: {},
  });
});

test("superstep is pure: equal input gives equal output and no input is mutated", () => {
  const write = fc.oneof(
    fc.record({ log: fc.array(fc.string()) }),
    fc.record({ sum: fc.integer() }),
    fc.record({ by: fc.dictionary(fc.string(), fc.integer()) }),
    fc.array(fc.record({ sum: fc.nat(), log: fc.array(fc.string()) }), { maxLength: 3 }),
    fc.constant(undefined),
  );
  fc.assert(
    fc.property(fc.array(write, { minLength: 3, maxLength: 3 }), fc.constantFrom({}, { z: ["a"] }), (writes, joins) => {
      const results = ["a", "b", "c"].map((node, index) => finished(node, writes[index], index));
      const before = structuredClone({ state: fresh, joins, outcomes: results.map(({ outcome }) => outcome) });
      const first = reduceSuperstep(plan, 2, { state: fresh, joins }, { results });
      expect(reduceSuperstep(plan, 2, { state: fresh, joins }, { results })).toEqual(first);
      expect({ state: fresh, joins, outcomes: results.map(({ outcome }) => outcome) }).toEqual(before);
      for (const [oneChannel, delta] of Object.entries(first.deltas))
        expect(applyDelta(fresh[oneChannel], delta)).toEqual(first.state[oneChannel]);
      expect(Object.isFrozen(first.state)).toBe(true);
    }),
  );
});

describe("joins", () => {
  test("a join records its arrived sources and fires when all have arrived", () => {
    const one = reduceSuperstep(
      plan,
      1,
      { state: fresh, joins: {} },
      { results: [finished("a", undefined), finished("c", { log: ["x"] }, 1)] },
    );
    expect(one.joins).toEqual({ z: ["a"] });
    expect(one.tasks.map(({ node }) => node)).toEqual(["each"]);
    const two = reduceSuperstep(
      plan,
      2,
      { state: one.state, joins: one.joins },
      { results: [finished("b", undefined)] },
    );
    expect(two.joins).toEqual({});
    expect(two.tasks).toEqual([{ id: "2:0", node: "z", from: ["a", "b"] }]);
  });

  test("a source that arrives twice at a join counts once", () => {
    const one = reduceSuperstep(
      plan,
      1,
      { state: fresh, joins: { z: ["a"] } },
      { results: [finished("a", undefined), finished("c", { log: ["x"] }, 1)] },
    );
    expect(one.joins).toEqual({ z: ["a"] });
  });
});

test("each send makes a task with its input, after the tasks without input", () => {
  const result = reduceSuperstep(
    plan,
    5,
    { state: fresh, joins: { z: ["a"] } },
    { results: [finished("b", undefined), finished("c", { log: ["x", "y"] }, 1)] },
  );
  expect(result.tasks).toEqual([
    { id: "5:0", node: "z", from: ["a", "b"] },
    { id: "5:1", node: "each", input: 0, from: ["c"] },
    { id: "5:2", node: "each", input: 1, from: ["c"] },
  ]);
  expect(result.inputs).toEqual([0, 1]);
});

test("an overwrite is the base for every other write of the step, in any position", () => {
  for (const order of [0, 1, 2]) {
    const returns: unknown[] = [{ log: ["one"] }, { log: ["two"] }];
    returns.splice(order, 0, { log: overwrite(["base"]) });
    const results = ["a", "b", "c"].map((node, index) => finished(node, returns[index], index, fresh));
    const state = { ...fresh, log: ["old"] };
    expect(reduceSuperstep(plan, 1, { state, joins: {} }, { results }).state["log"]).toEqual(["base", "one", "two"]);
  }
});

test("an overwrite works for every kind of reduced channel", () => {
  const state = { ...fresh, sum: 100, by: { old: 1 } };
  const result = reduceSuperstep(
    plan,
    1,
    { state, joins: {} },
    {
      results: [
        finished("a", [{ sum: 1 }, { by: { x: 1 } }]),
        finished("b", { sum: overwrite(10), by: overwrite({ y: 2 }) }, 1),
      ],
    },
  );
  expect(result.state).toMatchObject({ sum: 11, by: { y: 2, x: 1 } });
});

test("an ephemeral value lasts one superstep", () => {
  const one = reduceSuperstep(
    plan,
    1,
    { state: fresh, joins: {} },
    { results: [finished("c", { flash: "now", log: ["x"] })] },
  );
  expect(one.state["flash"]).toBe("now");
  const two = reduceSuperstep(plan, 2, { state: one.state, joins: {} }, { results: [finished("z", undefined)] });
  expect(two.state["flash"]).toBeUndefined();
  expect(two.deltas).toEqual({ flash: { kind: "clear" } });
});

test("later items of one node return see the writes of earlier items", () => {
  const { state } = reduceSuperstep(
    plan,
    1,
    { state: fresh, joins: {} },
    { results: [finished("z", [{ last: 1 }, { last: 2 }, undefined])] },
  );
  expect(state["last"]).toBe(2);
});
