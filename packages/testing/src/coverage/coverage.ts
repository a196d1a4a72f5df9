/**
 * The coverage of graphs over a whole run of vitest, as a reporter: what `testRun` came to in every worker, as a table, as
 * pictures, and as a threshold. Nothing is written but the pictures, where they are asked for.
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
import { type Outline, type OutlineEdge, type OutlineNode, StatewrightError } from "@statewright/core";
import {
  belowThreshold,
  type CoverageThreshold,
  coverageTable,
  type GraphCoverage,
  leavingOut,
  missedIn,
} from "./coverage-table.ts";
import { type Covered, type Declared, type GraphHits, together } from "./hits.ts";
import { metaKey } from "./meta-key.ts";

/** What the reporter takes. */
export interface CoverageOptions {
  /** The least that every graph must have of each kind, in percent; below it the run fails. */
  readonly threshold?: CoverageThreshold;
  /** A folder for a picture of every graph, with what no test came to in red. Needs `@statewright/pictures`. */
  readonly pictures?: string;
  /** Only these graphs, by name. Default: every graph that a test ran. */
  readonly graphs?: readonly string[];
  /** By graph, what no test has to come to, as the table names it: `{ shop: ["review → end"] }`. It does not count. */
  readonly except?: Readonly<Record<string, readonly string[]>>;
}

/** The part of vitest that the reporter uses: the same in vitest 4 and 5. */
export interface CoverageReporter {
  onInit(vitest: VitestPart): void;
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

/** The reporter: `reporters: [coverage({ pictures: "coverage" })]`, or by the name of this module. */
function coverage(options: CoverageOptions = {}): CoverageReporter {
  const { threshold = {}, pictures, graphs: wanted, except = {} } = options;
  /** By module and graph: in watch mode a module that ran again counts anew, the others stay. */
  const found = new Map<string, Map<string, Covered>>();
  const declared = new Map<string, Declared>();
  let vitest: VitestPart | undefined;

  function take(modules: readonly ModulePart[]): void {
    for (const { id, children } of modules) {
      const graphs = new Map<string, Covered>();
      found.set(id, graphs);
      for (const test of children.allTests())
        for (const { graph, hits, declared: all } of hitsIn(test.meta())) {
          const before = graphs.get(graph);
          graphs.set(graph, before === undefined ? hits : together(before, hits));
          if (all !== undefined) declared.set(graph, all);
        }
    }
  }

  function coverages(): readonly GraphCoverage[] {
    const nothing: Covered = { nodes: [], edges: [], questions: [], tools: [], guards: [] };
    return [...declared]
      .filter(([graph]) => wanted?.includes(graph) !== false)
      .map(([graph, all]) => ({
        graph,
        declared: all,
        hits: [...found.values()].reduce((hits, graphs) => together(hits, graphs.get(graph) ?? nothing), nothing),
      }))
      .map((each) => leavingOut(each, except[each.graph] ?? []))
      .sort((one, other) => (one.graph < other.graph ? -1 : 1));
  }

  return {
    onInit: (given) => {
      vitest = given;
    },
    onTestRunEnd: async (modules) => {
      take(modules);
      const all = coverages();
      if (all.length === 0 || vitest === undefined) return;
      const { logger, config } = vitest;
      logger.log(`\nCoverage of graphs\n\n${coverageTable(all)}\n`);
      if (pictures !== undefined) await draw(all, resolve(config.root, pictures), config.root);
      const below = belowThreshold(all, threshold);
      for (const line of below) logger.error(`ERROR: ${line}`);
      if (below.length > 0) process.exitCode = 1;
    },
  };
}

export default coverage as typeof coverage & (new (options?: CoverageOptions) => CoverageReporter);

function hitsIn(meta: object): readonly GraphHits[] {
  const hits = metaKey in meta ? (meta as { readonly [metaKey]: unknown })[metaKey] : undefined;
  return Array.isArray(hits) ? (hits as readonly GraphHits[]) : [];
}

type DrawOutline = (
  outline: Outline,
  options: { readonly name: string; readonly mark: (part: OutlineNode | OutlineEdge) => "bad" | undefined },
) => string;

async function draw(graphs: readonly GraphCoverage[], folder: string, root: string): Promise<void> {
  const drawOutline = await picturesOf(root);
  mkdirSync(folder, { recursive: true });
  for (const each of graphs) {
    const missed = new Set([...missedIn(each, "nodes"), ...missedIn(each, "edges")]);
    const mark = ({ id }: OutlineNode | OutlineEdge): "bad" | undefined => (missed.has(id) ? "bad" : undefined);
    writeFileSync(join(folder, `${each.graph}.svg`), drawOutline(each.declared.outline, { name: each.graph, mark }));
  }
}

/** The package of pictures, as the project has it installed. */
async function picturesOf(root: string): Promise<DrawOutline> {
  try {
    const file = createRequire(join(root, "package.json")).resolve("@statewright/pictures");
    const { drawOutline }: { readonly drawOutline: DrawOutline } = await import(pathToFileURL(file).href);
    return drawOutline;
  } catch (cause) {
    throw new StatewrightError("invalid_option", {
      what: "the pictures of the coverage of graphs need @statewright/pictures, and it cannot be loaded",
      next: "Install it beside vitest, or leave `pictures` out",
      cause,
    });
  }
}
