/**
 * Model routes of a graph: each becomes a node that asks the model, and commands to the targets. The choice is an
 * ordinary recorded effect of that node.
 */
import { isStatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import { goto } from "../define/command.ts";
import { commandTargets, END, START } from "../define/edge.ts";
import type { NodeRecord } from "../define/graph.ts";
import type { ModelRoute } from "../define/model-route.ts";
import type { NodeRuntime } from "../define/node.ts";
import type { GraphProblem } from "../define/problem.ts";
import type { JsonSchemaInput } from "../tool/arguments/json-schema.ts";
import { functionKind } from "./kinds/function.ts";

/** Declared edges and nodes, with a node and two edges in place of each model route. */
interface ExpandedRoutes {
  readonly edges: Readonly<Record<string, unknown>>;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  readonly problems: readonly GraphProblem[];
}

type AnyRoute = ModelRoute<never, string, never>;

/** Replaces the model routes of a graph by nodes. */
export function expandModelRoutes(
  edges: Readonly<Record<string, unknown>>,
  nodes: ReadonlyMap<string, NodeRecord>,
): ExpandedRoutes {
  const routes = Object.entries(edges).flatMap(([source, edge]) => (isModelRoute(edge) ? [{ source, edge }] : []));
  if (routes.length === 0) return { edges, nodes, problems: [] };
  const problems: GraphProblem[] = [];
  const expandedEdges: Record<string, unknown> = { ...edges };
  const expandedNodes = new Map(nodes);
  for (const { source, edge } of routes) {
    const name = `${source === START ? "start" : source}_route`;
    if (nodes.has(name))
      problems.push({
        code: "not_an_edge",
        node: source,
        message: `the model route from "${source}" is the node "${name}", and another node has that name`,
        hint: "rename the other node",
      });
    expandedNodes.set(name, createRouteNode(name, expandedNodes.size, edge));
    expandedEdges[source] = name;
    expandedEdges[name] = commandTargets(...edge.targets);
  }
  return { edges: expandedEdges, nodes: expandedNodes, problems };
}

function isModelRoute(edge: unknown): edge is AnyRoute {
  return isPlainObject(edge) && edge["kind"] === "modelRoute" && isPlainObject(edge["options"]);
}

function createRouteNode(name: string, index: number, route: AnyRoute): NodeRecord {
  const labels = new Map(route.targets.map((target) => [toLabel(target, route.targets), target]));
  const output = { schema: createChoiceSchema([...labels.keys()]), name: "route" };
  const system = createInstructions(route, labels);
  const { prompt, messages, otherwise, describe: _describe, ...call } = route.options;
  return {
    name,
    index,
    logic: functionKind,
    policy: { writes: [], interrupts: [] },
    body: async (state: never, runtime: NodeRuntime<never>) => {
      const { context } = runtime;
      try {
        const { object } = await runtime.generate({
          ...call,
          system,
          ...(prompt === undefined ? {} : { prompt: prompt(state, context) }),
          ...(messages === undefined ? {} : { messages: messages(state, context) }),
          output,
        });
        return goto(labels.get(object) ?? object);
      } catch (error) {
        const isModelError = isStatewrightError(error, "invalid_output") || isStatewrightError(error, "model_failed");
        if (otherwise === undefined || !isModelError || runtime.signal.aborted) throw error;
        return goto(otherwise);
      }
    },
  };
}

/** Name of a target for the model. */
function toLabel(target: string, targets: readonly string[]): string {
  if (target !== END) return target;
  return targets.includes("end") ? "END" : "end";
}

function createChoiceSchema(labels: readonly string[]): JsonSchemaInput<string> {
  return {
    jsonSchema: { type: "string", enum: [...labels] },
    validate: (value) =>
      typeof value === "string" && labels.includes(value)
        ? []
        : [{ path: "", message: `expected one of ${labels.map((label) => `"${label}"`).join(", ")}` }],
  };
}

function createInstructions({ options }: AnyRoute, labels: ReadonlyMap<string, string>): string {
  const descriptions: Readonly<Record<string, string | undefined>> = options.describe ?? {};
  const list = [...labels].map(([label, target]) => {
    const meaning = descriptions[target] ?? (target === END ? "nothing is left to do" : undefined);
    return meaning === undefined ? `- ${label}` : `- ${label}: ${meaning}`;
  });
  const choice = `Choose what happens next. Answer with one of these names:\n${list.join("\n")}`;
  return options.system === undefined ? choice : `${options.system}\n\n${choice}`;
}
