/**
 * Explores the control states of a graph: every reachable set of pending tasks and partial joins, for all choices.
 * The engine's own superstep function computes the next state; only the choices are generated.
 */
import { isStatewrightError, type StatewrightError } from "../../base/errors.ts";
import type { Control, DeferredTask } from "../../checkpoint/checkpoint.ts";
import { getEdge, type Plan } from "../../compile/plan.ts";
import { END, START } from "../../define/edge.ts";
import type { EdgeRecord } from "../../define/graph.ts";
import type { RouteIntent } from "../../run/session/returns.ts";
import type { FinishedTask, StepResult } from "../../run/session/step-result.ts";
import { reduceSuperstep } from "../../run/superstep/superstep.ts";
import { listDeclaredWrites } from "./declared-writes.ts";

/** A node with tasks to run. `many` means two or more tasks, and is tracked only if the count matters. */
export interface PendingNode {
  readonly node: string;
  readonly many: boolean;
}

/** Control state between two supersteps; without pending nodes the run is finished. */
export interface ControlState {
  /** In order of declaration; START alone for the initial state. */
  readonly pending: readonly PendingNode[];
  readonly joins: Control["joins"];
  /** Deferred tasks, without their sources and inputs. */
  readonly deferred: readonly DeferredTask[];
  /** Predecessor on a shortest path. */
  readonly previous: ControlState | undefined;
  readonly next: ReadonlySet<ControlState>;
  /** True if some choice leads to a refused superstep. */
  readonly refused: boolean;
}

/** A superstep refused by the engine, with the error of the failed run. */
export interface RefusedStep {
  readonly at: ControlState;
  readonly error: StatewrightError;
}

/** Result of the exploration: states and refused supersteps by distance from START, without duplicate refusals. */
export interface Exploration {
  readonly states: readonly ControlState[];
  readonly refusedSteps: readonly RefusedStep[];
  /** First unexpanded state, if the limit was reached. */
  readonly truncatedAt: ControlState | undefined;
  /** Returns the control state of a checkpoint, if explored. */
  readonly find: (control: ControlPosition) => ControlState | undefined;
}

/** Control part of a checkpoint. */
export type ControlPosition = Pick<StepResult, "tasks" | "joins" | "deferred">;

/** Explores breadth first, at most `limit` supersteps. */
export function exploreStates(plan: Plan, limit: number): Exploration {
  const counted = findCountedNodes(plan);
  const choices = new Map<string, unknown>();
  const choosingPlan = createChoosingPlan(plan, choices);
  const first: ExploredState = {
    pending: [{ node: START, many: false }],
    joins: {},
    deferred: [],
    previous: undefined,
    next: new Set(),
    refused: false,
  };
  const states: ExploredState[] = [first];
  const known = new Map<string, ExploredState>();
  const refusals = new Map<string, RefusedStep>();
  const createResult = (cutAt?: ControlState): Exploration => ({
    states,
    refusedSteps: [...refusals.values()],
    truncatedAt: cutAt,
    find: (control) => known.get(toStateKey(toControlState(plan, counted, first, control))),
  });
  let stepCount = 0;
  // The loop appends to the list.
  for (const state of states) {
    const outcomes = listOutcomes(plan, state.pending, counted, limit - stepCount);
    if (outcomes === undefined) return createResult(state);
    for (const outcome of outcomes) {
      stepCount += 1;
      const result = runSuperstep(choosingPlan, choices, state, outcome);
      if (isStatewrightError(result)) {
        state.refused = true;
        if (!refusals.has(result.message)) refusals.set(result.message, { at: state, error: result });
        continue;
      }
      const target = toControlState(plan, counted, state, result);
      const key = toStateKey(target);
      const next = known.get(key) ?? target;
      state.next.add(next);
      if (next !== target) continue;
      known.set(key, target);
      states.push(target);
    }
  }
  return createResult();
}

