/** Matchers for a graph as a whole, and for a store of runs. */
import type { CheckRunsOptions, Graph, GraphReport, Store } from "@statewright/core";
import { loadRuns } from "../run/load-runs.ts";
import type { Bound, Verdict } from "./received.ts";

/** `checkGraph` found nothing in the graph. */
export function toHaveNoViolations(this: Bound, received: unknown): Verdict {
  const { violations } = asReport(received);
  return {
    pass: violations.length === 0,
    message: () =>
      violations.length === 0
        ? "the graph has no violations."
        : [
            `the graph has ${violations.length === 1 ? "a violation" : `${violations.length} violations`}.`,
            ...violations.map(({ rule, path, message }) => `${rule}: ${message}\n  The path: ${path.join(" → ")}`),
          ].join("\n"),
    actual: violations,
    expected: [],
  };
}

/** Every run of this store loads under these graphs: open runs would go on, and those that are over can be read. */
export async function toLoadRuns(
  this: Bound,
  received: unknown,
  graphs: readonly Graph[],
  options: CheckRunsOptions = {},
): Promise<Verdict> {
  const { runs, refused } = await loadRuns(asStore(received), graphs, options);
  return {
    pass: refused.length === 0,
    message: () =>
      refused.length === 0
        ? "every run of the store loads, and should not."
        : [
            `${refused.length} of ${runs.length} runs ${refused.length === 1 ? "does" : "do"} not load under this code:`,
            ...refused.map(
              ({ run, why }) => `  ${run.thread}, ${run.graph} version ${run.version}, ${run.status}: ${why}`,
            ),
          ].join("\n"),
    actual: refused.map(({ run }) => run.thread),
    expected: [],
  };
}

function asReport(received: unknown): GraphReport {
  if (
    typeof received === "object" &&
    received !== null &&
    "violations" in received &&
    Array.isArray(received.violations)
  )
    return received as GraphReport;
  throw new TypeError("toHaveNoViolations looks at a report: expect(checkGraph(graph)).toHaveNoViolations()");
}

function asStore(received: unknown): Store {
  if (typeof received === "object" && received !== null && "claim" in received && "runs" in received)
    return received as Store;
  throw new TypeError("toLoadRuns looks at a store: await expect(store).toLoadRuns([graph])");
}
