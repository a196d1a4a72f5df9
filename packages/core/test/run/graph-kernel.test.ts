/** The part kernel moves only the active parts of a graph's machine and agrees with the kernel of the whole machine. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AnyEventObject } from "xstate";
import * as z from "zod";
import { createCommittingValue, createExecutingValue } from "../../src/compile/compile-machine.ts";
import {
  checkGraph,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  type Graph,
  getHistory,
  goto,
  inputNode,
  isStatewrightError,
  join,
  memoryStore,
  resume,
  route,
  run,
  START,
  subgraph,
} from "../../src/index.ts";
import { createGraphKernel, getKernel } from "../../src/run/kernel/get-kernel.ts";
import {
  createKernel,
  createTableKernel,
  type Effect,
  type Kernel,
  type Snapshot,
} from "../../src/run/kernel/kernel.ts";
import {
  anyDescriptions,
  compileDescription,
  createDescribedGraph,
  generateSoundDescriptions,
} from "../inspect/random-graphs.ts";
import { collectEvents, getFailure } from "../support/failure.ts";

function createWholeKernel(graph: Graph): Kernel {
  return createTableKernel(graph.machine, (event) => JSON.stringify(event));
}

function listKernels(graph: Graph): readonly [whole: Kernel, parts: Kernel] {
  const within = createWholeKernel(graph);
  return [createWholeKernel(graph), createGraphKernel(graph, () => within)];
}

/** Result of a step: next state, effects and evaluated guards, or the refusal. */
function describeStep(kernel: Kernel, from: Snapshot, event: AnyEventObject): unknown {
  try {
    const [next, effects, { guards }] = kernel.step(from, event);
    // An error that no state handles stops all active effects, in the order of their start in this kernel.
    const observed = next.status === "error" ? effects.toSorted(compareIds) : effects;
    return { ...toComparable(next), effects: observed, guards };
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    const { accepts = [], ...details } = error.details as { readonly accepts?: readonly string[] };
    return { code: error.code, details, accepts: accepts.toSorted() };
  }
}

function compareIds(one: Effect, other: Effect): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

function toComparable({ value, context, status, tags, output, error }: Snapshot): object {
  return { value, context, status, tags: [...tags].toSorted(), output, error };
}

/** Possible events of a graph with these nodes, accepted or refused; `more` are further sets of next nodes. */
function eventsFor(nodes: readonly string[], more: readonly (readonly string[])[]): readonly AnyEventObject[] {
  const error = new Error("broken");
  return [
    { type: "step.commit", to: [] },
    { type: "step.commit", to: ["nobody"] },
    ...more.map((to) => ({ type: "step.commit", to })),
    ...[...nodes, "nobody", "driver", "node"].flatMap((node) => [
      { type: "step.commit", to: [node] },
      { type: "task.interrupted", node },
      { type: "task.failed", node },
      { type: `xstate.done.actor.${node}` },
      { type: `xstate.done.actor.${node}.commit` },
      { type: `xstate.error.actor.${node}`, error },
    ]),
    { type: "task.failed" },
    { type: "step.commit" },
    { type: "run.resumed" },
    { type: "something.else" },
  ];
}

/**
 * Sends every event to both kernels in each state of a random path; returns the numbers of accepted and refused
 * events.
 */
function compareOn(
  graph: Graph,
  events: readonly AnyEventObject[],
  steps: number,
  chance: () => number,
): { readonly taken: number; readonly refused: number } {
  const [whole, parts] = listKernels(graph);
  const counts = { taken: 0, refused: 0 };
  let [at, graphSnapshot] = [whole.enter()[0], parts.enter()[0]];
  for (let step = 0; step < steps; step++) {
    expect(toComparable(graphSnapshot)).toEqual(toComparable(at));
    expect([...parts.accepts(graphSnapshot)].toSorted()).toEqual([...whole.accepts(at)].toSorted());
    const takes: AnyEventObject[] = [];
    for (const event of events) {
      const expected = describeStep(whole, at, event);
      expect(describeStep(parts, graphSnapshot, event)).toEqual(expected);
      // Repeats the event with the memoized transition.
      expect(describeStep(parts, graphSnapshot, event)).toEqual(expected);
      if ("value" in (expected as object)) takes.push(event);
    }
    counts.taken += takes.length;
    counts.refused += events.length - takes.length;
    // An error that no state handles ends the machine, so the path is short.
    const lively = takes.filter(({ type }) => !type.startsWith("xstate.error.") || chance() % 50 === 0);
    const event = lively[chance() % Math.max(1, lively.length)];
    if (event === undefined) break;
    [at, graphSnapshot] = [whole.step(at, event)[0], parts.step(graphSnapshot, event)[0]];
    // A process that takes over the run starts from the saved value alone.
    if (chance() % 4 === 0 && at.status === "active")
      [at, graphSnapshot] = [whole.restore(at.value), parts.restore(JSON.parse(JSON.stringify(graphSnapshot.value)))];
  }
  return counts;
}

