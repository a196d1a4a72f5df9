/** Superstep: reduces task results into the next state and selects the next tasks. Pure: same input, same output. */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import type { Control, DeferredTask, Task } from "../../checkpoint/checkpoint.ts";
import { getEdge, type Plan } from "../../compile/plan.ts";
import { END, type FanOut, START } from "../../define/edge.ts";
import type { EdgeRecord } from "../../define/graph.ts";
import { reduceWrites, toExternalResult } from "../session/reduce-writes.ts";
import { createAsyncError, guardRead, readSend, type State, type Write } from "../session/returns.ts";
import type { FinishedTask, StepResult } from "../session/step-result.ts";

/** Control state carried over from the previous superstep. */
export interface CarriedControl extends Pick<Control, "joins" | "deferred"> {
  /** Context of the run, for routes and fan-outs; undefined where no edge function runs. */
  readonly context?: unknown;
  /** True when other tasks are still pending: joins may wait for them, and deferred tasks do. */
  readonly hasPendingTasks?: boolean;
}

type NextTasks = Pick<StepResult, "tasks" | "inputs" | "joins" | "deferred">;

/**
 * Reduces the results of a superstep in task order and selects the next tasks. `step` is the number of the new
 * checkpoint; `externalWrites` come from outside of the tasks and are reduced last.
 */
export function reduceSuperstep(
  plan: Plan,
  step: number,
  before: { readonly state: State } & CarriedControl,
  {
    results,
    externalWrites = [],
  }: { readonly results: readonly FinishedTask[]; readonly externalWrites?: readonly Write[] | undefined },
): StepResult {
  const allResults = externalWrites.length === 0 ? results : [...results, toExternalResult(externalWrites)];
  // Pending tasks still see the ephemeral values of the previous superstep.
  const { state, deltas } = reduceWrites(
    plan,
    before.state,
    allResults,
    before.hasPendingTasks === true ? [] : plan.ephemeral,
  );
  try {
    return { state, deltas, ...planNextTasks(plan, step, state, { before, results }) };
  } catch (error) {
    if (typeof error === "object" && error !== null) routeErrors.add(error);
    throw error;
  }
}

const routeErrors: WeakSet<object> = new WeakSet();

/** Returns true for an error of an edge or a join: the results of the superstep are valid and can be kept. */
export function isRouteError(error: unknown): boolean {
  return typeof error === "object" && error !== null && routeErrors.has(error);
}

/** Returns the tasks of the first superstep. */
export function planFirstTasks(
  plan: Plan,
  step: number,
  { state, context }: { readonly state: State; readonly context: unknown },
): NextTasks {
  return planNextTasks(plan, step, state, {
    before: { joins: {}, context },
    results: [{ task: { id: `${step}:0`, node: START }, outcome: { writes: [], routes: [] } }],
  });
}

/** Reduces the input of a run. Clears the ephemeral values of the previous superstep, as a superstep does. */
export function reduceInput(plan: Plan, state: State, writes: readonly Write[]): Pick<StepResult, "state" | "deltas"> {
  return reduceWrites(plan, state, [toExternalResult(writes)], plan.ephemeral);
}

/** Reduces task results into a state, in order, without selecting next tasks. */
export function reduceResults(
  plan: Plan,
  state: State,
  results: readonly FinishedTask[],
): Pick<StepResult, "state" | "deltas"> {
  return reduceWrites(plan, state, results, plan.ephemeral);
}

function planNextTasks(
  plan: Plan,
  step: number,
  state: State,
  { before, results }: { readonly before: CarriedControl; readonly results: readonly FinishedTask[] },
): NextTasks {
  const plain = new Map<string, Set<string>>();
  const sent: PendingSend[] = [];
  const arrived: Record<string, readonly string[]> = { ...before.joins };
  const next: NextWork = { plain, sent, arrived };
  let routedNodes: Set<string> | undefined;
  for (const { task, outcome } of results) {
    if (outcome.routes.length > 0) {
      for (const command of outcome.routes) {
        if (command.kind === "goto") addTarget(next, command.target, task.node);
        else sent.push({ target: command.target, input: command.input, from: task.node });
      }
      continue;
    }
    if (results.length > 1) {
      routedNodes ??= new Set();
      if (routedNodes.has(task.node)) continue;
      routedNodes.add(task.node);
    }
    followEdge(getEdge(plan, task.node), { plan, source: task.node, state, context: before.context }, next);
  }
  for (const [target, sources] of plan.joins) {
    if (!sources.every((source) => arrived[target]?.includes(source))) continue;
    delete arrived[target];
    for (const source of sources) addTarget(next, target, source);
  }
  const due = plan.deferred.size === 0 ? { plain, sent } : splitDeferred(plan, before, plain, sent);
  if (due.plain.size === 0 && due.sent.length === 0 && before.hasPendingTasks !== true) checkJoins(plan, arrived);
  return {
    ...toTasks(plan, step, due.plain, due.sent),
    joins: arrived,
    ...("deferred" in due ? { deferred: due.deferred } : {}),
  };
}

