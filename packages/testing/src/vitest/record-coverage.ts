/**
 * Coverage of a test's runs, stored in the meta of the test at the end; vitest transfers the meta to the
 * reporters.
 */
import { onTestFinished } from "vitest";
import { collectHits, type GraphHits, listDeclaredParts, mergeHits } from "../coverage/hits.ts";
import { metaKey } from "../coverage/meta-key.ts";
import { isToolTestGraph } from "../node/part-tests.ts";
import { subscribeToTestRuns, type TraceContext } from "../run/trace-context.ts";
import type { Trace } from "../trace/trace.ts";

/** Graphs whose declared parts this worker has already reported. */
const reportedGraphs = new Set<string>();
/** Hits of runs started outside a test, such as in a hook; reported with the next test. */
const pendingHits: (() => GraphHits)[] = [];

/** Records the coverage of every test run. Importing `@statewright/testing/vitest` calls this function. */
export function recordCoverage(): void {
  subscribeToTestRuns((trace, context) => {
    if (isToolTestGraph(context.graph)) return;
    const getHits = (): GraphHits => createGraphHits(trace, context);
    try {
      onTestFinished(({ task }) => {
        const meta: { [metaKey]?: GraphHits[] } = task.meta as object;
        const all = [...(meta[metaKey] ?? []), ...pendingHits.splice(0).map((each) => each()), getHits()];
        meta[metaKey] = mergeByGraph(all);
      });
    } catch {
      // Outside a test, and late in a concurrent test, vitest cannot identify the current test.
      pendingHits.push(getHits);
    }
  });
}

/** Merges the hits per graph: a test may have a thousand runs, and each graph is reported once. */
function mergeByGraph(all: readonly GraphHits[]): GraphHits[] {
  const merged = new Map<string, GraphHits>();
  for (const each of all) {
    const previous = merged.get(each.graph);
    merged.set(
      each.graph,
      previous === undefined ? each : { ...previous, ...each, hits: mergeHits(previous.hits, each.hits) },
    );
  }
  return [...merged.values()];
}

function createGraphHits(trace: Trace, { graph }: TraceContext): GraphHits {
  const { name } = graph;
  const hits = collectHits(trace, graph);
  if (reportedGraphs.has(name)) return { graph: name, hits };
  reportedGraphs.add(name);
  return { graph: name, hits, declared: listDeclaredParts(graph) };
}
