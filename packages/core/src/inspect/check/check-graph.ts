/**
 * `checkGraph`: explores every reachable control state, for all node outcomes and route choices, and reports states
 * where a run would be stuck. Node bodies are not analyzed; declared interrupts and writes are used.
 */

import type { StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { checkCount, checkOptions } from "../../base/options.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan, type Plan } from "../../compile/plan.ts";
import { checkGraphOption } from "../../define/check-graph-option.ts";
import type { GraphDefinition, GraphTypes } from "../../define/graph.ts";
import { getToolGraph } from "../../define/graph-tool.ts";
import { type CheckedGraph, getPath, toQualifiedName } from "./checked-graph.ts";
import { findEndlessLoops } from "./endless-loops.ts";
import { exploreStates } from "./explore-states.ts";
import { findInterruptViolations } from "./interrupt-violations.ts";
import { findMachineMismatches } from "./machine-mismatches.ts";
import { findLostWrites, findParallelToolNodes, listUnknownWrites } from "./parallel-writes.ts";
import type { GraphReport, GraphViolation } from "./report.ts";

/** Options of `checkGraph`. */
export interface CheckOptions {
  /** Maximum supersteps to explore per graph, default 100,000; a larger graph is reported as `unchecked`. */
  readonly limit?: number;
}

/**
 * Verifies that a graph and each inner graph have no dead end, lose no write and can finish from every state. Each
 * task may end in every way its edge allows, fail or interrupt; a run may be resumed, retried and cancelled at any
 * time. Choices count as independent. Throws `invalid_option` for a limit that is not an integer from 1, and for a
 * user-written machine.
 */
export function checkGraph<Types extends GraphTypes>(graph: Graph<Types>, options: CheckOptions = {}): GraphReport {
  checkGraphOption("checkGraph", graph);
  checkOptions("checkGraph", options, ["limit"]);
  const { limit = 100_000 } = options;
  checkCount("checkGraph", { limit });
  const checkedGraphs = exploreGraphs(graph as Graph, limit);
  const violations = checkedGraphs.flatMap((checked) => [
    ...findRefusedSteps(checked),
    ...findEndlessLoops(checked),
    ...findLostWrites(checked),
    ...findParallelToolNodes(checked),
    ...findInterruptViolations(checked),
    ...findMachineMismatches(checked),
    ...findUnchecked(checked, limit),
  ]);
  return {
    violations: violations.toSorted((first, second) => first.path.length - second.path.length),
    unknownWrites: checkedGraphs.flatMap(listUnknownWrites),
  };
}

/** Returns the graph and its inner graphs, each once, by the shortest path from the outermost graph. */
function exploreGraphs(outermost: Graph, limit: number): readonly CheckedGraph[] {
  const checkedGraphs = new Map<GraphDefinition, CheckedGraph>();
  let queue: readonly Entrance[] = [{ graph: outermost, prefix: "", entryPath: [] }];
  for (;;) {
    const [nearest, ...others] = queue.toSorted((first, second) => first.entryPath.length - second.entryPath.length);
    if (nearest === undefined) return [...checkedGraphs.values()];
    queue = others;
    if (checkedGraphs.has(nearest.graph)) continue;
    const checked = exploreGraph(nearest, limit);
    checkedGraphs.set(nearest.graph, checked);
    queue = [...others, ...listEntrances(checked)];
  }
}

type Entrance = Pick<CheckedGraph, "graph" | "prefix" | "entryPath">;

function listEntrances(checked: CheckedGraph): readonly Entrance[] {
  return [...checked.plan.nodes.values()].flatMap((node) => {
    const { name, logic } = node;
    const inner = logic.listSubgraphs(node).map(({ graph }) => [name, graph] as const);
    for (const { initialTools } of logic.listTools(node))
      for (const [tool, defined] of initialTools) {
        const graph = getToolGraph(defined)?.graph();
        if (graph !== undefined) inner.push([tool, graph]);
      }
    return inner.map(([called, graph]) => ({
      graph: graph as Graph,
      prefix: `${toQualifiedName(checked, called)}.`,
      entryPath: getEntryPath(checked, name),
    }));
  });
}

function exploreGraph({ graph, prefix, entryPath }: Entrance, limit: number): CheckedGraph {
  const plan = getPlan(graph);
  if (!plan.program.isReadable) throw createMachineError(plan);
  return { graph, plan, exploration: exploreStates(plan, limit), prefix, entryPath };
}

/** Returns the path to the first superstep of a node; a truncated exploration may not contain the node. */
function getEntryPath(checked: CheckedGraph, name: string): readonly string[] {
  const [start] = checked.exploration.states;
  const state = checked.exploration.states.find(({ pending }) => pending.some(({ node }) => node === name));
  if (state !== undefined) return getPath(checked, state);
  return [...(start === undefined ? [] : getPath(checked, start)), toQualifiedName(checked, name)];
}

function createMachineError({ graph }: Plan): StatewrightError {
  return invalidOption({
    where: "checkGraph",
    expected: "a graph of defineGraph",
    found: `the user-written machine "${graph.name}", whose guards and actions cannot be read`,
    fix: "Use xstate/graph to explore the machine",
    place: { graph: graph.name },
  });
}

function findRefusedSteps(checked: CheckedGraph): GraphViolation[] {
  return checked.exploration.refusedSteps.map(({ at, error }) =>
    error.code === "empty_fan_out"
      ? { rule: "empty_fan_out", path: [...getPath(checked, at), "(no items)"], message: error.message }
      : { rule: "dead_end", path: [...getPath(checked, at), "(nothing runs)"], message: error.message },
  );
}

function findUnchecked(checked: CheckedGraph, limit: number): GraphViolation[] {
  const { states, truncatedAt } = checked.exploration;
  if (truncatedAt === undefined) return [];
  return [
    {
      rule: "unchecked",
      path: getPath(checked, truncatedAt),
      message: `the graph has more than ${limit} supersteps to explore; ${states.length} states were checked, and successors of this state are not verified: pass a higher limit, or reduce the number of nodes that choose in parallel`,
    },
  ];
}
