/** The outline of a graph has every edge that the engine can take and no other. */
import process from "node:process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AnyStateMachine, type AnyStateNode, createMachine, initialTransition, setup, transition } from "xstate";
import { getPlan, type Plan } from "../../src/compile/plan.ts";
import { commandTargets, durableMachine, END, type Graph, isStatewrightError, join, START } from "../../src/index.ts";
import { describeGraph, type Outline, type OutlineEdge, toMermaid } from "../../src/inspect.ts";
import type { RouteIntent } from "../../src/run/session/returns.ts";
import { reduceSuperstep } from "../../src/run/superstep/superstep.ts";
import { createShape, each, either, some } from "../inspect/defects.ts";
import {
  anyDescriptions,
  type EdgeDescription,
  type GraphDescription,
  generateSoundDescriptions,
} from "../inspect/random-graphs.ts";
import { readMermaid } from "../support/read-mermaid.ts";

/** Number of random graphs; more with STATEWRIGHT_WHOLE=1. */
const many = process.env["STATEWRIGHT_WHOLE"] === "1" ? 300 : 60;

test("the edges of outline and Mermaid text are those that the engine takes, for random graphs [E23]", async () => {
  let graphs = 0;
  const property = fc.asyncProperty(fc.oneof(generateSoundDescriptions(3), anyDescriptions), async (description) => {
    const graph = compiled(description);
    fc.pre(graph !== undefined);
    graphs += 1;
    const taken = takenEdges(getPlan(graph as Graph));
    const outline = describeGraph(graph as Graph);
    expect(outline.edges.map(({ from, to }) => `${from} → ${to}`).toSorted()).toEqual(taken);
    const { edges } = await readMermaid(toMermaid(graph as Graph));
    const named = (name: string): string => ({ start: START as string, done: END as string })[name] ?? name;
    expect(edges.map(({ from, to }) => `${named(from)} → ${named(to)}`).toSorted()).toEqual(taken);
  });
  await fc.assert(property, { numRuns: many });
  expect(graphs).toBe(many);
});

describe("outline of a durable machine", () => {
  const machine = setup({ guards: { cheap: () => true } }).createMachine({
    id: "order",
    initial: "paying",
    on: { CANCEL: ".cancelled" },
    states: {
      paying: {
        initial: "asking",
        on: { AGAIN: ".asking", LATER: "#order.waiting" },
        onDone: "sending",
        states: {
          asking: {
            on: { PAY: [{ guard: "cheap", target: "charging" }, { target: "approving" }, { target: "paid" }] },
          },
          approving: {
            after: { 60000: "asking" },
            on: { OK: "charging", CANCEL: { guard: "cheap", target: "asking" } },
          },
          charging: { on: { PAID: "paid", CANCEL: {}, LATER: { actions: [] } } },
          paid: { type: "final" },
        },
      },
      waiting: { always: { guard: "cheap", target: "paying.charging" }, on: { CANCEL: "waiting" } },
      sending: {
        type: "parallel",
        onDone: "done",
        states: {
          parcel: { initial: "open", states: { open: { on: { SENT: "sent" } }, sent: { type: "final" } } },
          bill: { initial: "open", states: { open: { on: { SENT: "sent" } }, sent: { type: "final" } } },
        },
      },
      cancelled: { type: "final" },
      done: { type: "final" },
    },
  });

  test("the outline of a durable machine has every possible transition with its events, and no other [E23]", () => {
    const edges = listAllEdges(describeGraph(durableMachine(machine, { version: 1 })));
    expect(edges.map(({ id, kind, label }) => `${id}${label === undefined ? ` (${kind})` : `: ${label}`}`)).toEqual([
      "__start__ -> paying (to)",
      "cancelled -> __end__ (to)",
      "done -> __end__ (to)",
      "paying -> cancelled: CANCEL",
      "sending -> cancelled: CANCEL",
      "paying -> waiting: LATER",
      "paying -> sending: done",
      "waiting -> waiting: CANCEL",
      "waiting -> paying.charging: always [cheap]",
      "sending -> done: done",
      "paying.__start__ -> paying.asking (to)",
      "paying.paid -> paying.__end__ (to)",
      "paying.asking -> paying.asking: AGAIN",
      "paying.approving -> paying.asking: AGAIN, CANCEL [cheap], after 60000 ms",
      "paying.charging -> paying.asking: AGAIN",
      "paying.asking -> paying.charging: PAY [cheap]",
      "paying.asking -> paying.approving: PAY",
      "paying.approving -> paying.charging: OK",
      "paying.charging -> paying.paid: PAID",
      "sending.__start__ -> sending.parcel (to)",
      "sending.__start__ -> sending.bill (to)",
      "sending.parcel -> sending.__end__ (join)",
      "sending.bill -> sending.__end__ (join)",
      "sending.parcel.__start__ -> sending.parcel.open (to)",
      "sending.parcel.sent -> sending.parcel.__end__ (to)",
      "sending.parcel.open -> sending.parcel.sent: SENT",
      "sending.bill.__start__ -> sending.bill.open (to)",
      "sending.bill.sent -> sending.bill.__end__ (to)",
      "sending.bill.open -> sending.bill.sent: SENT",
    ]);
  });

  test("the outline of random durable machines has the transitions that XState takes [E23]", () => {
    const seen = { taken: 0, exact: 0 };
    const property = fc.property(generateMachine(2), (config) => {
      const drawn = createMachine({ ...config, id: "m" } as never);
      const { taken, visited } = exploreTransitions(drawn);
      const edges = listAllEdges(describeGraph(durableMachine(drawn, { version: 1 }))).filter(
        ({ kind }) => kind === "event",
      );
      const shown = edges.flatMap(({ id, label = "" }) => label.split(", ").map((event) => `${event}: ${id}`));
      expect([...taken].filter((each) => !shown.includes(each))).toEqual([]);
      seen.taken += taken.size;
      // States and state combinations that no run reaches cannot be observed.
      if (visited.size < listStates(config) || JSON.stringify(config).includes("parallel")) return;
      expect(shown.toSorted()).toEqual([...taken].toSorted());
      seen.exact += taken.size;
    });
    fc.assert(property, { numRuns: 300 });
    expect(seen.taken).toBeGreaterThan(500);
    expect(seen.exact).toBeGreaterThan(100);
  });

  test("a transition that reenters its own parent state leads to the start of that state", () => {
    const nested = setup({}).createMachine({
      id: "m",
      initial: "a",
      states: { a: { id: "a", initial: "b", states: { b: { on: { OUT: { target: "#a", reenter: true } } } } } },
    });
    expect(listAllEdges(describeGraph(durableMachine(nested, { version: 1 }))).map(({ id }) => id)).toEqual([
      "__start__ -> a",
      "a.__start__ -> a.b",
      "a.b -> a.__start__",
    ]);
  });

  test("a durable machine without states is outlined as one state", () => {
    const outline = describeGraph(durableMachine(setup({}).createMachine({ id: "alone" }), { version: 1 }));
    expect(outline.nodes.map(({ id }) => id)).toEqual([START, "alone"]);
    expect(outline.edges.map(({ id }) => id)).toEqual(["__start__ -> alone"]);
  });
});

