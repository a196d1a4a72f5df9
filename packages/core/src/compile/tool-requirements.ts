/**
 * Checks the requirements of tools and middleware against the graph: interrupts and channels that the graph must
 * declare.
 */
import type { GraphDefinition } from "../define/graph.ts";
import { getToolGraph } from "../define/graph-tool.ts";
import type { GraphProblem } from "../define/problem.ts";
import type { Middleware } from "../tool/policy/middleware.ts";

/** Returns undeclared interrupts of middleware and client-side tools, and undeclared channels of middleware. */
export function findToolRequirementProblems(graph: GraphDefinition): GraphProblem[] {
  const problems = [
    ...findUnmetRequirements(graph, graph.middleware, ""),
    ...graph.tools.flatMap((tool) => findClientToolProblem(graph, tool)),
  ];
  for (const node of graph.nodes.values())
    for (const { middleware } of node.logic.listTools(node))
      problems.push(...findMissingDeclarations(graph, node.name, middleware as readonly Middleware[]));
  return problems;
}

/** Returns unmet requirements of graph middleware, in the tool nodes of the graph and of its inner graphs. */
function findUnmetRequirements(
  graph: GraphDefinition,
  middleware: readonly Middleware[],
  path: string,
): GraphProblem[] {
  if (middleware.length === 0) return [];
  const passedDown = middleware.filter(({ inherited }) => inherited !== true);
  return [...graph.nodes.values()].flatMap((node) => [
    ...node.logic
      .listSubgraphs(node)
      .flatMap((inner) => findUnmetRequirements(inner.graph, passedDown, `${path}${node.name}.`)),
    ...node.logic.listTools(node).flatMap(({ initialTools }) => [
      ...findMissingDeclarations(graph, path + node.name, middleware),
      ...[...initialTools].flatMap(([tool, { graph: toolGraph }]) => {
        const inside = getToolGraph({ graph: toolGraph });
        // A lazy graph may not be defined yet.
        return inside === undefined || inside.isLazy
          ? []
          : findUnmetRequirements(inside.graph(), passedDown, `${path}${tool}.`);
      }),
    ]),
  ]);
}

function findMissingDeclarations(
  { name: graph, interrupts, state }: GraphDefinition,
  node: string,
  middleware: readonly Middleware[],
): GraphProblem[] {
  return middleware.flatMap(({ name, channels = {}, interrupts: declared = {} }) => [
    ...Object.keys(declared)
      .filter((key) => !Object.hasOwn(interrupts, key))
      .map(
        (key): GraphProblem => ({
          code: "unknown_interrupt",
          node,
          message: `the middleware "${name}" of the tool node "${node}" has the interrupt "${key}", which the graph "${graph}" does not declare`,
          hint: "add its interrupts to those of the graph: interrupts: { …, ...middleware.interrupts }",
        }),
      ),
    ...Object.keys(channels)
      .filter((channel) => !Object.hasOwn(state.channels, channel))
      .map(
        (channel): GraphProblem => ({
          code: "unknown_channel",
          node,
          message: `the middleware "${name}" of the tool node "${node}" stores its state in the channel "${channel}", which is not in the state of "${graph}"`,
          hint: "add its channels to the state: defineState({ …, ...middleware.channels })",
        }),
      ),
  ]);
}

function findClientToolProblem({ name: graph, interrupts }: GraphDefinition, tool: GraphDefinition["tools"][number]) {
  const { name, client } = tool.spec;
  if (client !== true || Object.hasOwn(interrupts, name)) return [];
  const problem: GraphProblem = {
    code: "unknown_interrupt",
    node: name,
    message: `the tool "${name}" has no body, so its calls are interrupts with the key "${name}", which the graph "${graph}" does not declare`,
    hint: `add it to the graph's interrupts: { ${name}: the schema of its answer }`,
  };
  return [problem];
}
