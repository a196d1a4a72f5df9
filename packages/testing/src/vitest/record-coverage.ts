/** What runs came to is put into the meta of their test when it has finished: from there it travels to reporters by itself. */
import { onTestFinished } from "vitest";
import { declaredIn, type GraphHits, hitsOf, together } from "../coverage/hits.ts";
import { metaKey } from "../coverage/meta-key.ts";
import { isOfToolTest } from "../node/part-tests.ts";
import { onTold, type ToldOf } from "../run/trace-context.ts";
import type { Trace } from "../trace/trace.ts";

/** Graphs of which this worker has said what there is. */
const said = new Set<string>();
/** Runs that were begun outside a test, such as in a hook: the next test takes them along. */
const waiting: (() => GraphHits)[] = [];

/** Note every run of a test. Importing `@statewright/testing/vitest` does it. */
export function noteCoverage(): void {
  onTold((trace, of) => {
    if (isOfToolTest(of.graph)) return;
    const hits = (): GraphHits => hitsIn(trace, of);
    try {
      onTestFinished(({ task }) => {
        const meta: { [metaKey]?: GraphHits[] } = task.meta as object;
        const all = [...(meta[metaKey] ?? []), ...waiting.splice(0).map((each) => each()), hits()];
        meta[metaKey] = byGraph(all);
      });
    } catch {
      // Outside of a test, and late in one that runs beside others, vitest does not know which test this is.
      waiting.push(hits);
    }
  });
}

/** A test may make a thousand runs: what they came to is sent once for each graph. */
function byGraph(all: readonly GraphHits[]): GraphHits[] {
  const found = new Map<string, GraphHits>();
  for (const each of all) {
    const before = found.get(each.graph);
    found.set(each.graph, before === undefined ? each : { ...before, ...each, hits: together(before.hits, each.hits) });
  }
  return [...found.values()];
}

function hitsIn(trace: Trace, { graph }: ToldOf): GraphHits {
  const { name } = graph;
  const hits = hitsOf(trace, graph);
  if (said.has(name)) return { graph: name, hits };
  said.add(name);
  return { graph: name, hits, declared: declaredIn(graph) };
}
