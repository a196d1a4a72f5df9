/**
 * The control states of a graph: every set of pending tasks and half-full joins that a run may come to, whatever its
 * functions choose. The next state is decided by the superstep of the engine itself; only the choices are made up.
 */
import { isStatewrightError, type StatewrightError } from "../../base/errors.ts";
import type { Control, Held } from "../../checkpoint/checkpoint.ts";
import { edgeFrom, type Plan } from "../../compile/plan.ts";
import { END, START } from "../../define/edge.ts";
import type { EdgeRecord } from "../../define/graph.ts";
import type { Lead } from "../../run/session/returns.ts";
import { type Finished, type StepResult, superstep } from "../../run/superstep/superstep.ts";
import { claimedWrites } from "./declared-writes.ts";

/** A node with tasks to run. `many` is any number from two; told apart from one only where it matters. */
export interface Pending {
  readonly node: string;
  readonly many: boolean;
}

/** Where control stands between two supersteps; with nothing pending the run is done. */
export interface ControlState {
  /** In the order of declaration; START alone where everything begins. */
  readonly pending: readonly Pending[];
  readonly joins: Control["joins"];
  /** Deferred tasks that wait: who led to them, and with what, is left out. */
  readonly held: readonly Held[];
  /** The state from which a shortest path comes here. */
  readonly before: ControlState | undefined;
  readonly next: ReadonlySet<ControlState>;
  /** Whether some choice leads to a superstep that is refused. */
  readonly refused: boolean;
}

/** A superstep that the engine refuses to take, with the error that a run would fail with. */
export interface Refusal {
  readonly at: ControlState;
  readonly error: StatewrightError;
}

/** What a walk has seen: states and refusals in the order of their distance from START, each refusal once. */
export interface ControlWalk {
  readonly states: readonly ControlState[];
  readonly refusals: readonly Refusal[];
  /** The first state that was not left any more, when the limit was reached. */
  readonly cutAt: ControlState | undefined;
  /** The state that a checkpoint of a run stands in, where the walk has come to it. */
  readonly find: (control: Standing) => ControlState | undefined;
}

/** The part of a checkpoint that tells where control stands. */
export type Standing = Pick<StepResult, "tasks" | "joins" | "held">;

/** Walk breadth first through at most `limit` supersteps. */
export function walkControl(plan: Plan, limit: number): ControlWalk {
  const counted = countedNodes(plan);
  const answers = new Map<string, unknown>();
  const chosen = planThatChooses(plan, answers);
  const first: Walked = {
    pending: [{ node: START, many: false }],
    joins: {},
    held: [],
    before: undefined,
    next: new Set(),
    refused: false,
  };
  const states: Walked[] = [first];
  const known = new Map<string, Walked>();
  const refusals = new Map<string, Refusal>();
  const walked = (cutAt?: ControlState): ControlWalk => ({
    states,
    refusals: [...refusals.values()],
    cutAt,
    find: (control) => known.get(keyOf(toState(plan, counted, first, control))),
  });
  let taken = 0;
  // The list grows while it is walked.
  for (const state of states) {
    const ways = waysFrom(plan, state.pending, counted, limit - taken);
    if (ways === undefined) return walked(state);
    for (const way of ways) {
      taken += 1;
      const result = take(chosen, answers, state, way);
      if (isStatewrightError(result)) {
        state.refused = true;
        if (!refusals.has(result.message)) refusals.set(result.message, { at: state, error: result });
        continue;
      }
      const reached = toState(plan, counted, state, result);
      const key = keyOf(reached);
      const next = known.get(key) ?? reached;
      state.next.add(next);
      if (next !== reached) continue;
      known.set(key, reached);
      states.push(reached);
    }
  }
  return walked();
}

/** Nodes of which one task and many differ: many go to several nodes, and write one channel twice. */
function countedNodes({ graph, nodes }: Plan): ReadonlySet<string> {
  const tasks = [...nodes.values()].filter(({ kind }) => kind === "task");
  const differ = tasks.filter(
    (node) => graph.edges.get(node.name)?.kind === "gotos" || claimedWrites(graph, node).length > 0,
  );
  return new Set(differ.map(({ name }) => name));
}

interface Walked extends ControlState {
  readonly next: Set<ControlState>;
  refused: boolean;
}

/** How all tasks of one node end: where the commands of each lead, and what the function of its edge chooses. */
interface Ending {
  readonly node: string;
  readonly leads: readonly (readonly Lead[])[];
  readonly answer: unknown;
}

/** The plan with made-up choices in place of the functions of its edges, and without schemas that would refuse made-up inputs. */
function planThatChooses(plan: Plan, answers: ReadonlyMap<string, unknown>): Plan {
  const nodes = new Map([...plan.nodes].map(([name, node]) => [name, { ...node, input: undefined }]));
  const edges = new Map(
    [...plan.graph.edges].map(([source, edge]): [string, EdgeRecord] => {
      const answer = (): unknown => answers.get(source);
      if (edge.kind === "route") return [source, { ...edge, choose: answer }];
      return [source, edge.kind === "sends" ? { ...edge, select: answer } : edge];
    }),
  );
  return { ...plan, nodes, graph: { ...plan.graph, edges } };
}