function listAllEdges({ nodes, edges }: Outline): readonly OutlineEdge[] {
  return [...edges, ...nodes.flatMap(({ inside }) => (inside === undefined ? [] : listAllEdges(inside)))];
}

interface StateDescription {
  readonly id: string;
  readonly type?: "parallel";
  readonly initial?: string;
  readonly states?: Readonly<Record<string, StateDescription>>;
  readonly on: Readonly<Record<string, string>>;
}

/** Random nested states with transitions between any of them. */
function generateMachine(depth: number): fc.Arbitrary<StateDescription> {
  interface Tree {
    readonly parallel: boolean;
    readonly children: readonly Tree[];
    readonly on: readonly (readonly [string, number])[];
  }
  const events = fc.array(fc.tuple(fc.constantFrom("A", "B", "C"), fc.nat()), { maxLength: 3 });
  const tree = (levels: number): fc.Arbitrary<Tree> =>
    fc.record({
      parallel: fc.boolean(),
      children:
        levels === 0
          ? fc.constant([])
          : fc.array(tree(levels - 1), { minLength: levels === depth ? 1 : 0, maxLength: 3 }),
      on: events,
    });
  const ids = ({ children }: Tree, id: string): readonly string[] => [
    ...(id === "s" ? [] : [id]),
    ...children.flatMap((child, index) => ids(child, `${id}${index}`)),
  ];
  return tree(depth).map((root) => {
    const all = ids(root, "s");
    const draw = ({ parallel, children, on }: Tree, id: string): StateDescription => ({
      id,
      on: Object.fromEntries(on.map(([event, target]) => [event, `#${all[target % all.length]}`])),
      ...(children.length === 0
        ? {}
        : {
            states: Object.fromEntries(children.map((child, index) => [`${id}${index}`, draw(child, `${id}${index}`)])),
          }),
      ...(children.length > 0 && parallel ? { type: "parallel" } : {}),
      ...(children.length > 0 && !parallel ? { initial: `${id}0` } : {}),
    });
    return draw(root, "s");
  });
}

function listStates({ states = {} }: StateDescription): number {
  return 1 + Object.values(states).reduce((sum, state) => sum + listStates(state), 0);
}

