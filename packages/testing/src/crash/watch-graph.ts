/**
 * Wraps a graph with a crash point at every place between two commits: node bodies, steps, model calls and tool
 * calls.
 */
import type { Graph, GraphDefinition, GraphTypes, Model } from "@statewright/core";
import { replaceGraphParts, replaceRuntimeParts } from "../node/replace-parts.ts";
import { instrument } from "../run/instrument.ts";
import { runAt } from "./external-world.ts";

type NodeRecord = GraphDefinition["nodes"] extends ReadonlyMap<string, infer Node> ? Node : never;
type Body = NodeRecord["body"];

/** Hooks of a watched graph. */
export interface CrashHooks {
  readonly alive: () => boolean;
  /** Called at a crash point. The process can be dead afterwards. */
  readonly point: (name: string) => void;
  readonly model: Model | undefined;
}

/** Runtime methods of a node body with a start and an end. */
interface BodyRuntime {
  readonly step: (
    key: string,
    work: (at: never) => unknown,
    options?: { readonly effect?: string },
  ) => Promise<unknown>;
  readonly model: (call: never, key?: string) => Promise<unknown>;
  readonly generate: (request: never) => Promise<unknown>;
}

/** Returns a copy of the graph with crash points. The original graph is unchanged. */
export function watchGraph<Types extends GraphTypes>(graph: Graph<Types>, watch: CrashHooks): Graph<Types> {
  const { alive, model } = watch;
  const instrumented = instrument(graph, {
    isAlive: alive,
    model,
    onToolExecuted: () => undefined,
    wrapToolBody: ({ tool }, body) => {
      const effect = graph.tools.find(({ spec }) => spec.name === tool)?.spec.effect;
      return runBetweenPoints(watch, `tool ${tool}`, () => runAt({ kind: "tool", effect: tool, class: effect }, body));
    },
  });
  return replaceGraphParts(instrumented, { nodes: watchNodes(instrumented, watch, "") });
}

function watchNodes(graph: GraphDefinition, watch: CrashHooks, path: string): GraphDefinition["nodes"] {
  return new Map([...graph.nodes].map(([name, node]) => [name, watchNode(node, watch, path + name)]));
}

function watchNode(node: NodeRecord, watch: CrashHooks, name: string): NodeRecord {
  const { subgraph } = node;
  if (subgraph !== undefined) {
    const inner = subgraph.graph as Graph;
    return {
      ...node,
      subgraph: { ...subgraph, graph: replaceGraphParts(inner, { nodes: watchNodes(inner, watch, `${name}.`) }) },
    };
  }
  if (node.tools !== undefined) return node;
  const body: Body = (state, runtime) =>
    runBetweenPoints(watch, `node ${name}`, () =>
      runAt({ node: name }, () => node.body(state, watchRuntime(runtime as BodyRuntime, watch) as never)),
    ) as ReturnType<Body>;
  return { ...node, body };
}

function watchRuntime(runtime: BodyRuntime, watch: CrashHooks): BodyRuntime {
  return replaceRuntimeParts(runtime, {
    step: (key, work, options) =>
      runtime.step(
        key,
        (step) =>
          runBetweenPoints(watch, `step ${key}`, () =>
            runAt({ kind: "step", effect: key, class: options?.effect ?? "idempotent" }, () => work(step)),
          ),
        options,
      ),
    model: (call, key) => runBetweenPoints(watch, "the model's answer", () => runtime.model(call, key)),
    generate: (request) => runBetweenPoints(watch, "the model's answer", () => runtime.generate(request)),
  });
}

/** Runs a function between two crash points. Never resolves when the process dies. */
async function runBetweenPoints<Value>(
  { alive, point }: CrashHooks,
  name: string,
  work: () => Value,
): Promise<Awaited<Value>> {
  point(`before ${name}`);
  if (!alive()) return waitForever();
  const value = await work();
  if (alive()) point(`after ${name}`);
  return alive() ? value : waitForever();
}

function waitForever(): Promise<never> {
  return new Promise(() => undefined);
}
