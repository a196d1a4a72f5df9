/**
 * `checkGraph`: walk every control state that a run may come to, whatever its nodes do and its functions choose, and say
 * where it would be caught. What a body computes is not looked at; what it may ask and write is known where it says so.
 */
import { StatewrightError } from "../../base/errors.ts";
import { checkOptions } from "../../base/options.ts";
import type { Graph } from "../../compile/define-graph.ts";
import { type Plan, planOf } from "../../compile/plan.ts";
import type { GraphDefinition, GraphTypes } from "../../define/graph.ts";
import { graphOfTool } from "../../define/graph-tool.ts";
import { nameIn, pathTo, type Site } from "./checked-graph.ts";
import { endlessLoops } from "./endless-loops.ts";
import { walkControl } from "./explore-states.ts";
import { questionFaults } from "./interrupt-violations.ts";
import { machineFaults } from "./machine-mismatches.ts";
import { doubleAnswers, lostWrites, unknownWrites } from "./parallel-writes.ts";
import type { GraphReport, GraphViolation } from "./report.ts";

/** What `checkGraph` takes besides the graph. */
export interface CheckOptions {
  /** Supersteps of one graph to walk at most, 100,000 by default; a graph with more is reported as `unchecked`. */
  readonly limit?: number;
}

/**
 * Prove that a graph, and each graph inside it, has no dead end, loses no write and can finish from every state: each task
 * may end in every way that its edge allows, fail or ask; a run may be resumed, tried again and cancelled at any time.
 * Choices count as independent of each other. Throws `invalid_option` for a limit that is no whole number from 1, and for a
 * machine drawn by hand.
 */
export function checkGraph<Types extends GraphTypes>(graph: Graph<Types>, options: CheckOptions = {}): GraphReport {
  checkOptions("checkGraph", options, ["limit"]);
  const { limit = 100_000 } = options;
  checkLimit(limit);
  const sites = sitesOf(graph as Graph, limit);
  const violations = sites.flatMap((site) => [
    ...refusedSteps(site),
    ...endlessLoops(site),
    ...lostWrites(site),
    ...doubleAnswers(site),
    ...questionFaults(site),
    ...machineFaults(site),
    ...unchecked(site, limit),
  ]);
  return {
    violations: violations.toSorted((one, other) => one.path.length - other.path.length),
    unknownWrites: sites.flatMap(unknownWrites),
  };
}

/** The graph and those inside it, each once, where the shortest way leads into it. */
function sitesOf(outermost: Graph, limit: number): readonly Site[] {
  const sites = new Map<GraphDefinition, Site>();
  let found: readonly Entrance[] = [{ graph: outermost, prefix: "", way: [] }];
  for (;;) {
    const [nearest, ...others] = found.toSorted((one, other) => one.way.length - other.way.length);
    if (nearest === undefined) return [...sites.values()];
    found = others;
    if (sites.has(nearest.graph)) continue;
    const site = siteOf(nearest, limit);
    sites.set(nearest.graph, site);
    found = [...others, ...entrances(site)];
  }
}

type Entrance = Pick<Site, "graph" | "prefix" | "way">;

function entrances(site: Site): readonly Entrance[] {
  return [...site.plan.nodes.values()].flatMap(({ name, subgraph, tools }) => {
    const inner = subgraph === undefined ? [] : [[name, subgraph.graph] as const];
    for (const [tool, defined] of tools?.defined ?? []) {
      const graph = graphOfTool(defined)?.graph();
      if (graph !== undefined) inner.push([tool, graph]);
    }
    return inner.map(([called, graph]) => ({
      graph: graph as Graph,
      prefix: `${nameIn(site, called)}.`,
      way: wayInto(site, name),
    }));
  });
}

function siteOf({ graph, prefix, way }: Entrance, limit: number): Site {
  const plan = planOf(graph);
  if (plan.drawing !== undefined) throw handDrawn(plan);
  return { graph, plan, walk: walkControl(plan, limit), prefix, way };
}

/** The path to the first superstep of a node; a walk that was cut may not have come to it. */
function wayInto(site: Site, name: string): readonly string[] {
  const [start] = site.walk.states;
  const state = site.walk.states.find(({ pending }) => pending.some(({ node }) => node === name));
  if (state !== undefined) return pathTo(site, state);
  return [...(start === undefined ? [] : pathTo(site, start)), nameIn(site, name)];
}

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 1) return;
  throw new StatewrightError("invalid_option", { what: `limit is ${limit}`, next: "Give a whole number from 1" });
}

function handDrawn({ graph }: Plan): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `"${graph.name}" is a machine drawn by hand, whose guards and actions only it knows`,
    next: "Walk it with xstate/graph; checkGraph reads what defineGraph was given",
    place: { graph: graph.name },
  });
}

function refusedSteps(site: Site): GraphViolation[] {
  return site.walk.refusals.map(({ at, error }) =>
    error.code === "empty_sends"
      ? { rule: "empty_sends", path: [...pathTo(site, at), "(no items)"], message: error.message }
      : { rule: "dead_end", path: [...pathTo(site, at), "(nothing runs)"], message: error.message },
  );
}

function unchecked(site: Site, limit: number): GraphViolation[] {
  const { states, cutAt } = site.walk;
  if (cutAt === undefined) return [];
  return [
    {
      rule: "unchecked",
      path: pathTo(site, cutAt),
      message: `the graph has more than ${limit} supersteps to walk, ${states.length} states were seen, and what comes after this one is not proven: give a higher limit, or let fewer nodes choose at the same time`,
    },
  ];
}
