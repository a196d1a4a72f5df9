/**
 * `checkGraph`: walk every control state that a run may come to, whatever its nodes do and its functions choose, and say
 * where it would be caught. What a body computes is not looked at; what it may write is known where `writes` says so.
 */
import { StatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import type { Graph } from "../compile/define-graph.ts";
import { type Plan, planOf } from "../compile/plan.ts";
import { START } from "../define/edge.ts";
import type { GraphTypes } from "../define/graph.ts";
import { answerSchema } from "../define/interrupt.ts";
import { kernelOf } from "../run/open.ts";
import { jsonSchemaOf } from "../tool/model-tool.ts";
import { type ControlState, type ControlWalk, walkControl } from "./control-walk.ts";
import { regionStations, type Station, walkMachine } from "./machine-walk.ts";

/**
 * What a graph can be caught by: `dead_end` nothing runs any more and a join still waits; `empty_sends` sends that may
 * select nothing and do not say where control goes then; `endless_loop` a cycle that is left by no choice; `lost_write`
 * two tasks of a superstep write a channel that keeps one value, so that nothing of the step is kept; `answered_twice` two
 * tool nodes of a superstep answer the same calls; `unanswerable_interrupt` no answer fits; `machine_differs` the machine
 * refuses what the engine asks of it; `unchecked` the limit was reached, so that nothing is proven.
 */
export type GraphRule =
  | "dead_end"
  | "empty_sends"
  | "endless_loop"
  | "lost_write"
  | "answered_twice"
  | "unanswerable_interrupt"
  | "machine_differs"
  | "unchecked";

/** One way in which a run can be caught. */
export interface GraphViolation {
  readonly rule: GraphRule;
  /** The shortest way there: the nodes of each superstep, joined by ` + `; what happens at the end stands in brackets. */
  readonly path: readonly string[];
  readonly message: string;
}

/** What `checkGraph` found; a graph without violations is sound. */
export interface GraphReport {
  readonly violations: readonly GraphViolation[];
}

/** What `checkGraph` takes besides the graph. */
export interface CheckOptions<Types extends GraphTypes = GraphTypes> {
  /** Supersteps to walk at most, 100,000 by default; a graph with more is reported as `unchecked`. */
  readonly limit?: number;
  /** The channels that nodes write, for `lost_write`: bodies cannot be read. */
  readonly writes?: { readonly [Node in Types["nodes"]]?: readonly (keyof Types["state"] & string)[] };
}

/**
 * Prove that a graph has no dead end, loses no write and can finish from every state: each task may end in every way that
 * its edge allows, fail or ask; a run may be resumed, tried again and cancelled at any time. Choices count as independent
 * of each other. Throws `invalid_option` for a limit that is no whole number from 1, for writes of unknown nodes or
 * channels, and for a machine drawn by hand.
 */
export function checkGraph<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: CheckOptions<Types> = {},
): GraphReport {
  const { limit = 100_000, writes = {} } = options;
  const plan = planOf(graph as Graph);
  checkLimit(limit);
  if (plan.drawing !== undefined) throw handDrawn(plan);
  const writers = writersOf(plan, writes);
  const walk = walkControl(plan, limit, countedNodes(plan, writers));
  const found = [
    ...refusedSteps(walk),
    ...endlessLoops(walk),
    ...lostWrites(walk, writers),
    ...doubleAnswers(plan, walk),
    ...unanswerable(plan, walk),
    ...machineFaults(graph as Graph, plan, walk),
    ...unchecked(walk, limit),
  ];
  return { violations: found.toSorted((one, other) => one.path.length - other.path.length) };
}

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1) return;
  throw new StatewrightError("invalid_option", { what: `limit is ${limit}`, next: "Give a whole number from 1" });
}

function handDrawn({ graph }: Plan): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `"${graph.name}" is a machine drawn by hand, whose guards and actions only it knows`,
    next: "Walk it with xstate/graph; checkGraph reads what defineGraph was given",
    place: { graph: graph.name },
  });
}

/** Channels that keep one value, with the nodes that write them. */
type Writers = ReadonlyMap<string, readonly string[]>;

function writersOf(plan: Plan, writes: Readonly<Record<string, readonly string[] | undefined>>): Writers {
  const { channels } = plan.graph.state;
  const writers = new Map<string, string[]>();
  for (const [node, names = []] of Object.entries(writes)) {
    if (!plan.nodes.has(node)) throw unknownWrite(plan, `the node "${node}"`);
    for (const name of names) {
      const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
      if (channel === undefined) throw unknownWrite(plan, `the channel "${name}"`);
      if (channel.kind === "last" || channel.kind === "ephemeral" || channel.kind === "untracked")
        writers.set(name, [...(writers.get(name) ?? []), node]);
    }
  }
  return writers;
}

