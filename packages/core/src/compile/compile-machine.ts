/**
 * A graph as an XState machine: JSON configuration with named actors and guards.
 *
 * A graph in which one node runs at a time becomes one compound state per node; a graph with parallel work becomes a
 * driver region and one region per node. The leaves have the same names in both: executing, committing, interrupted, failed.
 */
import { type AnyStateMachine, type EventObject, fromPromise, setup } from "xstate";
import type { Json } from "../base/json.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";

/** Taken when a superstep is durable: control goes to the nodes in `to`; none means that the graph has finished. */
export interface CommitEvent extends EventObject {
  readonly type: "step.commit";
  readonly to: readonly string[];
}

/** A node of the superstep asks a person, or its failure is final. */
export interface NodeEvent extends EventObject {
  readonly type: "task.interrupted" | "task.failed";
  readonly node: string;
}

/** The run goes on: what waited or failed executes again. */
export interface ResumeEvent extends EventObject {
  readonly type: "run.resumed";
}

/** Tell whether more than one node of a graph may run in a superstep. */
export function isParallel(graph: GraphDefinition): boolean {
  const tasks = new Set([...graph.nodes.values()].filter((node) => node.kind === "task").map((node) => node.name));
  return [...graph.edges.values()].some((edge) => canSplit(edge, tasks));
}

function canSplit(edge: EdgeRecord, tasks: ReadonlySet<string>): boolean {
  if (edge.kind === "sends" || edge.kind === "join") return true;
  if (edge.kind === "gotos") return edge.targets.some((target) => tasks.has(target));
  if (edge.targets.length < 2 || (edge.kind === "route" && !edge.many)) return false;
  return new Set(edge.targets.filter((target) => target !== END)).size > 1;
}

/** The machine of a graph. Its actors are named after the nodes; `step.commit` stands for making the superstep durable. */
export function graphMachine(graph: GraphDefinition): AnyStateMachine {
  const names = [...graph.nodes.keys(), commitActor];
  const unprovided = fromPromise<unknown, unknown>(({ self: { id } }) =>
    Promise.reject(new Error(`provide the actor "${id}" before the machine is started: machine.provide({ actors })`)),
  );
  const base = setup({
    types: { events: {} as GraphEvent },
    actors: Object.fromEntries(names.map((name) => [name, innerMachine(graph, name) ?? unprovided])),
    guards: {
      to: ({ event }, params: { readonly target: string }) => guards.to(event, params),
      finished: ({ event }) => guards.finished(event),
      of: ({ event }, params: { readonly node: string }) => guards.of(event, params),
    },
  });
  const config = isParallel(graph) ? parallelConfig(graph) : sequentialConfig(graph);
  return base.createMachine(config as Parameters<typeof base.createMachine>[0]);
}

type GraphEvent = CommitEvent | NodeEvent | ResumeEvent;

/** What the guards of a graph's machine say of an event: they read nothing else. */
export const guards: {
  readonly to: (event: GraphEvent, params: { readonly target: string }) => boolean;
  readonly finished: (event: GraphEvent) => boolean;
  readonly of: (event: GraphEvent, params: { readonly node: string }) => boolean;
} = {
  to: (event, { target }) => "to" in event && event.to.includes(target),
  finished: (event) => "to" in event && event.to.length === 0,
  of: (event, { node }) => "node" in event && event.node === node,
};

/** The machine of the graph that is a node's body. */
function innerMachine(graph: GraphDefinition, node: string): AnyStateMachine | undefined {
  const inner = graph.nodes.get(node)?.subgraph?.graph;
  return inner === undefined ? undefined : (inner as GraphDefinition & { readonly machine: AnyStateMachine }).machine;
}

/** No node can have this name. */
const commitActor = "step.commit";

type Config = object;

/** A state without states inside it. */
export interface Leaf {
  readonly type?: "final";
  readonly tags?: readonly string[];
  readonly invoke?: { readonly id: string; readonly src: string; readonly onDone?: string; readonly onError?: string };
  readonly on?: Readonly<Record<string, string | Arrow | readonly Arrow[]>>;
}

