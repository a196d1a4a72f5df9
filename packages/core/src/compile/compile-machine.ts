/**
 * Compiles a graph to an XState machine: JSON configuration with named actors and guards.
 *
 * A graph that runs a single node at a time becomes a single compound state per node; a graph with parallel nodes
 * becomes a driver region and one region per node. Leaf states have the same names in both: executing, committing,
 * interrupted, failed.
 */
import { type AnyStateMachine, type EventObject, fromPromise, setup } from "xstate";
import type { Json } from "../base/json.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";
import { findSubgraph } from "../define/inner-graph.ts";

/** Sent after the commit of a superstep: `to` lists the next nodes; an empty list finishes the graph. */
export interface CommitEvent extends EventObject {
  readonly type: "step.commit";
  readonly to: readonly string[];
}

/** A node of the superstep interrupts, or fails finally. */
export interface NodeEvent extends EventObject {
  readonly type: "task.interrupted" | "task.failed";
  readonly node: string;
}

/** The run resumes: interrupted and failed nodes execute again. */
export interface ResumeEvent extends EventObject {
  readonly type: "run.resumed";
}

/** Returns true if several nodes of a graph may run in a single superstep. */
export function isParallel(graph: GraphDefinition): boolean {
  const tasks = new Set([...graph.nodes.values()].filter((node) => node.logic.takesInput).map((node) => node.name));
  return [...graph.edges.values()].some((edge) => canSplit(edge, tasks));
}

function canSplit(edge: EdgeRecord, tasks: ReadonlySet<string>): boolean {
  if (edge.kind === "fanOut" || edge.kind === "join") return true;
  if (edge.kind === "commandTargets") return edge.targets.some((target) => tasks.has(target));
  if (edge.targets.length < 2 || (edge.kind === "route" && !edge.many)) return false;
  return new Set(edge.targets.filter((target) => target !== END)).size > 1;
}

/** Returns the machine of a graph. Actors have the names of the nodes; the actor `step.commit` commits a superstep. */
export function compileMachine(graph: GraphDefinition): AnyStateMachine {
  const actorNames = [...graph.nodes.keys(), commitActor];
  const missingActor = fromPromise<unknown, unknown>(({ self: { id } }) =>
    Promise.reject(new Error(`provide the actor "${id}" before the machine is started: machine.provide({ actors })`)),
  );
  const base = setup({
    types: { events: {} as GraphEvent },
    actors: Object.fromEntries(actorNames.map((name) => [name, getSubgraphMachine(graph, name) ?? missingActor])),
    guards: {
      to: ({ event }, params: { readonly target: string }) => guards.to(event, params),
      finished: ({ event }) => guards.finished(event),
      of: ({ event }, params: { readonly node: string }) => guards.of(event, params),
    },
  });
  const config = isParallel(graph) ? createParallelConfig(graph) : createSequentialConfig(graph);
  return base.createMachine(config as Parameters<typeof base.createMachine>[0]);
}

type GraphEvent = CommitEvent | NodeEvent | ResumeEvent;

/** Guards of a graph machine; pure functions of the event. */
export const guards: {
  readonly to: (event: GraphEvent, params: { readonly target: string }) => boolean;
  readonly finished: (event: GraphEvent) => boolean;
  readonly of: (event: GraphEvent, params: { readonly node: string }) => boolean;
} = {
  to: (event, { target }) => "to" in event && event.to.includes(target),
  finished: (event) => "to" in event && event.to.length === 0,
  of: (event, { node }) => "node" in event && event.node === node,
};

/** Returns the machine of a subgraph node. */
function getSubgraphMachine(graph: GraphDefinition, node: string): AnyStateMachine | undefined {
  const inner = findSubgraph(graph.nodes.get(node))?.graph;
  return inner === undefined ? undefined : (inner as GraphDefinition & { readonly machine: AnyStateMachine }).machine;
}

/** Reserved actor name; not a valid node name. */
const commitActor = "step.commit";

type Config = object;

/** A state without child states. */
export interface LeafState {
  readonly type?: "final";
  readonly tags?: readonly string[];
  readonly invoke?: { readonly id: string; readonly src: string; readonly onDone?: string; readonly onError?: string };
  readonly on?: Readonly<Record<string, string | GuardedTransition | readonly GuardedTransition[]>>;
}

/** A transition; the first transition with a passing guard is taken. */
export interface GuardedTransition {
  readonly guard?:
    | { readonly type: "to"; readonly params: { readonly target: string } }
    | { readonly type: "finished" }
    | { readonly type: "of"; readonly params: { readonly node: string } };
  readonly target: string;
  readonly reenter?: boolean;
}

