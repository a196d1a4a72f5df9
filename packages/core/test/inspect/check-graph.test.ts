import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  checkGraph,
  defineGraph,
  defineState,
  durable,
  END,
  type Graph,
  gotos,
  isStatewrightError,
  join,
  memoryStore,
  resume,
  run,
  START,
} from "../../src/index.ts";
import { failureOf } from "../support/failure.ts";
import { defects, each, either, shape, some, withMachine } from "./defects.ts";
import { anyDrawings, type GraphDrawing, graphOf, type NodeBody, soundDrawings } from "./random-graphs.ts";

describe("a graph with a defect", () => {
  test.each(defects)("$name: it is found, by the shortest path", ({ graph, options, finds }) => {
    const { violations } = checkGraph(graph, options);
    expect(violations.map(({ rule, path }) => ({ rule, path: path.join(" → ") }))).toEqual(
      finds.map(({ rule, path }) => ({ rule, path })),
    );
    violations.forEach(({ message }, index) => {
      expect(message).toContain(finds[index]?.says);
    });
  });

  test("what is refused in a walk is refused in a run, in the same words", async () => {
    const graph = shape({ [START]: ["a", "b"], a: join("z"), b: either(END, "c"), c: join("z"), z: END });
    const error = await failureOf(run(graph, {}).result, "dead_route");
    const [violation] = checkGraph(graph).violations;
    expect(error.message).toContain(violation?.message.split(" (")[0]);
  });
});

test("a machine whose failures cannot be resumed is found", () => {
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
  const graph = shape({ [START]: "a", a: END });
  const { violations } = checkGraph(withMachine(graph, machine));
  expect(violations.map(({ rule, path }) => [rule, ...path])).toEqual([
    ["machine_differs", "start", "a"],
    ["machine_differs", "start", "a"],
  ]);
  expect(violations[0]?.message).toContain('after task.interrupted and run.resumed it stands in {"a":"committing"}');
  expect(violations[1]?.message).toContain('{"a":"failed"} does not accept "run.resumed"');
});

test("a machine drawn by hand is refused, not called sound", async () => {
  const machine = setup({}).createMachine({ id: "drawn", initial: "a", states: { a: {} } });
  const error = await failureOf(() => checkGraph(durable(machine, { version: 1 })), "invalid_option");
  expect(error.message).toContain('"drawn" is a machine drawn by hand');
});

