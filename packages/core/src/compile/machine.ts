/**
 * A graph as an XState machine: JSON configuration with named actors and guards.
 *
 * A graph in which one node runs at a time becomes one compound state per node; a graph with parallel work becomes a
 * driver region and one region per node. The leaves have the same names in both: executing, committing, interrupted, failed.
 */
import { type AnyActorLogic, type AnyStateMachine, type EventObject, fromPromise, setup } from "xstate";
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
  const nodes = new Set(edge.targets.filter((target) => target !== END));
  return nodes.size > 1 && (edge.kind === "to" || edge.many);
}

/** The machine of a graph. Its actors are named after the nodes; `step.commit` stands for making the superstep durable. */
export function graphMachine(graph: GraphDefinition): AnyStateMachine {
  const names = [...graph.nodes.keys(), commitActor];
  const unprovided = fromPromise<unknown, unknown>(({ self: { id } }) =>
    Promise.reject(new Error(`provide the actor "${id}" before the machine is started: machine.provide({ actors })`)),
  );
  const actors = Object.fromEntries(names.map((name) => [name, innerMachine(graph, name) ?? unprovided]));
  return machineOf(isParallel(graph) ? parallelConfig(graph) : sequentialConfig(graph), actors);
}

/** The node of the machines of parts. */
export const loneNode = "node";

/** The machine of a graph with one node, which leads to itself and to the end: each node of a sequential graph moves as it does. */
export function loneNodeMachine(): AnyStateMachine {
  const edges = new Map<string, EdgeRecord>([
    [START, { kind: "to", targets: [loneNode] }],
    [loneNode, { kind: "to", targets: [loneNode, END] }],
  ]);
  return machineOf(sequentialConfig({ name: loneNode, nodes: new Map([[loneNode, {}]]), edges }), {});
}

/**
 * One region of a parallel graph as a machine of its own: the driver, or the region of a node. Beside it stands a witness
 * that takes every event, so that the region's guards are asked also where it stays as it is.
 */
export function regionMachine(kind: "driver" | "node"): AnyStateMachine {
  const region = kind === "driver" ? driverRegion() : nodeRegion(loneNode);
  return machineOf({ id: kind, type: "parallel", states: { region, witness: { on: { "*": {} } } } }, {});
}

function machineOf(config: Config, actors: Readonly<Record<string, AnyActorLogic>>): AnyStateMachine {
  const base = setup({
    types: { events: {} as CommitEvent | NodeEvent | ResumeEvent },
    actors,
    guards: {
      to: ({ event }, params: { readonly target: string }) => "to" in event && event.to.includes(params.target),
      finished: ({ event }) => "to" in event && event.to.length === 0,
      of: ({ event }, params: { readonly node: string }) => "node" in event && event.node === params.node,
    },
  });
  return base.createMachine(config as Parameters<typeof base.createMachine>[0]);
}

/** The machine of the graph that is a node's body. */
function innerMachine(graph: GraphDefinition, node: string): AnyStateMachine | undefined {
  const inner = graph.nodes.get(node)?.subgraph?.graph;
  return inner === undefined ? undefined : (inner as GraphDefinition & { readonly machine: AnyStateMachine }).machine;
}

/** No node can have this name. */
const commitActor = "step.commit";

type Config = Record<string, unknown>;

/** What the machine of a graph is made of. */
interface Drawn {
  readonly name: string;
  readonly nodes: ReadonlyMap<string, unknown>;
  readonly edges: GraphDefinition["edges"];
}

function sequentialConfig(graph: Drawn): Config {
  const states: Record<string, Config> = { start: { on: { "step.commit": arrows(graph, START) } } };
  for (const node of graph.nodes.keys()) {
    states[node] = {
      initial: "executing",
      states: leaves(node, "sequential"),
      on: { "step.commit": arrows(graph, node) },
    };
  }
  states["done"] = { type: "final" };
  return { id: graph.name, initial: "start", states };
}

function arrows(graph: Drawn, source: string): Config[] {
  const { targets, finishes } = waysOf(graph, source);
  const exits = targets.map((target) => ({
    guard: { type: "to", params: { target } },
    target,
    reenter: true,
  }));
  return finishes ? [...exits, { guard: { type: "finished" }, target: "done" }] : exits;
}

/** Where the machine of a sequential graph may go from a node, in the order in which its guards are asked. */
export function waysOf(
  graph: Pick<Drawn, "edges">,
  source: string,
): { readonly targets: readonly string[]; readonly finishes: boolean } {
  const edge = graph.edges.get(source);
  return {
    targets: (edge?.targets ?? []).filter((target) => target !== END),
    finishes: edge?.kind === "gotos" || edge?.targets.includes(END) === true,
  };
}

function parallelConfig(graph: Drawn): Config {
  const states: Record<string, Config> = { driver: driverRegion() };
  for (const node of graph.nodes.keys()) states[node] = nodeRegion(node);
  return { id: graph.name, type: "parallel", states };
}

function nodeRegion(node: string): Config {
  const begin = { guard: { type: "to", params: { target: node } }, target: "executing", reenter: true };
  const finish = { guard: { type: "finished" }, target: "done" };
  const region = leaves(node, "parallel");
  return {
    initial: "idle",
    states: {
      idle: { on: { "step.commit": [begin, finish] } },
      ...region,
      committing: { ...region["committing"], on: { "step.commit": [begin, finish, { target: "idle" }] } },
      done: { type: "final" },
    },
  };
}

function driverRegion(): Config {
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

function leaves(node: string, shape: "sequential" | "parallel"): Record<string, Config> {
  const mine = shape === "parallel" ? { guard: { type: "of", params: { node } } } : {};
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