const isWhole = process.env["STATEWRIGHT_WHOLE"] === "1";
const way = fc.infiniteStream(fc.nat());

function createChance(stream: Iterator<number>): () => number {
  return () => Number(stream.next().value);
}

describe("part kernel equals whole kernel", () => {
  test.each([
    ["sound graphs", generateSoundDescriptions(2), isWhole ? 40 : 24],
    ["any graphs", anyDescriptions, 120],
  ])(
    "part kernel and whole kernel agree in states, effects, guards and refusals, for %s",
    (_name, descriptions, numRuns) => {
      const counts = { taken: 0, refused: 0, parallel: 0, sequential: 0 };
      fc.assert(
        fc.property(descriptions, way, (description, stream) => {
          const graph = compileDescription(() => createDescribedGraph(description, () => 0));
          if (graph === undefined) return;
          const chance = createChance(stream);
          const nodes = [...graph.nodes.keys()];
          const sets = Array.from({ length: 6 }, () => nodes.filter(() => chance() % 3 === 0));
          const { taken, refused } = compareOn(graph, eventsFor(nodes, sets), 8, chance);
          counts.taken += taken;
          counts.refused += refused;
          counts[graph.machine.root.type === "parallel" ? "parallel" : "sequential"] += 1;
        }),
        { numRuns, seed: 30 },
      );
      for (const count of Object.values(counts)) expect(count).toBeGreaterThan(3);
    },
  );

  test("part kernel and whole kernel agree on restored values of the graph, of a smaller graph and of no graph", () => {
    const counts = { restored: 0, refused: 0 };
    fc.assert(
      fc.property(anyDescriptions, way, (description, stream) => {
        const graph = compileDescription(() => createDescribedGraph(description, () => 0));
        if (graph === undefined) return;
        const chance = createChance(stream);
        const [whole, parts] = listKernels(graph);
        const nodes = [...graph.nodes.keys()];
        const some = nodes.filter(() => chance() % 2 === 0);
        for (const value of [
          createCommittingValue(graph, some.length === 0 ? [START] : some),
          createExecutingValue(graph, some),
          Object.fromEntries(some.map((node) => [node, "executing"])),
          Object.fromEntries(
            ["driver", ...nodes].toReversed().map((name) => [name, name === "driver" ? "done" : "idle"]),
          ),
          nodes[0] ?? "",
          { [nodes[0] ?? ""]: "nowhere" },
          { nobody: "executing" },
          "nowhere",
          "toString",
          { driver: "toString" },
        ]) {
          const [expected, given] = [whole, parts].map((kernel) => {
            try {
              return toComparable(kernel.restore(value));
            } catch (error) {
              return String(error);
            }
          });
          expect(given).toEqual(expected);
          counts[typeof expected === "string" ? "refused" : "restored"] += 1;
        }
      }),
      { numRuns: 60, seed: 31 },
    );
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(50);
  });

  test("part kernel and whole kernel agree for a graph wider than the cache, and for node names of every kind", () => {
    const names = Array.from({ length: 230 }, (_, index) => `n${index}`);
    for (const nodes of [
      names,
      ["node", "not-node", "other", "region", "witness", "commit", "executing", "idle", "x"],
    ]) {
      const graph = defineGraph({ name: "wide", state: defineState({}) })
        .nodes(Object.fromEntries(["first", ...nodes].map((name) => [name, () => undefined])))
        .edges({ [START]: "first", first: nodes, ...Object.fromEntries(nodes.map((name) => [name, END])) }) as Graph;
      const [, kernel] = listKernels(graph);
      const plain = createKernel(graph.machine);
      let [at, graphSnapshot] = [plain.enter()[0], kernel.enter()[0]];
      for (const event of [
        { type: "step.commit", to: ["first"] },
        { type: "xstate.done.actor.first" },
        { type: "step.commit", to: nodes },
        ...nodes.slice(0, 5).map((node) => ({ type: `xstate.done.actor.${node}` })),
        { type: "task.interrupted", node: nodes[5] },
        { type: "task.failed", node: nodes[6] },
        { type: "run.resumed" },
      ]) {
        expect(describeStep(kernel, graphSnapshot, event)).toEqual(describeStep(plain, at, event));
        [at, graphSnapshot] = [plain.step(at, event)[0], kernel.step(graphSnapshot, event)[0]];
      }
    }
  });
});