/** Where a state leads. The first whose guard says so is taken. */
export interface Arrow {
  readonly guard?:
    | { readonly type: "to"; readonly params: { readonly target: string } }
    | { readonly type: "finished" }
    | { readonly type: "of"; readonly params: { readonly node: string } };
  readonly target: string;
  readonly reenter?: boolean;
}

/** Leaves, of which a machine is in one at a time. */
export interface Region {
  readonly initial: string;
  readonly states: Readonly<Record<string, Leaf>>;
}

function sequentialConfig(graph: GraphDefinition): Config {
  const states: Record<string, Config> = { start: { on: { "step.commit": arrows(graph, START) } } };
  for (const node of graph.nodes.keys()) {
    states[node] = {
      ...nodeStates(node),
      on: { "step.commit": arrows(graph, node) },
    };
  }
  states["done"] = { type: "final" };
  return { id: graph.name, initial: "start", states };
}

/** Where the machine of a sequential graph may go from a node, or from START. */
export function arrows(graph: GraphDefinition, source: string): readonly Arrow[] {
  const edge = graph.edges.get(source);
  const targets = (edge?.targets ?? []).filter((target) => target !== END);
  const finishes = edge?.kind === "gotos" || edge?.targets.includes(END) === true;
  const exits = targets.map((target): Arrow => ({ guard: { type: "to", params: { target } }, target, reenter: true }));
  return finishes ? [...exits, { guard: { type: "finished" }, target: "done" }] : exits;
}

/** What goes on inside a node of a sequential graph. */
export function nodeStates(node: string): Region {
  return { initial: "executing", states: leaves(node, "sequential") };
}

function parallelConfig(graph: GraphDefinition): Config {
  const states: Record<string, Config> = { driver: driverRegion() };
  for (const node of graph.nodes.keys()) states[node] = nodeRegion(node);
  return { id: graph.name, type: "parallel", states };
}

/** The region of a node in a parallel graph. */
export function nodeRegion(node: string): Region {
  const begin: Arrow = { guard: { type: "to", params: { target: node } }, target: "executing", reenter: true };
  const finish: Arrow = { guard: { type: "finished" }, target: "done" };
  const region = leaves(node, "parallel");
  return {
    initial: "idle",
    states: {
      idle: { on: { "step.commit": [begin, finish] } },
      ...region,
      committing: { ...region.committing, on: { "step.commit": [begin, finish, { target: "idle" }] } },
      done: { type: "final" },
    },
  };
}

/** The region that says how the superstep as a whole stands. */
export function driverRegion(): Region {
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

function leaves(node: string, shape: "sequential" | "parallel") {
  const mine: Pick<Arrow, "guard"> = shape === "parallel" ? { guard: { type: "of", params: { node } } } : {};
  return {
    executing: {
      invoke: { id: node, src: node, onDone: "committing", onError: "failed" },
      on: { "task.interrupted": { ...mine, target: "interrupted" }, "task.failed": { ...mine, target: "failed" } },
    },
    committing: { invoke: { id: `${node}.commit`, src: commitActor } },
    interrupted: { tags: ["waiting"], on: { "run.resumed": "executing" } },
    failed: { tags: ["failed"], on: { "run.resumed": "executing" } },
  };
}

/** The state value of a machine in which these nodes have finished and nothing is committed yet. START stands for the beginning. */
export function committingValue(graph: GraphDefinition, nodes: readonly string[]): Json {
  const begins = nodes.includes(START);
  if (!isParallel(graph)) return begins ? "start" : { [nodes[0] ?? ""]: "committing" };
  const regions = [...graph.nodes.keys()].map((node) => [node, nodes.includes(node) ? "committing" : "idle"]);
  return { driver: begins ? "start" : "running", ...Object.fromEntries(regions) };
}

/** The state value of a machine in which these nodes have just begun; with none of them, of one that has not begun. */
export function executingValue(graph: GraphDefinition, nodes: readonly string[]): Json {
  if (nodes.length === 0) return committingValue(graph, [START]);
  if (!isParallel(graph)) return { [nodes[0] ?? ""]: "executing" };
  const regions = [...graph.nodes.keys()].map((node) => [node, nodes.includes(node) ? "executing" : "idle"]);
  return { driver: "running", ...Object.fromEntries(regions) };
}
