/** Matchers for a graph report and for a store of runs. */
import type { CheckRunsOptions, Graph, GraphReport, Store } from "@statewright/core";
import { loadRuns } from "../run/load-runs.ts";
import type { MatcherContext, MatcherResult } from "./received.ts";

/** Passes when `checkGraph` found no violation. */
export function toHaveNoViolations(this: MatcherContext, received: unknown): MatcherResult {
  const { violations } = requireGraphReport(received);
  return {
    pass: violations.length === 0,
    message: () =>
      violations.length === 0
        ? "the graph has no violations, and should have some."
        : [
            `the graph has ${violations.length === 1 ? "a violation" : `${violations.length} violations`}.`,
            ...violations.map(({ rule, path, message }) => `${rule}: ${message}\n  The path: ${path.join(" → ")}`),
          ].join("\n"),
    actual: violations,
    expected: [],
  };
}

/**
 * Passes when every run of this store loads under these graphs: open runs would continue, finished runs are readable.
 */
export async function toLoadRuns(
  this: MatcherContext,
  received: unknown,
  graphs: readonly Graph[],
  options: CheckRunsOptions = {},
): Promise<MatcherResult> {
  const { runs, refused } = await loadRuns(requireStore(received), graphs, options);
  return {
    pass: refused.length === 0,
    message: () =>
      refused.length === 0
        ? "every run of the store loads, and should not."
        : [
            `${refused.length} of ${runs.length} runs ${refused.length === 1 ? "does" : "do"} not load under this code:`,
            ...refused.map(
              ({ run, reason }) => `  ${run.thread}, ${run.graph} version ${run.version}, ${run.status}: ${reason}`,
            ),
          ].join("\n"),
    actual: refused.map(({ run }) => run.thread),
    expected: [],
  };
}

function requireGraphReport(received: unknown): GraphReport {
  if (
    typeof received === "object" &&
    received !== null &&
    "violations" in received &&
    Array.isArray(received.violations)
  )
    return received as GraphReport;
  throw new TypeError(
    "toHaveNoViolations: expected a graph report, got another value. Use expect(checkGraph(graph)).toHaveNoViolations().",
  );
}

function requireStore(received: unknown): Store {
  if (typeof received === "object" && received !== null && "claim" in received && "runs" in received)
    return received as Store;
  throw new TypeError("toLoadRuns: expected a store, got another value. Use await expect(store).toLoadRuns([graph]).");
}
