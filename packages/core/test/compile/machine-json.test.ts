/** The JSON machine of a graph equals the compiled machine for XState and for the xstate/graph tools. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AnyEventObject, type AnyMachineSnapshot, type AnyStateMachine, createMachine } from "xstate";
import { getAdjacencyMap, getShortestPaths } from "xstate/graph";
import * as z from "zod";
import { serializeMachine } from "../../src/compile/machine-json.ts";
import { getToolCallMachine } from "../../src/compile/tool-call-machine.ts";
import {
  commandTargets,
  defineGraph,
  defineState,
  durableMachine,
  END,
  fanOut,
  type Graph,
  inputNode,
  join,
  route,
  START,
} from "../../src/index.ts";
import { toMachineJson } from "../../src/inspect.ts";
import { createDescribedGraph, generateSoundDescriptions } from "../inspect/random-graphs.ts";
import { getFailure } from "../support/failure.ts";
import { listSchemaErrors } from "../support/xstate-schema.ts";

const returnNothing = () => undefined;

const sequential = defineGraph({ name: "shop.line:v2", state: defineState({ n: z.number().default(0) }) })
  .nodes({ one: returnNothing, two: returnNothing, ask: returnNothing })
  .edges({
    [START]: "one",
    one: route(["two", END], () => END),
    two: "ask",
    ask: commandTargets("one", "two"),
  } as never) as Graph;

const parallel = defineGraph({ name: "fan", state: defineState({ items: z.array(z.string()).default([]) }) })
  .nodes({ plan: returnNothing, each: inputNode(z.string(), returnNothing), check: returnNothing, meet: returnNothing })
  .edges({
    [START]: ["plan", "check"],
    plan: fanOut("each", (state) => state.items, { otherwise: "meet" }),
    each: join("meet"),
    check: join("meet"),
    meet: END,
  }) as Graph;

/** Target sets that a superstep of the graph may lead to: each target alone, and the targets of one edge together. */
function listCommits(graph: Graph): readonly AnyEventObject[] {
  const sets = [...graph.edges.values()].map(({ targets }) => targets.filter((target) => target !== END));
  const alone = [...graph.nodes.keys()].map((node) => [node]);
  const all = [[], ...alone, ...sets.filter((set) => set.length > 1)];
  return [...new Map(all.map((to) => [to.join(), { type: "step.commit", to }])).values()];
}

/** Possible events of the machine in its current state; a superstep ends when none of its nodes executes. */
function listEvents(graph: Graph): (snapshot: AnyMachineSnapshot) => AnyEventObject[] {
  const commits = listCommits(graph);
  return (snapshot) => {
    const activeStates = snapshot._nodes.map((state) => state.path.join("."));
    const executing = [...graph.nodes.keys()].filter((node) => activeStates.includes(`${node}.executing`));
    return [
      ...executing.flatMap((node) => [
        { type: `xstate.done.actor.${node}` },
        { type: "task.interrupted", node },
        { type: "task.failed", node },
      ]),
      ...(executing.length === 0 ? [...commits, { type: "run.resumed" }] : []),
    ];
  };
}

const callEvents = (): AnyEventObject[] => getToolCallMachine().events.map((type: string) => ({ type }));

type Events = (snapshot: AnyMachineSnapshot) => AnyEventObject[];

/** Every reachable state of the machine, with the target of each event. */
function walkMachine(machine: AnyStateMachine, events: Events): object {
  const map = getAdjacencyMap(machine, { events: events as never, limit: 50_000 });
  return Object.fromEntries(
    Object.entries(map).map(([key, { state, transitions }]) => [
      key,
      {
        status: state.status,
        tags: [...state.tags].sort(),
        to: Object.fromEntries(
          Object.entries(transitions as Transitions).map(([event, next]) => [event, next.state.value]),
        ),
      },
    ]),
  );
}

type Transitions = Readonly<Record<string, { readonly state: AnyMachineSnapshot }>>;

function listStates(state: AnyStateMachine["root"]): readonly AnyStateMachine["root"][] {
  return [state, ...Object.values(state.states).flatMap(listStates)];
}

function readBack(machine: AnyStateMachine, json: unknown): AnyStateMachine {
  return createMachine(JSON.parse(JSON.stringify(json))).provide(machine.implementations as never) as AnyStateMachine;
}

const machines: readonly (readonly [string, AnyStateMachine, Events, number])[] = [
  ["a sequential graph", sequential.machine, listEvents(sequential), 12],
  ["a parallel graph", parallel.machine, listEvents(parallel), 40],
  ["a tool call", getToolCallMachine(), callEvents, 16],
];

describe.each(machines)("machine JSON of %s", (_name, machine, events, size) => {
  test("the machine JSON satisfies the XState machine schema [E51]", () => {
    expect(listSchemaErrors(serializeMachine(machine))).toEqual([]);
  });

  test("a machine read back from JSON takes the same transitions on every path [E51]", () => {
    const expected = walkMachine(machine, events);
    expect(Object.keys(expected).length).toBeGreaterThanOrEqual(size);
    expect(walkMachine(readBack(machine, serializeMachine(machine)), events)).toEqual(expected);
    expect(walkMachine(readBack(machine, machine.config), events)).toEqual(expected);
  });

  test("a machine runs under xstate/graph: shortest paths reach every state, and a path reaches the end [E51]", () => {
    const paths = getShortestPaths(machine, { events: events as never, limit: 50_000 });
    const entered = new Set(paths.flatMap(({ state }) => state._nodes.map(({ id }) => id)));
    const named = listStates(machine.root).map(({ id }) => id);
    expect(named.filter((id) => !entered.has(id))).toEqual([]);
    expect(paths.some(({ state }) => state.status === "done")).toBe(true);
  });
});

test("random graphs exported as JSON are read back as the same machines [E51]", () => {
  let shapes = 0;
  fc.assert(
    fc.property(generateSoundDescriptions(2), (description) => {
      const graph = createDescribedGraph(description, () => 0);
      fc.pre(graph.nodes.size <= 7);
      const json = toMachineJson(graph);
      expect(listSchemaErrors(json)).toEqual([]);
      const back = readBack(graph.machine, json);
      expect(serializeMachine(back)).toEqual(json);
      if (graph.machine.root.type === "parallel") shapes += 1;
      const walk = keepCommitEvents(listEvents(graph));
      expect(walkMachine(back, walk)).toEqual(walkMachine(graph.machine, walk));
    }),
    { numRuns: 100, seed: 51 },
  );
  expect(shapes).toBeGreaterThan(20);
});

/**
 * Sets of regions that take an event together, without failures and interrupts: all sets of nodes would be too many
 * states.
 */
function keepCommitEvents(events: Events): Events {
  return (snapshot) => events(snapshot).filter(({ type }) => type === "step.commit" || type.startsWith("xstate.done"));
}

test("machine JSON that violates the XState schema is reported", () => {
  const json = toMachineJson(sequential);
  expect(listSchemaErrors({ ...json, type: "circle" })).not.toEqual([]);
  expect(listSchemaErrors({ ...json, states: { start: { id: "start", key: "start", type: "atomic" } } })).not.toEqual(
    [],
  );
  expect(listSchemaErrors(sequential.machine.config)).not.toEqual([]);
});

test("toMachineJson refuses a durable machine, which is its own source", async () => {
  const machine = createMachine({ id: "hand", initial: "a", states: { a: { type: "final" } } });
  const error = await getFailure(
    () => toMachineJson(durableMachine(machine, { version: 1 }) as Graph),
    "invalid_option",
  );
  expect(error.message).toContain('the user-written machine "hand"');
});
