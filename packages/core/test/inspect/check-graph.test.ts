import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  checkGraph,
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  join,
  run,
  START,
} from "../../src/index.ts";
import { getFailure } from "../support/failure.ts";
import { type AnyGraph, call, createShape, createWritingNode, defects, each, either, withMachine } from "./defects.ts";
import {
  anyDescriptions,
  compileDescription,
  createDescribedGraph,
  generateSoundDescriptions,
} from "./random-graphs.ts";
import { soundGraphs } from "./sound-graphs.ts";

describe("graph with a defect", () => {
  test.each(defects)("checkGraph reports $name with the shortest path [E57]", ({ graph, limit = 100_000, finds }) => {
    const { violations } = checkGraph(graph, { limit });
    expect(violations.map(({ rule, path }) => ({ rule, path: path.join(" → ") }))).toEqual(
      finds.map(({ rule, path }) => ({ rule, path })),
    );
    violations.forEach(({ message }, index) => {
      expect(message).toContain(finds[index]?.says);
    });
  });

  test("a violation found by checkGraph fails a run with the same text", async () => {
    const graph = createShape({ [START]: ["a", "b"], a: join("z"), b: either(END, "c"), c: join("z"), z: END });
    const error = await getFailure(run(graph, {}).result, "dead_route");
    const [violation] = checkGraph(graph).violations;
    expect(error.message).toContain(violation?.message.split(" (")[0]);
  });
});

test("checkGraph reports a machine whose failures cannot be resumed", () => {
  const works = fromPromise(() => Promise.resolve());
  const machine = setup({ actors: { a: works } }).createMachine({
    id: "line",
    initial: "start",
    states: {
      start: { on: { "step.commit": "a" } },
      a: {
        initial: "executing",
        states: {
          executing: {
            invoke: { id: "a", src: "a", onDone: "committing" },
            on: { "task.interrupted": "interrupted", "task.failed": "failed" },
          },
          committing: {},
          interrupted: { tags: ["waiting"], on: { "run.resumed": "committing" } },
          failed: { tags: ["failed"] },
        },
        on: { "step.commit": "done" },
      },
      done: { type: "final" },
    },
  });
  const graph = createShape({ [START]: "a", a: END });
  const { violations } = checkGraph(withMachine(graph, machine));
  expect(violations.map(({ rule, path }) => [rule, ...path])).toEqual([
    ["machine_mismatch", "start", "a"],
    ["machine_mismatch", "start", "a"],
  ]);
  expect(violations[0]?.message).toContain(
    'after task.interrupted and run.resumed the machine is in {"a":"committing"}',
  );
  expect(violations[1]?.message).toContain('{"a":"failed"} does not accept "run.resumed"');
});

test("checkGraph refuses a durable machine", async () => {
  const machine = setup({}).createMachine({ id: "drawn", initial: "a", states: { a: {} } });
  const error = await getFailure(() => checkGraph(durableMachine(machine, { version: 1 })), "invalid_option");
  expect(error.message).toContain('the user-written machine "drawn"');
});

describe("sound graph", () => {
  test.each(soundGraphs)("checkGraph reports no false violation: %s [E57]", (_name, graph) => {
    expect(checkGraph(graph).violations).toEqual([]);
  });

  test("checkGraph reports no lost write for a channel with one writer or a reducer", () => {
    const graph = createShape(
      { [START]: ["a", "b"], a: "c", b: "c", c: END },
      { a: createWritingNode("log", "verdict"), b: createWritingNode("log"), c: createWritingNode("verdict") },
    );
    expect(checkGraph(graph)).toEqual({ violations: [], unknownWrites: [] });
  });

  test("checkGraph lists parallel nodes with undeclared writes, whose conflicts appear only in a run", async () => {
    const graph = (claims: object) =>
      defineGraph({ name: "rivals", state: defineState({ n: z.number().default(0) }) })
        .nodes({
          a: { run: () => ({ n: 1 }), ...claims },
          b: { run: () => ({ n: 2 }), ...claims },
          c: () => ({ n: 3 }),
        })
        .edges({ [START]: ["a", "b"], a: "c", b: "c", c: END });
    expect(checkGraph(graph({}))).toEqual({ violations: [], unknownWrites: ["a", "b"] });
    expect(checkGraph(graph({ writes: ["n"] }))).toMatchObject({
      violations: [{ rule: "lost_write" }],
      unknownWrites: [],
    });
    await getFailure(run(graph({}), {}).result, "channel_conflict");
    const inside = createShape(
      { [START]: "call", call: END },
      { call: call(createShape({ [START]: each("T", END), T: END })) },
    );
    expect(checkGraph(inside).unknownWrites).toEqual(["call.T"]);
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("checkGraph refuses the limit %d", async (limit) => {
    await getFailure(() => checkGraph(createShape({ [START]: "a", a: END }), { limit }), "invalid_option");
  });

  test("checkGraph reports no violation for random sound graphs", () => {
    fc.assert(
      fc.property(generateSoundDescriptions(3), (description) => {
        const { violations } = checkGraph(createDescribedGraph(description, () => 0));
        // A walk that exceeds its limit proves nothing and reports the limit.
        fc.pre(!violations.some(({ rule }) => rule === "unchecked"));
        expect(violations).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});

test("checkGraph reports the same violations for a graph nested in another graph, with the path to it [E57]", () => {
  let caught = 0;
  const property = fc.property(anyDescriptions, (description) => {
    const inner = compileDescription(() => createDescribedGraph(description, () => 0));
    fc.pre(inner !== undefined);
    if (inner === undefined) return;
    const outer = createShape({ [START]: "far", far: "in", in: END }, { in: call(inner as AnyGraph) });
    const toInnerStep = (step: string): string =>
      step.startsWith("(") || step === "done" ? step : step.replaceAll(/[^ +]+/g, (node) => `in.${node}`);
    const { violations } = checkGraph(inner);
    caught += violations.length;
    expect(checkGraph(outer).violations.map(({ rule, path }) => ({ rule, path }))).toEqual(
      violations.map(({ rule, path }) => ({ rule, path: ["start", "far", "in", ...path.slice(1).map(toInnerStep)] })),
    );
  });
  fc.assert(property, { numRuns: 100 });
  expect(caught).toBeGreaterThan(20);
});

describe("size of the state-space exploration", () => {
  const names = Array.from({ length: 28 }, (_, index) => `n${index}`);
  test.each<[string, () => Graph]>([
    [
      "a line",
      () =>
        createShape({
          [START]: "n0",
          ...Object.fromEntries(names.map((name, index) => [name, names[index + 1] ?? END])),
        }),
    ],
    [
      "a fan-out",
      () => createShape({ [START]: names, ...Object.fromEntries(names.map((name) => [name, join("z")])), z: END }),
    ],
    [
      "four loops side by side",
      () =>
        createShape({
          [START]: ["n0", "n7", "n14", "n21"],
          ...Object.fromEntries(
            names.map((name, index) => [
              name,
              index % 7 === 6
                ? join("z")
                : index % 7 === 5
                  ? either(names[index - 1]!, names[index + 1]!)
                  : names[index + 1],
            ]),
          ),
          z: END,
        }),
    ],
    [
      "routes everywhere",
      () =>
        createShape({
          [START]: "n0",
          ...Object.fromEntries(
            names.map((name, index) => [name, either(names[(index * 7) % 28]!, names[(index + 1) % 28]!, END)]),
          ),
        }),
    ],
  ])("%s of about thirty nodes is checked whole within few control states", (_name, graph) => {
    expect(checkGraph(graph(), { limit: 5_000 }).violations).toEqual([]);
  });
});
