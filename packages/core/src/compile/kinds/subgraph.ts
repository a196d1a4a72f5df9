/** Subgraph kind: a graph in place of a body, with a state and a namespace of its own. */
import type { GraphDefinition, NodeKind, NodeRecord, SubgraphRecord } from "../../define/graph.ts";
import { getToolGraph } from "../../define/graph-tool.ts";
import type { GraphProblem } from "../../define/problem.ts";
import { getProgramDefinition } from "../program.ts";
import { functionKind } from "./function.ts";

/** Kind of a node that runs a graph. */
export const subgraphKind: NodeKind = Object.freeze({
  ...functionKind,
  execute: (engine, task) => engine.runGraph(task, getRecord(task.node)),
  endsBeforeRetry: true,
  listSubgraphs: (node) => [getRecord(node)],
  getInterruptObstacle: () => "is a subgraph, whose own nodes interrupt",
  findProblems: (node) => findSubgraphProblems(node, getRecord(node)),
  outline: (node, path, { describe }) => describe(getRecord(node).graph, path),
  canRecord: ({ kind }) => kind === "task",
} satisfies NodeKind);

function getRecord({ subgraph }: NodeRecord): SubgraphRecord {
  return subgraph as SubgraphRecord;
}

function findSubgraphProblems(
  { name: node, logic, policy }: NodeRecord,
  { graph, persistence }: SubgraphRecord,
): readonly GraphProblem[] {
  const problems: GraphProblem[] = [];
  if (!getProgramDefinition(graph).isNestable)
    problems.push({
      code: "machine_subgraph",
      node,
      message: `the subgraph "${node}" is a user-written machine`,
      hint: "run the machine on its own thread, or invoke machines from a machine",
    });
  if (persistence === "per-thread" && logic.takesInput)
    problems.push({
      code: "persistent_subgraph_sent",
      node,
      message: `the subgraph "${node}" persists its state per thread, and sends would run several calls in parallel`,
      hint: 'use persistence "per-call" for a node that receives sends',
    });
  if (policy.effect === "once")
    problems.push({
      code: "once_subgraph",
      node,
      message: `the subgraph "${node}" is declared with effect "once"`,
      hint: "declare the effect on its nodes, tools and steps, each of which is recorded",
    });
  if (persistence === "none" && needsPersistence(graph))
    problems.push({
      code: "unpersisted_subgraph",
      node,
      message: `the subgraph "${node}" is not persisted, but may interrupt or has "once" effects`,
      hint: 'use persistence "per-call"',
    });
  return problems;
}

/** Returns true if the graph, or an inner graph, may interrupt or has `once` effects. */
function needsPersistence(graph: GraphDefinition): boolean {
  return (
    Object.keys(graph.interrupts).length > 0 ||
    graph.tools.some((tool) => {
      const inner = getToolGraph(tool);
      return tool.spec.effect === "once" || (inner !== undefined && !inner.isLazy && needsPersistence(inner.graph()));
    }) ||
    [...graph.nodes.values()].some(
      (node) =>
        node.policy.effect === "once" || node.logic.listSubgraphs(node).some((inner) => needsPersistence(inner.graph)),
    )
  );
}