/** A region of leaf states, with a single active state at a time. */
export interface Region {
  readonly initial: string;
  readonly states: Readonly<Record<string, LeafState>>;
}

function createSequentialConfig(graph: GraphDefinition): Config {
  const states: Record<string, Config> = { start: { on: { "step.commit": listTransitions(graph, START) } } };
  for (const node of graph.nodes.keys()) {
    states[node] = {
      ...createNodeStates(node),
      on: { "step.commit": listTransitions(graph, node) },
    };
  }
  states["done"] = { type: "final" };
  return { id: graph.name, initial: "start", states };
}

/** Returns the transitions from a node, or from START, in a sequential graph. */
export function listTransitions(graph: GraphDefinition, source: string): readonly GuardedTransition[] {
  const edge = graph.edges.get(source);
  const targets = (edge?.targets ?? []).filter((target) => target !== END);
  const finishes = edge?.kind === "commandTargets" || edge?.targets.includes(END) === true;
  const exits = targets.map(
    (target): GuardedTransition => ({ guard: { type: "to", params: { target } }, target, reenter: true }),
  );
  return finishes ? [...exits, { guard: { type: "finished" }, target: "done" }] : exits;
}

/** Returns the states inside a node of a sequential graph. */
export function createNodeStates(node: string): Region {
  return { initial: "executing", states: createLeafStates(node, "sequential") };
}

function createParallelConfig(graph: GraphDefinition): Config {
  const states: Record<string, Config> = { driver: createDriverRegion() };
  for (const node of graph.nodes.keys()) states[node] = createNodeRegion(node);
  return { id: graph.name, type: "parallel", states };
}

/** Returns the region of a node in a parallel graph. */
export function createNodeRegion(node: string): Region {
  const start: GuardedTransition = {
    guard: { type: "to", params: { target: node } },
    target: "executing",
    reenter: true,
  };
  const finish: GuardedTransition = { guard: { type: "finished" }, target: "done" };
  const region = createLeafStates(node, "parallel");
  return {
    initial: "idle",
    states: {
      idle: { on: { "step.commit": [start, finish] } },
      ...region,
      committing: { ...region.committing, on: { "step.commit": [start, finish, { target: "idle" }] } },
      done: { type: "final" },
    },
  };
}

/** Returns the region for the status of the whole superstep. */
export function createDriverRegion(): Region {
  return {
    initial: "start",
    states: {
      start: { on: { "step.commit": [{ guard: { type: "finished" }, target: "done" }, { target: "running" }] } },
      running: {
        on: {
          "step.commit": { guard: { type: "finished" }, target: "done" },
          "task.interrupted": "waiting",
          "task.failed": "failed",
        },
      },
      waiting: { tags: ["waiting"], on: { "run.resumed": "running", "task.failed": "failed" } },
      failed: { tags: ["failed"], on: { "run.resumed": "running" } },
      done: { type: "final" },
    },
  };
}

function createLeafStates(node: string, shape: "sequential" | "parallel") {
  const nodeGuard: Pick<GuardedTransition, "guard"> =
    shape === "parallel" ? { guard: { type: "of", params: { node } } } : {};
  return {
    executing: {
      invoke: { id: node, src: node, onDone: "committing", onError: "failed" },
      on: {
        "task.interrupted": { ...nodeGuard, target: "interrupted" },
        "task.failed": { ...nodeGuard, target: "failed" },
      },
    },
    committing: { invoke: { id: `${node}.commit`, src: commitActor } },
    interrupted: { tags: ["waiting"], on: { "run.resumed": "executing" } },
    failed: { tags: ["failed"], on: { "run.resumed": "executing" } },
  };
}

/** Returns the state value with the given nodes finished and not yet committed; START stands for the initial state. */
export function createCommittingValue(graph: GraphDefinition, nodes: readonly string[]): Json {
  const isStart = nodes.includes(START);
  if (!isParallel(graph)) return isStart ? "start" : { [nodes[0] ?? ""]: "committing" };
  const regions = [...graph.nodes.keys()].map((node) => [node, nodes.includes(node) ? "committing" : "idle"]);
  return { driver: isStart ? "start" : "running", ...Object.fromEntries(regions) };
}

/** Returns the state value with the given nodes started; without nodes, the initial state value. */
export function createExecutingValue(graph: GraphDefinition, nodes: readonly string[]): Json {
  if (nodes.length === 0) return createCommittingValue(graph, [START]);
  if (!isParallel(graph)) return { [nodes[0] ?? ""]: "executing" };
  const regions = [...graph.nodes.keys()].map((node) => [node, nodes.includes(node) ? "executing" : "idle"]);
  return { driver: "running", ...Object.fromEntries(regions) };
}
