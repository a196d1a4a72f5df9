/** Coverage put together over all tests, as numbers and as a table. */
import { END, printable, START, StatewrightError } from "@statewright/core";
import { type Covered, type CoveredKind, coveredKinds, type Declared } from "./hits.ts";

/** What the tests came to in one graph. */
export interface GraphCoverage {
  readonly graph: string;
  readonly declared: Declared;
  readonly hits: Covered;
}

/** The least that a graph may have of each kind, in percent. */
export type CoverageThreshold = { readonly [Kind in CoveredKind]?: number };

/** What was never come to. */
export function missedIn({ declared, hits }: GraphCoverage, kind: CoveredKind): readonly string[] {
  return declared[kind].filter((name) => !hits[kind].includes(name));
}

/**
 * The coverage without the parts that no test has to come to, named as the table names them. Throws `invalid_option` for a
 * name that the graph does not have, so that none outlives what it excepts.
 */
export function leavingOut(coverage: GraphCoverage, names: readonly string[]): GraphCoverage {
  const { graph, declared } = coverage;
  const known = new Set(coveredKinds.flatMap((kind) => declared[kind].map(inWords)));
  for (const name of names)
    if (!known.has(name))
      throw new StatewrightError("invalid_option", {
        what: `\`except\` of the coverage names "${printable(name)}", which the graph "${printable(graph)}" does not have`,
        next: "Name a part as the table of the coverage names it, or leave the name out",
      });
  const left = coveredKinds.map((kind) => [kind, declared[kind].filter((name) => !names.includes(inWords(name)))]);
  return { ...coverage, declared: { ...declared, ...Object.fromEntries(left) } };
}

/** How much was come to, in percent; of nothing, all. */
function percentOf(coverage: GraphCoverage, kind: CoveredKind): number {
  const all = coverage.declared[kind].length;
  return all === 0 ? 100 : Math.floor((100 * (all - missedIn(coverage, kind).length)) / all);
}

/** The table: a line for each graph, and below it what no test came to. */
export function coverageTable(graphs: readonly GraphCoverage[]): string {
  const head = ["graph", ...coveredKinds];
  const rows = graphs.map((coverage) => [printable(coverage.graph), ...coveredKinds.map((kind) => cell(coverage, kind))]);
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells.map((text, column) => (column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0))).join("  ");
  const lines = graphs.flatMap((coverage, index) => [
    line(rows[index] ?? []),
    ...coveredKinds.flatMap((kind) => {
      const missed = missedIn(coverage, kind);
      return missed.length === 0 ? [] : [`  ${kind} never: ${missed.map(inWords).join(", ")}`];
    }),
  ]);
  return [line(head), ...lines].join("\n");
}

/** What is below the threshold, a sentence for each. */
export function belowThreshold(graphs: readonly GraphCoverage[], threshold: CoverageThreshold): readonly string[] {
  return graphs.flatMap((coverage) =>
    coveredKinds.flatMap((kind) => {
      const [least, found] = [threshold[kind], percentOf(coverage, kind)];
      if (least === undefined || found >= least) return [];
      return [
        `the tests come to ${found} % of the ${kind} of the graph "${printable(coverage.graph)}", less than ${least} %: never ${missedIn(coverage, kind).map(inWords).join(", ")}`,
      ];
    }),
  );
}

function cell(coverage: GraphCoverage, kind: CoveredKind): string {
  const all = coverage.declared[kind].length;
  if (all === 0) return "-";
  return `${all - missedIn(coverage, kind).length}/${all} ${String(percentOf(coverage, kind)).padStart(3)} %`;
}

/** Ids of edges as people read them. */
function inWords(name: string): string {
  return printable(name.replace(" -> ", " → ").replaceAll(START, "start").replaceAll(END, "end"));
}