/**
 * Returns the nodes for which one task and several tasks differ: several tasks have several successors, and write a
 * channel twice.
 */
function findCountedNodes({ graph, nodes }: Plan): ReadonlySet<string> {
  const tasks = [...nodes.values()].filter(({ logic }) => logic.takesInput);
  const differ = tasks.filter(
    (node) => graph.edges.get(node.name)?.kind === "commandTargets" || listDeclaredWrites(graph, node).length > 0,
  );
  return new Set(differ.map(({ name }) => name));
}

interface ExploredState extends ControlState {
  readonly next: Set<ControlState>;
  refused: boolean;
}

/** Outcome of all tasks of a node: the routes of each task, and the choice of the edge function. */
interface NodeEnding {
  readonly node: string;
  readonly routes: readonly (readonly RouteIntent[])[];
  readonly choice: unknown;
}

/**
 * Returns a plan with generated choices in place of edge functions, and without input schemas, which would reject
 * generated inputs.
 */
function createChoosingPlan(plan: Plan, choices: ReadonlyMap<string, unknown>): Plan {
  const nodes = new Map([...plan.nodes].map(([name, node]) => [name, { ...node, input: undefined }]));
  const edges = new Map(
    [...plan.graph.edges].map(([source, edge]): [string, EdgeRecord] => {
      const getChoice = (): unknown => choices.get(source);
      if (edge.kind === "route") return [source, { ...edge, choose: getChoice }];
      return [source, edge.kind === "fanOut" ? { ...edge, select: getChoice } : edge];
    }),
  );
  return { ...plan, nodes, graph: { ...plan.graph, edges } };
}

function runSuperstep(
  plan: Plan,
  choices: Map<string, unknown>,
  { joins, deferred }: ControlState,
  endings: readonly NodeEnding[],
): StepResult | StatewrightError {
  const finished: FinishedTask[] = [];
  for (const { node, routes, choice } of endings) {
    choices.set(node, choice);
    for (const each of routes)
      finished.push({ task: { id: `0:${finished.length}`, node }, outcome: { writes: [], routes: each } });
  }
  try {
    return reduceSuperstep(plan, 1, { state: {}, joins, deferred }, { results: finished });
  } catch (error) {
    if (isStatewrightError(error, "dead_route") || isStatewrightError(error, "empty_fan_out")) return error;
    throw error;
  }
}

function toControlState(
  plan: Plan,
  counted: ReadonlySet<string>,
  previous: ControlState,
  { tasks, joins, deferred = [] }: ControlPosition,
): ExploredState {
  const getIndex = (node: string): number => plan.nodes.get(node)?.index ?? 0;
  const compareByIndex = (first: PendingNode, second: PendingNode): number =>
    getIndex(first.node) - getIndex(second.node);
  return {
    pending: countTasks(tasks, counted).toSorted(compareByIndex),
    joins,
    deferred: countTasks(deferred, counted)
      .toSorted(compareByIndex)
      .flatMap((each) => toDeferredTasks(plan, each)),
    previous,
    next: new Set(),
    refused: false,
  };
}

function countTasks(tasks: readonly { readonly node: string }[], counted: ReadonlySet<string>): readonly PendingNode[] {
  const count = new Map<string, number>();
  for (const { node } of tasks) count.set(node, (count.get(node) ?? 0) + 1);
  return [...count].map(([node, times]) => ({ node, many: times > 1 && counted.has(node) }));
}

function toDeferredTasks(plan: Plan, { node, many }: PendingNode): readonly DeferredTask[] {
  const task: DeferredTask = {
    node,
    from: [],
    ...(plan.nodes.get(node)?.logic.takesInput === true ? { sent: { input: undefined } } : {}),
  };
  return many ? [task, task] : [task];
}

function toStateKey({ pending, joins, deferred }: ControlState): string {
  const partialJoins = Object.entries(joins).map(([target, sources]) => `${target}:${sources.toSorted().join()}`);
  return [
    pending.map(({ node, many }) => (many ? `${node}*` : node)).join(),
    partialJoins.toSorted().join(" "),
    deferred.map(({ node }) => node).join(),
  ].join("|");
}