/** Work of the next superstep, collected from the results and edges of a superstep. */
interface NextWork {
  /** Nodes to run, each with its source nodes. */
  readonly plain: Map<string, Set<string>>;
  readonly sent: PendingSend[];
  readonly arrived: Record<string, readonly string[]>;
}

function addTarget({ plain }: NextWork, target: string, from: string): void {
  if (target !== END) plain.set(target, (plain.get(target) ?? new Set()).add(from));
}

interface PendingSend {
  readonly target: string;
  readonly input: unknown;
  readonly from: string;
}

interface DueTasks {
  readonly plain: ReadonlyMap<string, ReadonlySet<string>>;
  readonly sent: readonly PendingSend[];
  readonly deferred?: readonly DeferredTask[];
}

/** Holds deferred tasks back while other tasks run next; otherwise all deferred tasks run together. */
function splitDeferred(
  plan: Plan,
  { deferred: before = [], hasPendingTasks }: CarriedControl,
  plain: ReadonlyMap<string, ReadonlySet<string>>,
  sent: readonly PendingSend[],
): DueTasks {
  const deferredNodes = new Map(
    before.flatMap((each) => (each.sent === undefined ? [[each.node, new Set(each.from)]] : [])),
  );
  const deferredSends = before.flatMap(({ node, from, sent: deferredSend }) =>
    deferredSend === undefined ? [] : [{ target: node, input: deferredSend.input, from: from[0] ?? START }],
  );
  const dueNodes = new Map<string, ReadonlySet<string>>();
  for (const [node, from] of plain) {
    if (plan.deferred.has(node)) deferredNodes.set(node, new Set([...(deferredNodes.get(node) ?? []), ...from]));
    else dueNodes.set(node, from);
  }
  const dueSends = sent.filter(({ target }) => !plan.deferred.has(target));
  deferredSends.push(...sent.filter(({ target }) => plan.deferred.has(target)));
  if (dueNodes.size === 0 && dueSends.length === 0 && hasPendingTasks !== true)
    return { plain: deferredNodes, sent: deferredSends };
  if (deferredNodes.size === 0 && deferredSends.length === 0) return { plain: dueNodes, sent: dueSends };
  return {
    plain: dueNodes,
    sent: dueSends,
    deferred: [
      ...[...deferredNodes].map(([node, from]) => ({ node, from: [...from] })),
      ...deferredSends.map(({ target, input, from }) => ({ node: target, from: [from], sent: { input } })),
    ],
  };
}

/** Throws when no task runs next and a join is incomplete: its work would be lost silently. */
function checkJoins(plan: Plan, arrived: Control["joins"]): void {
  for (const [target, sources] of Object.entries(arrived)) {
    const missing = (plan.joins.get(target) ?? []).filter((source) => !sources.includes(source));
    throw new StatewrightError("dead_route", {
      what: `the join to "${target}" in graph "${plan.graph.name}" still waits for ${missing.map((source) => `"${source}"`).join(" and ")}, and no task is pending`,
      next: "Route every branch to the join, or route the others to END before it",
      place: { graph: plan.graph.name, node: target },
    });
  }
}

/** Start of an edge: the finished node, and the state that the edge reads. */
interface EdgeOrigin {
  readonly plan: Plan;
  readonly source: string;
  readonly state: State;
  readonly context: unknown;
}

function followEdge(edge: EdgeRecord, origin: EdgeOrigin, next: NextWork): void {
  const { source } = origin;
  switch (edge.kind) {
    case "to":
      for (const target of edge.targets) addTarget(next, target, source);
      return;
    case "commandTargets":
      return;
    case "join":
      for (const target of edge.targets) next.arrived[target] = [...new Set([...(next.arrived[target] ?? []), source])];
      return;
    case "route":
      for (const target of chooseTargets(edge, origin)) addTarget(next, target, source);
      return;
    case "fanOut":
      followSends(edge, origin, next);
  }
}

function chooseTargets(
  edge: Extract<EdgeRecord, { kind: "route" }>,
  { plan, source, state, context }: EdgeOrigin,
): readonly string[] {
  const answer = callChooser(() => edge.choose(state as never, context as never), "route", source, plan);
  return guardRead(plan, source, "route", { value: answer, read: () => readTargets(plan, edge, source, answer) });
}