test("a kernel stays correct after more node combinations than its cache holds", () => {
  const names = Array.from({ length: 150 }, (_, index) => `n${index}`);
  const graph = defineGraph({ name: "wide", state: defineState({}) })
    .nodes(Object.fromEntries(names.map((name) => [name, () => undefined])))
    .edges({ [START]: names, ...Object.fromEntries(names.map((name) => [name, END])) }) as Graph;
  const kernel = createGraphKernel(graph, () => {
    throw new Error("the whole machine was made");
  });
  const startedSnapshot = kernel.step(kernel.enter()[0], { type: "step.commit", to: ["n0"] })[0];
  let at = startedSnapshot;
  for (let round = 0; round < 1_500; round++) {
    const [one, other] = [`n${round % 150}`, `n${(round * 7 + 1) % 149}`];
    for (const node of Object.entries(at.value as object).filter(
      ([name, leaf]) => name !== "driver" && leaf !== "idle",
    ))
      at = kernel.step(at, { type: `xstate.done.actor.${node[0]}` })[0];
    at = kernel.step(at, { type: "step.commit", to: [one, other] })[0];
    expect(at.value).toEqual(createExecutingValue(graph, [one, other]));
  }
  expect(kernel.step(startedSnapshot, { type: "xstate.done.actor.n0" })[0].value).toEqual(
    createCommittingValue(graph, ["n0"]),
  );
});

describe("whole machine of a graph", () => {
  const returnNothing = (): undefined => undefined;

  /** Graph that throws when its machine is compiled. */
  function refuseMachine<Given extends object>(graph: Given): Given {
    return Object.defineProperties(
      {},
      {
        ...Object.getOwnPropertyDescriptors(graph),
        machine: {
          enumerable: true,
          get: () => {
            throw new Error("the whole machine was made");
          },
        },
      },
    ) as Given;
  }

  const State = defineState({ n: z.number().default(0), items: z.array(z.string()).default(["a", "b"]) });

  const line = refuseMachine(
    defineGraph({ name: "line", state: State, interrupts: { ok: z.boolean() } })
      .nodes({
        one: returnNothing,
        ask: async (_state, { interrupt }) => ({ n: (await interrupt("ok")) ? 1 : 2 }),
        two: (state) => goto(state.n > 0 ? "three" : "one"),
        three: returnNothing,
      })
      .edges({
        [START]: "one",
        one: "ask",
        ask: "two",
        two: commandTargets("one", "three"),
        three: route(["one", END], () => END),
      }),
  );

  const inner = refuseMachine(
    defineGraph({ name: "inner", state: State })
      .nodes({ a: returnNothing })
      .edges({ [START]: "a", a: END }),
  );

  const fan = refuseMachine(
    defineGraph({ name: "fan", state: State, interrupts: { ok: z.boolean() } })
      .nodes({
        plan: returnNothing,
        each: inputNode(z.string(), returnNothing),
        ask: async (_state, { interrupt }) => {
          await interrupt("ok");
        },
        below: subgraph(inner, { input: () => ({}), output: () => undefined }),
        fails: (state) => {
          if (state.n === 0) throw new Error("not yet");
        },
        meet: { run: returnNothing, defer: true },
      })
      .edges({
        [START]: "plan",
        plan: ["ask", "below", "fails"],
        ask: fanOut("each", (state) => state.items, { otherwise: "meet" }),
        each: join("meet"),
        below: "meet",
        fails: "meet",
        meet: END,
      }),
  );

  test("the whole machine of a graph is not created by a run, its events, interrupts, failures and forks", async () => {
    const store = memoryStore();
    for (const [graph, thread] of [
      [line, "line"],
      [fan, "fan"],
    ] as const) {
      const first = run(graph as Graph, { store, thread, input: {} });
      const events = collectEvents(first);
      if (thread === "fan") await getFailure(first.result, "node_failed");
      else expect((await first.result).status).toBe("waiting");
      expect(events.some((event) => event.type === "transition.taken" && event.guards.length > 0)).toBe(true);
      for await (const { checkpointId } of getHistory(graph as Graph, { store, thread }))
        await fork(graph as Graph, { store, thread, at: checkpointId, name: `at-${checkpointId}` });
    }
    const done = await resume(line as Graph, { store, thread: "line", answers: { ok: true } }).result;
    expect(done.status).toBe("done");
  });

  test("the whole machine of a graph is created by checkGraph", () => {
    expect(() => checkGraph(line as Graph)).toThrow("the whole machine was made");
  });

  test("the whole machine of a graph is not created for an event that a part handles", () => {
    const kernel = getKernel(line as Graph);
    const [at] = kernel.step(kernel.enter()[0], { type: "step.commit", to: ["one"] });
    expect(at.value).toEqual({ one: "executing" });
    expect(() => kernel.step(at, { type: "run.resumed" })).toThrow("the whole machine was made");
  });
});