/** Returns all outcomes of a superstep, or undefined if more than `limit`. */
function listOutcomes(
  plan: Plan,
  pending: readonly PendingNode[],
  counted: ReadonlySet<string>,
  limit: number,
): Iterable<readonly NodeEnding[]> | undefined {
  if (pending.length === 0) return [];
  const endings: (readonly NodeEnding[])[] = [];
  let count = 1;
  for (const each of pending) {
    const nodeEndings: NodeEnding[] = [];
    for (const ending of generateEndings(plan, each, counted)) {
      nodeEndings.push(ending);
      if (count * nodeEndings.length > limit) return undefined;
    }
    count *= nodeEndings.length;
    endings.push(nodeEndings);
  }
  return combineEndings(endings);
}

function* generateEndings(
  plan: Plan,
  { node, many }: PendingNode,
  counted: ReadonlySet<string>,
): Generator<NodeEnding> {
  const edge = getEdge(plan, node);
  const noRoutes = [[]];
  switch (edge.kind) {
    case "to":
    case "join":
      yield { node, routes: noRoutes, choice: undefined };
      return;
    case "route": {
      const targets = [...new Set(edge.targets)];
      if (targets.includes(END)) yield { node, routes: noRoutes, choice: END };
      const others = targets.filter((target) => target !== END);
      for (const answer of edge.many ? generateSubsets(others) : others.map((target) => [target]))
        if (answer.length > 0) yield { node, routes: noRoutes, choice: answer };
      return;
    }
    case "fanOut":
      for (const count of counted.has(edge.target) ? [0, 1, 2] : [0, 1])
        yield { node, routes: noRoutes, choice: Array.from({ length: count }) };
      return;
    case "commandTargets": {
      const targets = [...new Set(edge.targets)].filter((target) => target !== END);
      const inputNodes = targets.filter((target) => plan.nodes.get(target)?.logic.takesInput === true);
      const plainNodes = targets.filter((target) => !inputNodes.includes(target));
      const gotos = many ? generateSubsets(plainNodes) : [[], ...plainNodes.map((target) => [target])];
      for (const chosen of gotos)
        for (const sent of generateSends(inputNodes, counted))
          yield { node, routes: toRoutes(chosen, sent), choice: undefined };
    }
  }
}

/** Returns a single task per goto, because a task goes to one node; the first task issues all sends. */
function toRoutes(gotos: readonly string[], sent: readonly RouteIntent[]): readonly (readonly RouteIntent[])[] {
  const routes = gotos.map((target): RouteIntent[] => [{ kind: "goto", target }]);
  return [[...(routes[0] ?? []), ...sent], ...routes.slice(1)];
}

/** Yields zero, one or two sends to each input node; two stand for many. */
function* generateSends(targets: readonly string[], counted: ReadonlySet<string>): Generator<readonly RouteIntent[]> {
  const [target, ...others] = targets;
  if (target === undefined) {
    yield [];
    return;
  }
  const route: RouteIntent = { kind: "send", target, input: undefined };
  for (const more of generateSends(others, counted)) {
    yield more;
    yield [route, ...more];
    if (counted.has(target)) yield [route, route, ...more];
  }
}

function* generateSubsets(items: readonly string[]): Generator<readonly string[]> {
  const [item, ...others] = items;
  if (item === undefined) {
    yield [];
    return;
  }
  for (const subset of generateSubsets(others)) {
    yield subset;
    yield [item, ...subset];
  }
}

function* combineEndings(lists: readonly (readonly NodeEnding[])[]): Generator<readonly NodeEnding[]> {
  const [list, ...others] = lists;
  if (list === undefined) {
    yield [];
    return;
  }
  for (const rest of combineEndings(others)) for (const item of list) yield [item, ...rest];
}
