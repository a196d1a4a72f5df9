/** What the tools of a graph and the middleware around them need of it: questions and channels that it must declare. */
import type { GraphDefinition } from "../define/graph.ts";
import { graphOfTool } from "../define/graph-tool.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import type { GraphProblem } from "./problem.ts";

/** Questions that middleware and client-side tools ask, and channels of middleware, that are not declared. */
export function toolClaimProblems(graph: GraphDefinition): GraphProblem[] {
  const problems = [
    ...unmet(graph, graph.middleware, ""),
    ...graph.tools.flatMap((tool) => clientProblem(graph, tool)),
  ];
  for (const { name: node, tools } of graph.nodes.values())
    if (tools !== undefined) problems.push(...needsOf(graph, node, tools.middleware as readonly Middleware[]));
  return problems;
}

/** What the middleware of a graph needs of it and of the graphs inside it, where there are tool nodes. */
function unmet(graph: GraphDefinition, middleware: readonly Middleware[], path: string): GraphProblem[] {
  if (middleware.length === 0) return [];
  const handed = middleware.filter(({ inherited }) => inherited !== true);
  return [...graph.nodes.values()].flatMap(({ name, tools, subgraph }) => {
    if (subgraph !== undefined) return unmet(subgraph.graph, handed, `${path}${name}.`);
    if (tools === undefined) return [];
    const inner = [...tools.defined].flatMap(([tool, { graph: given }]) => {
      const inside = graphOfTool({ graph: given });
      // One that is given later may not be there yet.
      return inside === undefined || inside.isLater ? [] : unmet(inside.graph(), handed, `${path}${tool}.`);
    });
    return [...needsOf(graph, path + name, middleware), ...inner];
  });
}

function needsOf(
  { name: graph, interrupts, state }: GraphDefinition,
  node: string,
  middleware: readonly Middleware[],
): GraphProblem[] {
  return middleware.flatMap(({ name, asks = [], channels = {}, interrupts: own = {} }) => [
    ...Object.keys(own)
      .filter((key) => !Object.hasOwn(interrupts, key))
      .map(
        (key): GraphProblem => ({
          code: "unknown_interrupt",
          node,
          message: `the middleware "${name}" of the tool node "${node}" asks "${key}", which the graph "${graph}" does not declare`,
          hint: "add its interrupts to those of the graph: interrupts: { …, ...middleware.interrupts }",
        }),
      ),
    ...asks
      .filter((key) => !Object.hasOwn(interrupts, key))
      .map(
        (key): GraphProblem => ({
          code: "unknown_interrupt",
          node,
          message: `the middleware "${name}" of the tool node "${node}" asks "${key}", which the graph "${graph}" does not declare`,
          hint: `add it to the graph's interrupts: { ${key}: approval }`,
        }),
      ),
    ...Object.keys(channels)
      .filter((channel) => !Object.hasOwn(state.channels, channel))
      .map(
        (channel): GraphProblem => ({
          code: "unknown_channel",
          node,
          message: `the middleware "${name}" of the tool node "${node}" keeps its facts in the channel "${channel}", which is not in the state of "${graph}"`,
          hint: "add its channels to the state: defineState({ …, ...middleware.channels })",
        }),
      ),
  ]);
}

function clientProblem({ name: graph, interrupts }: GraphDefinition, tool: GraphDefinition["tools"][number]) {
  const { name, client } = tool.spec;
  if (client !== true || Object.hasOwn(interrupts, name)) return [];
  const problem: GraphProblem = {
    code: "unknown_interrupt",
    node: name,
    message: `the tool "${name}" has no body, so its calls are questions under the key "${name}", which the graph "${graph}" does not declare`,
    hint: `add it to the graph's interrupts: { ${name}: the schema of its answer }`,
  };
  return [problem];
}