function readTargets(
  plan: Plan,
  edge: Extract<EdgeRecord, { kind: "route" }>,
  source: string,
  answer: unknown,
): readonly string[] {
  if (answer instanceof Promise) throw createAsyncError(plan, source, "route", answer);
  const place = { graph: plan.graph.name, node: source };
  const targets: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
  for (const target of targets) {
    if (typeof target === "string" && edge.targets.includes(target)) continue;
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" returned ${describeValue(target)}, which it does not declare`,
      next:
        typeof target === "string"
          ? "Add it to the route's targets"
          : `Return one of its targets: ${edge.targets.map((known) => `"${known}"`).join(", ")}`,
      place,
    });
  }
  if (!edge.many && targets.length > 1 && new Set(targets.filter((target) => target !== END)).size > 1) {
    throw new StatewrightError("dead_route", {
      what: `the route after "${source}" in graph "${plan.graph.name}" returned ${targets.map((target) => `"${target}"`).join(" and ")}: expected one target`,
      next: "Use route([…], choose, { many: true }) to return several targets",
      place,
    });
  }
  if (targets.length > 0) return targets as readonly string[];
  throw new StatewrightError("dead_route", {
    what: `the route after "${source}" in graph "${plan.graph.name}" returned no target`,
    next: "Return END where the graph should finish",
    place,
  });
}

function followSends(edge: Extract<EdgeRecord, { kind: "fanOut" }>, origin: EdgeOrigin, next: NextWork): void {
  const { plan, source, state, context } = origin;
  const items = callChooser(() => edge.select(state as never, context as never), "fanOut", source, plan);
  guardRead(plan, source, "fanOut", { value: items, read: () => addSends(edge, origin, items, next) });
}

function addSends(
  edge: Extract<EdgeRecord, { kind: "fanOut" }>,
  { plan, source }: EdgeOrigin,
  items: unknown,
  next: NextWork,
): void {
  if (items instanceof Promise) throw createAsyncError(plan, source, "fanOut", items);
  if (!Array.isArray(items)) {
    throw new StatewrightError("invalid_update", {
      what: `the fanOut after "${source}" in graph "${plan.graph.name}": expected a list, got ${describeValue(items)}`,
      next: "Return a list with one input for each task",
      place: { graph: plan.graph.name, node: source },
    });
  }
  for (const item of items) {
    const { input } = readSend(plan, source, edge.target, item);
    next.sent.push({ target: edge.target, input, from: source });
  }
  if (items.length > 0) return;
  if (edge.otherwise !== undefined) {
    addTarget(next, edge.otherwise, source);
    return;
  }
  throw new StatewrightError("empty_fan_out", {
    what: `the fanOut after "${source}" in graph "${plan.graph.name}" selected nothing`,
    next: `Add the node for an empty list: fanOut("${edge.target}", …, { otherwise: … })`,
    place: { graph: plan.graph.name, node: source },
  });
}

function callChooser(
  choose: () => unknown,
  kind: FanOut<never, string, unknown>["kind"] | "route",
  source: string,
  plan: Plan,
): unknown {
  try {
    return choose();
  } catch (cause) {
    throw new StatewrightError("node_failed", {
      what: `the ${kind} after "${source}" in graph "${plan.graph.name}" threw: ${describeThrown(cause)}`,
      next: "Fix the function, which gets the state and the context",
      place: { graph: plan.graph.name, node: source },
      cause,
    });
  }
}

/** Sorts nodes by declaration order. */
function sortByDeclaration<Value>(
  plan: Plan,
  nodes: ReadonlyMap<string, Value>,
): readonly (readonly [string, Value])[] {
  if (nodes.size < 2) return [...nodes];
  const getIndex = (node: string): number => plan.nodes.get(node)?.index ?? 0;
  return [...nodes].sort(([left], [right]) => getIndex(left) - getIndex(right));
}

function toTasks(
  plan: Plan,
  step: number,
  plain: ReadonlyMap<string, ReadonlySet<string>>,
  sent: readonly PendingSend[],
): Pick<StepResult, "tasks" | "inputs"> {
  const tasks: Task[] = sortByDeclaration(plan, plain).map(([node, from], index) => ({
    id: `${step}:${index}`,
    node,
    from: [...from],
  }));
  const inputs: unknown[] = [];
  for (const { target, input, from } of sent) {
    tasks.push({ id: `${step}:${tasks.length}`, node: target, input: inputs.length, from: [from] });
    inputs.push(input);
  }
  return { tasks, inputs };
}
