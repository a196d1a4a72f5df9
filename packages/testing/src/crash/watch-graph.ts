/** A graph with a point at every place where a process may die between two commits: bodies, steps, calls of models and tools. */
import type { Graph, GraphDefinition, GraphTypes, Model } from "@statewright/core";
import { graphWith, runtimeWith } from "../node/replace-parts.ts";
import { instrument } from "../run/instrument.ts";
import { at } from "./external-world.ts";

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type Body = NodeRecord["body"];

/** What a graph is watched with. */
export interface Watch {
  readonly alive: () => boolean;
  /** The program comes to a point; the process may be dead behind it. */
  readonly point: (name: string) => void;
  readonly model: Model | undefined;
}

/** What a body may do that has a beginning and an end. */
interface Doing {
  readonly step: (
    key: string,
    work: (at: never) => unknown,
    options?: { readonly effect?: string },
  ) => Promise<unknown>;
  readonly model: (call: never, key?: string) => Promise<unknown>;
}

/** The graph, with points. The original is not touched. */
export function watchedGraph<Types extends GraphTypes>(graph: Graph<Types>, watch: Watch): Graph<Types> {
  const { alive, model } = watch;
  const doors = instrument(graph, {
    alive,
    model,
    executed: () => undefined,
    around: ({ tool }, body) => {
      const effect = graph.tools.find(({ spec }) => spec.name === tool)?.spec.effect;
      return through(watch, `tool ${tool}`, () => at({ kind: "tool", effect: tool, class: effect }, body));
    },
  });
  return graphWith(doors, { nodes: watchedNodes(doors, watch, "") });
}

function watchedNodes(graph: GraphDefinition, watch: Watch, path: string): GraphDefinition["nodes"] {
  return new Map([...graph.nodes].map(([name, node]) => [name, watchedNode(node, watch, path + name)]));
}

function watchedNode(node: NodeRecord, watch: Watch, name: string): NodeRecord {
  const { subgraph } = node;
  if (subgraph !== undefined) {
    const inner = subgraph.graph as Graph;
    return {
      ...node,
      subgraph: { ...subgraph, graph: graphWith(inner, { nodes: watchedNodes(inner, watch, `${name}.`) }) },
    };
  }
  if (node.tools !== undefined) return node;
  const body: Body = (state, runtime) =>
    through(watch, `node ${name}`, () =>
      at({ node: name }, () => node.body(state, doing(runtime as unknown as Doing, watch) as never)),
    ) as ReturnType<Body>;
  return { ...node, body };
}

function doing(runtime: Doing, watch: Watch): Doing {
  return runtimeWith(runtime, {
    step: (key, work, options) =>
      runtime.step(
        key,
        (step) =>
          through(watch, `step ${key}`, () =>
            at({ kind: "step", effect: key, class: options?.effect ?? "idempotent" }, () => work(step)),
          ),
        options,
      ),
    model: (call, key) => through(watch, "the model's answer", () => runtime.model(call, key)),
  });
}

/** Come to a point before some work and to one after it; a dead process does neither. */
async function through<Value>({ alive, point }: Watch, name: string, work: () => Value): Promise<Awaited<Value>> {
  point(`before ${name}`);
  if (!alive()) return never();
  const value = await work();
  if (alive()) point(`after ${name}`);
  return alive() ? value : never();
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