describe("a sound graph", () => {
  test.each<[string, Graph]>([
    ["a line", shape({ [START]: "a", a: "b", b: END })],
    ["nothing to do", shape({ [START]: either("a", END), a: END })],
    ["a loop with a way out", shape({ [START]: "a", a: either("b", END), b: "a" })],
    [
      "a join in a loop",
      shape({ [START]: ["a", "b"], a: join("z"), b: join("z"), z: either("again", END), again: ["a", "b"] }),
    ],
    ["branches of different lengths", shape({ [START]: ["a", "b"], a: join("z"), b: "b2", b2: join("z"), z: END })],
    ["a fan-out that may be empty", shape({ [START]: each("T", "z"), T: "z", z: END })],
    [
      "a fan-out into a join",
      shape({ [START]: ["a", "b"], a: each("T", "c"), T: "c", c: join("z"), b: join("z"), z: END }),
    ],
    ["commands that lead on or end", shape({ [START]: "a", a: gotos("a", "b", "T"), b: END, T: gotos("a", "b") })],
    ["a route that chooses several", shape({ [START]: "a", a: some("b", "c", END), b: "d", c: "d", d: END })],
    [
      "a deferred node after branches that may end",
      shape(
        { [START]: ["a", "b"], a: "z", b: either("b2", END), b2: "z", z: END },
        { z: { defer: true, run: () => undefined } },
      ),
    ],
  ])("%s has no violations", (_name, graph) => {
    expect(checkGraph(graph).violations).toEqual([]);
  });

  test("a channel that one node writes, or that folds, loses nothing", () => {
    const graph = shape({ [START]: ["a", "b"], a: "c", b: "c", c: END });
    expect(checkGraph(graph, { writes: { a: ["log", "verdict"], b: ["log"], c: ["verdict"] } }).violations).toEqual([]);
  });

  test("without `writes` a conflict shows in the run only", async () => {
    const graph = defineGraph({ name: "rivals", state: defineState({ n: z.number().default(0) }) })
      .nodes({ a: () => ({ n: 1 }), b: () => ({ n: 2 }) })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    expect(checkGraph(graph).violations).toEqual([]);
    expect(checkGraph(graph, { writes: { a: ["n"], b: ["n"] } }).violations).toMatchObject([{ rule: "lost_write" }]);
    await failureOf(run(graph, {}).result, "channel_conflict");
    // @ts-expect-error a node that the graph does not have
    await failureOf(() => checkGraph(graph, { writes: { c: ["n"] } }), "invalid_option");
    // @ts-expect-error a channel that the state does not have
    await failureOf(() => checkGraph(graph, { writes: { a: ["m"] } }), "invalid_option");
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("a limit of %d is refused", async (limit) => {
    await failureOf(() => checkGraph(shape({ [START]: "a", a: END }), { limit }), "invalid_option");
  });

  test("any graph of sound parts has no violations", () => {
    fc.assert(
      fc.property(soundDrawings(3), (drawing) => {
        const { violations } = checkGraph(graphOf(drawing, () => 0));
        // A walk that is too wide proves nothing, and says so.
        fc.pre(!violations.some(({ rule }) => rule === "unchecked"));
        expect(violations).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});

describe("what is proven holds in runs", () => {
  test("a graph that is called clean comes to no dead end, and no run finds a shorter way than the path", async () => {
    const seen = { clean: 0, caught: 0 };
    const property = fc.asyncProperty(anyDrawings, fc.infiniteStream(fc.nat()), async (drawing, chance) => {
      const pick = (below: number): number => (chance.next().value as number) % below;
      const graph = compiled(drawing, pick);
      fc.pre(graph !== undefined);
      const { violations } = checkGraph(graph as Graph);
      seen[violations.length === 0 ? "clean" : "caught"] += 1;
      const end = await liveThrough(graph as Graph);
      if (end === undefined) return;
      const rule = end.code === "empty_sends" ? "empty_sends" : "dead_end";
      const shortest = Math.min(...violations.flatMap((each) => (each.rule === rule ? [each.path.length - 3] : [])));
      expect(end.step).toBeGreaterThanOrEqual(shortest);
    });
    await fc.assert(property, { numRuns: 250 });
    expect(seen.clean).toBeGreaterThan(20);
    expect(seen.caught).toBeGreaterThan(20);
  });
});

describe("the size of the walk", () => {
  const names = Array.from({ length: 28 }, (_, index) => `n${index}`);
  test.each<[string, () => Graph]>([
    [
      "a line",
      () =>
        shape({ [START]: "n0", ...Object.fromEntries(names.map((name, index) => [name, names[index + 1] ?? END])) }),
    ],
    [
      "a fan-out",
      () => shape({ [START]: names, ...Object.fromEntries(names.map((name) => [name, join("z")])), z: END }),
    ],
    [
      "four loops side by side",
      () =>
        shape({
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
        shape({
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

/** Nodes fail and ask by chance. */
function compiled(drawing: GraphDrawing, pick: (below: number) => number): Graph | undefined {
  const body: NodeBody = async ({ interrupt }) => {
    const chance = pick(12);
    if (chance === 0) throw new Error("bad luck");
    if (chance === 1) await (interrupt as unknown as (key: string) => Promise<unknown>)("ask");
  };
  try {
    return graphOf(drawing, pick, body);
  } catch (error) {
    if (isStatewrightError(error, "invalid_graph")) return undefined;
    throw error;
  }
}

/** Run a graph through failures and questions: where it was caught, or nothing when it finished or went on for long. */
async function liveThrough(graph: Graph): Promise<{ readonly code: string; readonly step: number } | undefined> {
  const options = { store: memoryStore(), thread: "t", maxSteps: 40 };
  let turn = run(graph, options);
  for (;;) {
    try {
      const end = await turn.result;
      if (end.status !== "waiting") {
        expect(end.status).toBe("done");
        return undefined;
      }
      const answers = Object.fromEntries(end.interrupts.map(({ id }) => [id, true]));
      turn = resume(graph, { ...options, answers } as never);
    } catch (error) {
      if (!isStatewrightError(error)) throw error;
      if (error.code === "step_limit") return undefined;
      if (error.code !== "node_failed") {
        expect(["dead_route", "empty_sends"]).toContain(error.code);
        return { code: error.code, step: error.place.step ?? -1 };
      }
      turn = resume(graph, options);
    }
  }
}
