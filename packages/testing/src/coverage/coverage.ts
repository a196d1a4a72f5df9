/**
 * Vitest reporter of graph coverage. Merges the coverage that `testRun` recorded in every worker, prints a table,
 * checks the threshold and, when `pictures` is set, writes one picture per graph. Writes no other file.
 *
 * ```ts
 * reporters: ["default", ["@statewright/testing/coverage", { threshold: { edges: 90 } }]]
 * ```
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type { Outline, OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import { invalidOption } from "@statewright/core/adapter";
import {
  listViolations,
  type CoverageThreshold,
  formatCoverageTable,
  type GraphCoverage,
  removeExcepted,
  listUncovered,
} from "./coverage-table.ts";
import { type CoveredParts, type DeclaredParts, type GraphHits, mergeHits } from "./hits.ts";
import { metaKey } from "./meta-key.ts";

/** Options of the coverage reporter. */
export interface CoverageOptions {
  /** Minimum coverage of each kind, in percent, for every graph. The test run fails below the minimum. */
  readonly threshold?: CoverageThreshold;
  /** Folder for a picture per graph, with uncovered parts in red. Needs `@statewright/pictures`. */
  readonly pictures?: string;
  /** Names of the reported graphs. Default: every graph that a test ran. */
  readonly graphs?: readonly string[];
  /**
   * Parts without a need for coverage, by graph and named as in the table: `{ shop: ["review → end"] }`. Excepted
   * parts do not count.
   */
  readonly except?: Readonly<Record<string, readonly string[]>>;
}

/** Subset of the vitest reporter interface, identical in vitest 4 and 5. */
export interface CoverageReporter {
  /** Called by vitest at the start. */
  onInit(vitest: VitestPart): void;
  /** Called by vitest at the end: prints and writes the coverage. */
  onTestRunEnd(modules: readonly ModulePart[]): Promise<void>;
}

interface VitestPart {
  readonly config: { readonly root: string };
  readonly logger: { log(text: string): void; error(text: string): void };
}

interface ModulePart {
  readonly id: string;
  readonly children: { allTests(): Iterable<{ readonly id: string; meta(): object }> };
}

/** Creates the reporter: `reporters: [coverage({ pictures: "coverage" })]`, or by the name of this module. */
function coverage(options: CoverageOptions = {}): CoverageReporter {
  const { threshold = {}, pictures, graphs: graphNames, except = {} } = options;
  /** Covered parts by module and graph. In watch mode the result of a rerun module replaces the old result. */
  const coveredByModule = new Map<string, Map<string, CoveredParts>>();
  const declared = new Map<string, DeclaredParts>();
  let vitest: VitestPart | undefined;

  function addModules(modules: readonly ModulePart[]): void {
    for (const { id, children } of modules) {
      const graphs = new Map<string, CoveredParts>();
      coveredByModule.set(id, graphs);
      for (const test of children.allTests())
        for (const { graph, hits, declared: all } of readHits(test.meta())) {
          const before = graphs.get(graph);
          graphs.set(graph, before === undefined ? hits : mergeHits(before, hits));
          if (all !== undefined) declared.set(graph, all);
        }
    }
  }

  function mergeModules(): readonly GraphCoverage[] {
    const nothing: CoveredParts = { nodes: [], edges: [], interrupts: [], tools: [], guards: [] };
    return [...declared]
      .filter(([graph]) => graphNames?.includes(graph) !== false)
      .map(([graph, all]) => ({
        graph,
        declared: all,
        hits: [...coveredByModule.values()].reduce((hits, graphs) => mergeHits(hits, graphs.get(graph) ?? nothing), nothing),
      }))
      .map((each) => removeExcepted(each, except[each.graph] ?? []))
      .sort((a, b) => (a.graph < b.graph ? -1 : 1));
  }

  return {
    onInit: (instance) => {
      vitest = instance;
    },
    onTestRunEnd: async (modules) => {
      addModules(modules);
      const all = mergeModules();
      if (all.length === 0 || vitest === undefined) return;
      const { logger, config } = vitest;
      logger.log(`\nGraph coverage\n\n${formatCoverageTable(all)}\n`);
      if (pictures !== undefined) await writePictures(all, resolve(config.root, pictures), config.root);
      const below = listViolations(all, threshold);
      for (const line of below) logger.error(`ERROR: ${line}`);
      if (below.length > 0) process.exitCode = 1;
    },
  };
}

/** The reporter, as the default export that Vitest loads. */
export default coverage as typeof coverage & (new (options?: CoverageOptions) => CoverageReporter);

function readHits(meta: object): readonly GraphHits[] {
  const hits = metaKey in meta ? (meta as { readonly [metaKey]: unknown })[metaKey] : undefined;
  return Array.isArray(hits) ? (hits as readonly GraphHits[]) : [];
}

type DrawOutline = (
  outline: Outline,
  options: { readonly name: string; readonly mark: (part: OutlineNode | OutlineEdge) => "bad" | undefined },
) => string;

async function writePictures(graphs: readonly GraphCoverage[], folder: string, root: string): Promise<void> {
  const drawOutline = await loadDrawOutline(root);
  mkdirSync(folder, { recursive: true });
  for (const each of graphs) {
    const uncovered = new Set([...listUncovered(each, "nodes"), ...listUncovered(each, "edges")]);
    const markUncovered = ({ id }: OutlineNode | OutlineEdge): "bad" | undefined => (uncovered.has(id) ? "bad" : undefined);
    writeFileSync(join(folder, `${each.graph}.svg`), drawOutline(each.declared.outline, { name: each.graph, mark: markUncovered }));
  }
}

/** Loads `@statewright/pictures` as installed in the user's project. */
async function loadDrawOutline(root: string): Promise<DrawOutline> {
  try {
    const file = createRequire(join(root, "package.json")).resolve("@statewright/pictures");
    const { drawOutline }: { readonly drawOutline: DrawOutline } = await import(pathToFileURL(file).href);
    return drawOutline;
  } catch (cause) {
    throw invalidOption({
      where: "coverage",
      option: "pictures",
      expected: "set only with the package @statewright/pictures installed",
      found: "no such package",
      fix: "Install @statewright/pictures, or remove the option",
      cause,
    });
  }
}
