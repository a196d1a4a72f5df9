/** Findings: growth of Statewright above the size of the work, by the fitted exponent. */

import type { CaseReport, Report } from "./case-report.ts";
import { fitLoadGrowth } from "./load/load.ts";

/**
 * Exponent above which growth is a finding. 1 is linear; a heap that grows with the work costs the garbage collector
 * a little more.
 */
export const findingThreshold = 1.1;

/** `maxGrowth` is the maximum exponent of a case without growth. */
export function isFinding(exponent: number, maxGrowth?: number): boolean {
  return exponent > Math.min(findingThreshold, maxGrowth ?? findingThreshold);
}

/** Returns one sentence per finding, or a single sentence if growth was measured without findings. */
export function listFindings(report: Pick<Report, "cases" | "load">): readonly string[] {
  const measured = report.cases.some(({ contenders }) => contenders.some(({ growth }) => growth !== undefined));
  const found = [...report.cases.flatMap(listCaseFindings), ...listLoadFindings(report)];
  if (found.length > 0 || !measured) return found;
  return [`Nothing in Statewright grows with an exponent above ${findingThreshold}.`];
}

function listCaseFindings({ id, contenders, maxGrowth: caseMaxGrowth }: CaseReport): readonly string[] {
  const limit = contenders.find(({ role, growth }) => role === "limit" && growth !== undefined);
  const limitText = limit?.growth === undefined ? "" : `; ${limit.name}: ${limit.growth.exponent.toFixed(2)}`;
  return contenders.flatMap(({ name, role, growth }) => {
    if (role !== "ours" || growth === undefined) return [];
    const sizes = `from ${growth.points[0]?.size} to ${growth.points.at(-1)?.size}`;
    const exponents = { CPU: growth.exponent, "bytes on disk": growth.bytesExponent ?? 0 };
    return Object.entries(exponents)
      .filter(([, exponent]) => isFinding(exponent, caseMaxGrowth))
      .map(
        ([label, exponent]) =>
          `${id}: ${label} of ${name} grows with exponent ${exponent.toFixed(2)} ${sizes}${label === "CPU" ? limitText : ""}.`,
      );
  });
}

function listLoadFindings({ load }: Pick<Report, "load">): readonly string[] {
  if (load === undefined) return [];
  const { cpuByThreads = 0, heapByThreads = 0, resumeByWaitingRuns = 0 } = fitLoadGrowth(load);
  const found = [
    { what: "CPU by active threads", exponent: cpuByThreads, finding: isFinding(cpuByThreads) },
    { what: "heap by active threads", exponent: heapByThreads, finding: isFinding(heapByThreads) },
    {
      what: "time to load a waiting run, by the number of waiting runs,",
      exponent: resumeByWaitingRuns,
      finding: isFinding(resumeByWaitingRuns, 0.3),
    },
  ];
  return found
    .filter(({ finding }) => finding)
    .map(({ what, exponent }) => `Load: ${what} grows with exponent ${exponent.toFixed(2)}.`);
}