function take(
  plan: Plan,
  answers: Map<string, unknown>,
  { joins, held }: ControlState,
  way: readonly Ending[],
): StepResult | StatewrightError {
  const finished: Finished[] = [];
  for (const { node, leads, answer } of way) {
    answers.set(node, answer);
    for (const each of leads)
      finished.push({ task: { id: `0:${finished.length}`, node }, outcome: { writes: [], leads: each } });
  }
  try {
    return superstep(plan, 1, { state: {}, joins, held }, finished);
  } catch (error) {
    if (isStatewrightError(error, "dead_route") || isStatewrightError(error, "empty_sends")) return error;
    throw error;
  }
}

function toState(
  plan: Plan,
  counted: ReadonlySet<string>,
  before: ControlState,
  { tasks, joins, held = [] }: Standing,
): Walked {
  const order = (node: string): number => plan.nodes.get(node)?.index ?? 0;
  const inOrder = (one: Pending, other: Pending): number => order(one.node) - order(other.node);
  return {
    pending: counts(tasks, counted).toSorted(inOrder),
    joins,
    held: counts(held, counted)
      .toSorted(inOrder)
      .flatMap((each) => heldAs(plan, each)),
    before,
    next: new Set(),
    refused: false,
  };
}

function counts(tasks: readonly { readonly node: string }[], counted: ReadonlySet<string>): readonly Pending[] {
  const count = new Map<string, number>();
  for (const { node } of tasks) count.set(node, (count.get(node) ?? 0) + 1);
  return [...count].map(([node, times]) => ({ node, many: times > 1 && counted.has(node) }));
}

function heldAs(plan: Plan, { node, many }: Pending): readonly Held[] {
  const one: Held = {
    node,
    from: [],
    ...(plan.nodes.get(node)?.kind === "task" ? { sent: { input: undefined } } : {}),
  };
  return many ? [one, one] : [one];
}

function keyOf({ pending, joins, held }: ControlState): string {
  const waiting = Object.entries(joins).map(([target, sources]) => `${target}:${sources.toSorted().join()}`);
  return [
    pending.map(({ node, many }) => (many ? `${node}*` : node)).join(),
    waiting.toSorted().join(" "),
    held.map(({ node }) => node).join(),
  ].join("|");
}

/** Every way in which a superstep may end, or undefined when there are more than `limit`. */
function waysFrom(
  plan: Plan,
  pending: readonly Pending[],
  counted: ReadonlySet<string>,
  limit: number,
): Iterable<readonly Ending[]> | undefined {
  if (pending.length === 0) return [];
  const endings: (readonly Ending[])[] = [];
  let count = 1;
  for (const each of pending) {
    const some: Ending[] = [];
    for (const ending of endingsOf(plan, each, counted)) {
      some.push(ending);
      if (count * some.length > limit) return undefined;
    }
    count *= some.length;
    endings.push(some);
  }
  return product(endings);
}

function* endingsOf(plan: Plan, { node, many }: Pending, counted: ReadonlySet<string>): Generator<Ending> {
  const edge = edgeFrom(plan, node);
  const plainly = [[]];
  switch (edge.kind) {
    case "to":
    case "join":
      yield { node, leads: plainly, answer: undefined };
      return;
    case "route": {
      const targets = [...new Set(edge.targets)];
      if (targets.includes(END)) yield { node, leads: plainly, answer: END };
      const others = targets.filter((target) => target !== END);
      for (const answer of edge.many ? subsets(others) : others.map((target) => [target]))
        if (answer.length > 0) yield { node, leads: plainly, answer };
      return;
    }
    case "sends":
      for (const count of counted.has(edge.target) ? [0, 1, 2] : [0, 1])
        yield { node, leads: plainly, answer: Array.from({ length: count }) };
      return;
    case "gotos": {
      const targets = [...new Set(edge.targets)].filter((target) => target !== END);
      const taking = targets.filter((target) => plan.nodes.get(target)?.kind === "task");
      const plain = targets.filter((target) => !taking.includes(target));
      const gotos = many ? subsets(plain) : [[], ...plain.map((target) => [target])];
      for (const chosen of gotos)
        for (const sent of sendsTo(taking, counted)) yield { node, leads: leadsOf(chosen, sent), answer: undefined };
    }
  }
}

/** One task for each goto, since a task goes to one node; the first sends everything. */
function leadsOf(gotos: readonly string[], sent: readonly Lead[]): readonly (readonly Lead[])[] {
  const leads = gotos.map((target): Lead[] => [{ kind: "goto", target }]);
  return [[...(leads[0] ?? []), ...sent], ...leads.slice(1)];
}

/** None, one or many sends to each of the task nodes. */
function* sendsTo(targets: readonly string[], counted: ReadonlySet<string>): Generator<readonly Lead[]> {
  const [target, ...others] = targets;
  if (target === undefined) {
    yield [];
    return;
  }
  const lead: Lead = { kind: "send", target, input: undefined };
  for (const more of sendsTo(others, counted)) {
    yield more;
    yield [lead, ...more];
    if (counted.has(target)) yield [lead, lead, ...more];
  }
}

function* subsets(items: readonly string[]): Generator<readonly string[]> {
  const [item, ...others] = items;
  if (item === undefined) {
    yield [];
    return;
  }
  for (const subset of subsets(others)) {
    yield subset;
    yield [item, ...subset];
  }
}

function* product(lists: readonly (readonly Ending[])[]): Generator<readonly Ending[]> {
  const [list, ...others] = lists;
  if (list === undefined) {
    yield [];
    return;
  }
  for (const rest of product(others)) for (const item of list) yield [item, ...rest];
}