function unknownWrite({ graph }: Plan, what: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the writes to check name ${what}, which the graph "${graph.name}" does not have`,
    next: "Name nodes and channels of the graph",
    place: { graph: graph.name },
  });
}

/** Many tasks of a node do what one cannot: go to several nodes, and write one channel twice. */
function countedNodes(plan: Plan, writers: Writers): ReadonlySet<string> {
  const leading = [...plan.graph.edges].flatMap(([source, edge]) => (edge.kind === "gotos" ? [source] : []));
  return new Set([...leading, ...[...writers.values()].flat()].filter((node) => plan.nodes.get(node)?.kind === "task"));
}

function refusedSteps({ refusals }: ControlWalk): GraphViolation[] {
  return refusals.map(({ at, error }) =>
    error.code === "empty_sends"
      ? { rule: "empty_sends", path: [...pathTo(at), "(no items)"], message: error.message }
      : { rule: "dead_end", path: [...pathTo(at), "(nothing runs)"], message: error.message },
  );
}

/** Cycles that are left by nothing, not even by a refused step. A walk that was cut cannot tell. */
function endlessLoops({ states, cutAt }: ControlWalk): GraphViolation[] {
  if (cutAt !== undefined) return [];
  const before = new Map<ControlState, ControlState[]>(states.map((state) => [state, []]));
  for (const state of states) for (const next of state.next) before.get(next)?.push(state);
  const intoWhich = (state: ControlState): Iterable<ControlState> => before.get(state) ?? [];
  const explained = reach(
    states.filter((state) => isDone(state) || state.refused),
    intoWhich,
  );
  const found: GraphViolation[] = [];
  for (const state of states) {
    if (explained.has(state)) continue;
    const loop = innermostLoop(state, intoWhich);
    // States are in the order of their distance from START.
    const [entry = state] = states.filter((each) => loop.has(each));
    const nodes = [...new Set([...loop].flatMap(({ pending }) => pending.map(({ node }) => node)))];
    found.push({
      rule: "endless_loop",
      path: [...pathTo(entry), ...roundFrom(entry)],
      message: `${listed(nodes)} ${nodes.length === 1 ? "runs" : "run"} again and again: no choice leads out of here to the end`,
    });
    for (const each of reach([...loop], intoWhich)) explained.add(each);
  }
  return found;
}

/** States that can all reach each other and nothing else. */
function innermostLoop(
  from: ControlState,
  intoWhich: (state: ControlState) => Iterable<ControlState>,
): ReadonlySet<ControlState> {
  let inside = reach([from], (state) => state.next);
  let at: ControlState | undefined = from;
  for (;;) {
    const back = reach([at], (state) => [...intoWhich(state)].filter((each) => inside.has(each)));
    const beyond: ControlState | undefined = [...inside].find((state) => !back.has(state));
    if (beyond === undefined) return inside;
    at = beyond;
    inside = reach([at], (state) => state.next);
  }
}

/** The shortest way around a loop, back to where it was entered. */
function roundFrom(entry: ControlState): readonly string[] {
  const cameFrom = new Map<ControlState, ControlState>();
  const open = [entry];
  for (const state of open) {
    for (const next of state.next) {
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, state);
      open.push(next);
    }
  }
  const round = [label(entry)];
  for (let at = cameFrom.get(entry); at !== undefined && at !== entry; at = cameFrom.get(at)) round.unshift(label(at));
  return round;
}

function lostWrites({ states }: ControlWalk, writers: Writers): GraphViolation[] {
  const found = new Map<string, GraphViolation>();
  for (const state of states) {
    for (const [channel, nodes] of writers) {
      const writing = state.pending.flatMap(({ node, many }) => {
        if (!nodes.includes(node)) return [];
        return many ? [node, node] : [node];
      });
      for (const [one, other] of pairs(writing)) {
        const key = `${channel} ${one} ${other}`;
        if (found.has(key)) continue;
        const who = one === other ? `two tasks of "${one}"` : `"${one}" and "${other}"`;
        found.set(key, {
          rule: "lost_write",
          path: pathTo(state),
          message: `${who} write the channel "${channel}" in one superstep: nothing of the step is kept; let one of them write it, or make it a list, a record or a reduce channel`,
        });
      }
    }
  }
  return [...found.values()];
}

function doubleAnswers(plan: Plan, { states }: ControlWalk): GraphViolation[] {
  const found = new Map<string, GraphViolation>();
  for (const state of states) {
    const tools = state.pending.flatMap(({ node }) => (plan.nodes.get(node)?.kind === "tools" ? [node] : []));
    for (const pair of pairs(tools)) {
      const key = pair.join(" ");
      if (found.has(key)) continue;
      found.set(key, {
        rule: "answered_twice",
        path: pathTo(state),
        message: `the tool nodes ${listed(pair)} run in one superstep: both make every call of the last message; let one follow the other, or make them one`,
      });
    }
  }
  return [...found.values()];
}

function unanswerable(plan: Plan, { states }: ControlWalk): GraphViolation[] {
  const mayAsk = (node: string): boolean => node !== START && plan.nodes.get(node)?.kind !== "tools";
  const state = states.find(({ pending }) => pending.some(({ node }) => mayAsk(node)));
  const asking = state?.pending.find(({ node }) => mayAsk(node));
  if (state === undefined || asking === undefined) return [];
  return Object.entries(plan.graph.interrupts).flatMap(([key, declared]): GraphViolation[] => {
    if (!acceptsNothing(jsonSchemaOf(answerSchema(declared)))) return [];
    return [
      {
        rule: "unanswerable_interrupt",
        path: [...pathTo(state), `(${asking.node} asks "${key}")`],
        message: `the interrupt "${key}" waits for ever once it is asked: the schema of its answer accepts nothing`,
      },
    ];
  });
}

/** Whether a JSON Schema surely accepts nothing. */
function acceptsNothing(schema: unknown): boolean {
  if (schema === false) return true;
  if (!isPlainObject(schema)) return false;
  const { not, enum: values, anyOf, allOf, properties, required } = schema;
  const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;
  if ((isPlainObject(not) && Object.keys(not).length === 0) || isEmpty(values)) return true;
  if (Array.isArray(anyOf) && anyOf.every(acceptsNothing)) return true;
  if (Array.isArray(allOf) && allOf.some(acceptsNothing)) return true;
  return (
    Array.isArray(required) && isPlainObject(properties) && required.some((key) => acceptsNothing(properties[key]))
  );
}

/** A machine with one node at a time is walked along every step; of a parallel one, every region through its transitions. */
function machineFaults(graph: Graph, plan: Plan, { states }: ControlWalk): GraphViolation[] {
  const stations = new Map(plan.parallel ? [] : states.map((state) => [state, stationOf(state)] as const));
  for (const [state, station] of stations)
    for (const next of state.next) station.next.push(stations.get(next) as Station);
  const [first = regionStations([...plan.nodes.keys()])] = stations.values();
  const place = new Map<Station, ControlState>([...stations].map(([state, station]) => [station, state]));
  return walkMachine(kernelOf(graph), first).map(({ at, message }) => {
    const state = place.get(at);
    return {
      rule: "machine_differs",
      path: state === undefined ? ["start", ...(at.nodes.length === 0 ? [] : [at.nodes.join(" + ")])] : pathTo(state),
      message,
    };
  });
}

function stationOf(state: ControlState): Station & { readonly next: Station[] } {
  return { nodes: nodesOf(state), next: [], endings: nodesOf(state).length > 0 };
}

function unchecked({ states, cutAt }: ControlWalk, limit: number): GraphViolation[] {
  if (cutAt === undefined) return [];
  return [
    {
      rule: "unchecked",
      path: pathTo(cutAt),
      message: `the graph has more than ${limit} supersteps to walk, ${states.length} states were seen, and what comes after this one is not proven: give a higher limit, or let fewer nodes choose at the same time`,
    },
  ];
}

function reach(
  from: Iterable<ControlState>,
  onward: (state: ControlState) => Iterable<ControlState>,
): Set<ControlState> {
  const seen = new Set(from);
  // The set grows while it is walked.
  for (const state of seen) for (const next of onward(state)) seen.add(next);
  return seen;
}

function pathTo(state: ControlState): readonly string[] {
  const path: string[] = [];
  for (let at: ControlState | undefined = state; at !== undefined; at = at.before) path.unshift(label(at));
  return path;
}

function label(state: ControlState): string {
  if (state.before === undefined) return "start";
  return isDone(state) ? "done" : nodesOf(state).join(" + ");
}

function isDone({ pending }: ControlState): boolean {
  return pending.length === 0;
}

function nodesOf({ pending }: ControlState): readonly string[] {
  return pending.flatMap(({ node }) => (node === START ? [] : [node]));
}

function pairs(items: readonly string[]): readonly (readonly [string, string])[] {
  return items.flatMap((one, index) => items.slice(index + 1).map((other) => [one, other] as const));
}

function listed(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(" and ");
}