/** Transitions of XState for every event in every reachable state, in the form of the outline. */
function exploreTransitions(machine: AnyStateMachine): {
  readonly taken: ReadonlySet<string>;
  readonly visited: ReadonlySet<string>;
} {
  const getId = ({ path }: AnyStateNode): string => path.join(".");
  const taken = new Set<string>();
  const visited = new Set<string>();
  const [first] = initialTransition(machine);
  const open = new Map([[JSON.stringify(first.value), first]]);
  // The map grows during the iteration.
  for (const snapshot of open.values()) {
    const active: readonly AnyStateNode[] = snapshot._nodes;
    for (const state of active) visited.add(getId(state));
    for (const type of ["A", "B", "C"]) {
      for (const { source, target } of machine.getTransitionData(snapshot, { type })) {
        for (const to of (target ?? []) as readonly AnyStateNode[]) {
          const apart = active.filter((state) => isWithin(state, source) && isApart(state, source, to));
          const outermost = apart.filter((state) => !apart.some((other) => other !== state && isWithin(state, other)));
          for (const from of outermost) {
            const again = isWithin(from, to) && Object.keys(to.states).length > 0;
            taken.add(`${type}: ${getId(from)} -> ${[...to.path, ...(again ? [START] : [])].join(".")}`);
          }
        }
      }
      const [next] = transition(machine, snapshot, { type });
      if (!open.has(JSON.stringify(next.value))) open.set(JSON.stringify(next.value), next);
    }
  }
  return { taken, visited };
}

/**
 * Whether the outline may show a transition from `source` at an inner state: a state in the same region that does not
 * contain the target.
 */
function isApart(state: AnyStateNode, source: AnyStateNode, to: AnyStateNode): boolean {
  if (!isWithin(to, source)) return state === source;
  if (isWithin(to, state)) return Object.keys(state.states).length === 0;
  const shared = state.path.findIndex((key, index) => to.path[index] !== key);
  let meeting = state;
  while (meeting.path.length > Math.max(shared, 0) && meeting.parent !== undefined) meeting = meeting.parent;
  return (
    meeting.type !== "parallel" || meeting === to || !isWithin(to, meeting) || to.path.length === meeting.path.length
  );
}

function isWithin(state: AnyStateNode, outer: AnyStateNode): boolean {
  return outer.path.every((key, index) => state.path[index] === key);
}

function compiled(description: GraphDescription): Graph | undefined {
  try {
    return createShape(
      Object.fromEntries(Object.entries(description).map(([name, edge]) => [name, declared(edge)])),
    ) as Graph;
  } catch (error) {
    if (isStatewrightError(error, "invalid_graph")) return undefined;
    throw error;
  }
}

function declared(edge: EdgeDescription): unknown {
  switch (edge.kind) {
    case "to":
      return edge.targets;
    case "route":
      return either(...edge.targets);
    case "some":
      return some(...edge.targets);
    case "commandTargets":
      return commandTargets(...edge.targets);
    case "fanOut":
      return each(edge.target, edge.otherwise);
    case "join":
      return join(edge.target);
  }
}

/** Next nodes after each node, for every choice of its edge, as the engine takes them; END when no node runs next. */
function takenEdges(plan: Plan): readonly string[] {
  const taken = [START, ...plan.nodes.keys()].flatMap((source) =>
    listChoices(plan, source).flatMap(({ plan: chosen, leads, always }) =>
      [...next(chosen, source, leads), ...always].map((target) => `${source} → ${target}`),
    ),
  );
  return [...new Set(taken)].toSorted();
}

interface Choice {
  readonly plan: Plan;
  readonly leads: readonly RouteIntent[];
  /** Targets next to other nodes: END starts no node. */
  readonly always: readonly string[];
}

function listChoices(plan: Plan, source: string): readonly Choice[] {
  const edge = plan.graph.edges.get(source);
  if (edge === undefined) return [];
  const createChoice = (answer: unknown): Choice => {
    const made = { choose: () => answer, select: () => answer };
    const edges = new Map([...plan.graph.edges, [source, { ...edge, ...made }]]) as typeof plan.graph.edges;
    return { plan: { ...plan, graph: { ...plan.graph, edges } }, leads: [], always: [] };
  };
  switch (edge.kind) {
    case "route":
      return edge.targets.map(createChoice);
    case "fanOut":
      return [createChoice([0]), createChoice([])];
    case "commandTargets": {
      const leads = edge.targets.map((target): readonly RouteIntent[] =>
        plan.nodes.get(target)?.logic.takesInput === true
          ? [{ kind: "send", target, input: 0 }]
          : [{ kind: "goto", target }],
      );
      return [[], ...leads].map((each) => ({ plan, leads: each, always: [] }));
    }
    default:
      return [{ plan, leads: [], always: edge.targets.filter((target) => target === END) }];
  }
}

/** All other sources of the join have completed. */
function next(plan: Plan, source: string, routes: readonly RouteIntent[]): readonly string[] {
  const finished = [{ task: { id: "0:0", node: source }, outcome: { writes: [], routes } }];
  try {
    const mine = plan.graph.edges.get(source)?.kind === "join" ? plan.graph.edges.get(source)?.targets : [];
    const joins = Object.fromEntries([...plan.joins].filter(([target]) => mine?.includes(target)));
    const { tasks } = reduceSuperstep(plan, 1, { state: {}, joins }, { results: finished });
    return tasks.length === 0 ? [END] : tasks.map(({ node }) => node);
  } catch (error) {
    if (isStatewrightError(error, "empty_fan_out")) return [];
    throw error;
  }
}
