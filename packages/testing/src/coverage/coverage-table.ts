/** Graph coverage over all tests, as numbers and as a table. */
import { END, START } from "@statewright/core";
import { escapeControlChars, invalidOption } from "@statewright/core/adapter";
import { type CoveredParts, type CoveredKind, coveredKinds, type DeclaredParts } from "./hits.ts";

/** Covered parts of a graph. */
export interface GraphCoverage {
  readonly graph: string;
  readonly declared: DeclaredParts;
  readonly hits: CoveredParts;
}

/** Minimum coverage of each kind, in percent, for every graph. */
export type CoverageThreshold = { readonly [Kind in CoveredKind]?: number };

/** Lists the declared parts of a kind that no test covered. */
export function listUncovered({ declared, hits }: GraphCoverage, kind: CoveredKind): readonly string[] {
  return declared[kind].filter((name) => !hits[kind].includes(name));
}

/**
 * Returns the coverage without the excepted parts, named as in the coverage table. Throws `invalid_option` for a name
 * that the graph does not have, so that no exception outlives a removed part.
 */
export function removeExcepted(coverage: GraphCoverage, names: readonly string[]): GraphCoverage {
  const { graph, declared } = coverage;
  const known = new Set(coveredKinds.flatMap((kind) => declared[kind].map(toDisplayName)));
  for (const name of names)
    if (!known.has(name))
      throw invalidOption({
        where: "coverage",
        option: "except",
        expected: `names from the coverage table of the graph "${graph}"`,
        got: name,
        fix: "Use a name from the table, or remove the name",
      });
  const remaining = coveredKinds.map((kind) => [kind, declared[kind].filter((name) => !names.includes(toDisplayName(name)))]);
  return { ...coverage, declared: { ...declared, ...Object.fromEntries(remaining) } };
}

/** Returns the coverage of a kind in percent; 100 when the graph has no part of this kind. */
function computePercent(coverage: GraphCoverage, kind: CoveredKind): number {
  const all = coverage.declared[kind].length;
  return all === 0 ? 100 : Math.floor((100 * (all - listUncovered(coverage, kind).length)) / all);
}

/** Formats the coverage as a table with a row per graph, followed by the uncovered parts. */
export function formatCoverageTable(graphs: readonly GraphCoverage[]): string {
  const head = ["graph", ...coveredKinds];
  const rows = graphs.map((coverage) => [escapeControlChars(coverage.graph), ...coveredKinds.map((kind) => formatCell(coverage, kind))]);
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const formatRow = (cells: readonly string[]): string =>
    cells.map((text, column) => (column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0))).join("  ");
  const lines = graphs.flatMap((coverage, index) => [
    formatRow(rows[index] ?? []),
    ...coveredKinds.flatMap((kind) => {
      const uncovered = listUncovered(coverage, kind);
      return uncovered.length === 0 ? [] : [`  ${kind} never: ${uncovered.map(toDisplayName).join(", ")}`];
    }),
  ]);
  return [formatRow(head), ...lines].join("\n");
}

/** Lists the violations of the threshold, a sentence each. */
export function listViolations(graphs: readonly GraphCoverage[], threshold: CoverageThreshold): readonly string[] {
  return graphs.flatMap((coverage) =>
    coveredKinds.flatMap((kind) => {
      const [min, percent] = [threshold[kind], computePercent(coverage, kind)];
      if (min === undefined || percent >= min) return [];
      return [
        `coverage of the ${kind} of the graph "${escapeControlChars(coverage.graph)}": expected at least ${min} %, got ${percent} %. Not covered: ${listUncovered(coverage, kind).map(toDisplayName).join(", ")}`,
      ];
    }),
  );
}

function formatCell(coverage: GraphCoverage, kind: CoveredKind): string {
  const all = coverage.declared[kind].length;
  if (all === 0) return "-";
  return `${all - listUncovered(coverage, kind).length}/${all} ${String(computePercent(coverage, kind)).padStart(3)} %`;
}

/** Formats an edge id for people: `→` instead of `->`, `start` and `end` instead of the internal node names. */
function toDisplayName(name: string): string {
  return escapeControlChars(name.replace(" -> ", " → ").replaceAll(START, "start").replaceAll(END, "end"));
}
