/** Findings: what of ours grows faster than the size of its work, by the fitted exponent. */
import { loadGrowth } from "./load/load.ts";
import type { CaseReport, Report } from "./report.ts";

/** An exponent above this is worth a look: 1 is linear, a heap that grows with the work costs the collector a little more. */
export const findingAbove = 1.1;

/** `steepest`: the exponent that is right for work that must not grow at all. */
export function isFinding(exponent: number, steepest?: number): boolean {
  return exponent > Math.min(findingAbove, steepest ?? findingAbove);
}

/** One sentence each; one that says so where growth was measured and nothing was found. */
export function findings(report: Pick<Report, "cases" | "load">): readonly string[] {
  const measured = report.cases.some(({ contenders }) => contenders.some(({ growth }) => growth !== undefined));
  const found = [...report.cases.flatMap(ofCase), ...ofLoad(report)];
  if (found.length > 0 || !measured) return found;
  return [`Nothing of ours grows with an exponent above ${findingAbove}.`];
}

function ofCase({ id, contenders, steepest }: CaseReport): readonly string[] {
  const limit = contenders.find(({ role, growth }) => role === "limit" && growth !== undefined);
  const beside = limit?.growth === undefined ? "" : `, where ${limit.name} shows ${limit.growth.exponent.toFixed(2)}`;
  return contenders.flatMap(({ name, role, growth }) => {
    if (role !== "ours" || growth === undefined) return [];
    const sizes = `from ${growth.points[0]?.size} to ${growth.points.at(-1)?.size}`;
    const exponents = { CPU: growth.exponent, "bytes on disk": growth.bytesExponent ?? 0 };
    return Object.entries(exponents)
      .filter(([, exponent]) => isFinding(exponent, steepest))
      .map(
        ([what, exponent]) =>
          `${id}: ${what} of ${name} grows with ${exponent.toFixed(2)} ${sizes}${what === "CPU" ? beside : ""}.`,
      );
  });
}

function ofLoad({ load }: Pick<Report, "load">): readonly string[] {
  if (load === undefined) return [];
  const { cpuByThreads = 0, heapByThreads = 0, resumeByParked = 0 } = loadGrowth(load);
  const found = [
    { what: "CPU by threads at work", exponent: cpuByThreads, finding: isFinding(cpuByThreads) },
    { what: "heap by threads at work", exponent: heapByThreads, finding: isFinding(heapByThreads) },
    {
      what: "CPU to open a run that waits, by their number",
      exponent: resumeByParked,
      finding: isFinding(resumeByParked, 0.3),
    },
  ];
  return found
    .filter(({ finding }) => finding)
    .map(({ what, exponent }) => `Load: ${what} grows with ${exponent.toFixed(2)}.`);
}
