import { expect, test } from "vitest";
import type { CaseReport, Report } from "../src/case-report.ts";
import { measureBundleParts } from "../src/cases/bundle.ts";
import { listFindings } from "../src/findings.ts";
import { fitLoadGrowth, type Load } from "../src/load/load.ts";
import { computeSpread, type Growth, type Measurement } from "../src/measure.ts";
import { toMarkdown, toText } from "../src/report.ts";

function measured(name: string, role: Measurement["role"], us: number, more: Partial<Measurement> = {}): Measurement {
  const cost = { cpuUs: computeSpread([us]), wallUs: computeSpread([us * 2]) };
  return { name, role, size: 1, rounds: 1, ...cost, bytes: undefined, growth: undefined, ...more };
}

function growing(exponent: number, bytesExponent?: number): Growth {
  const points = [100, 200, 400, 800].map((size) => ({ size, cpuUs: size }));
  return { points, exponent, ...(bytesExponent !== undefined && { bytesExponent }) };
}

function getReport(contenders: readonly Measurement[], more: Partial<CaseReport> = {}): Report {
  const budget = { cpuUs: 1, text: "1 µs" };
  const cases = [{ id: "B0", title: "nothing", unit: "nothing", budget, checks: [], contenders, ...more }];
  const nothing = { date: "", command: "", machine: "", versions: "", leaks: undefined, retainedHeap: undefined };
  return { ...nothing, peers: [], cases, load: undefined };
}

function getRow(report: Report, name: string): readonly string[] {
  const line = toMarkdown(report)
    .split("\n")
    .find((each) => each.startsWith(`| ${name} |`));
  return (line ?? "").split("|").map((cell) => cell.trim());
}

test("the report has a column for the distance to the limit: CPU, wall time, and bytes where both report bytes", () => {
  const report = getReport([
    measured("ours", "ours", 30, { bytes: 900 }),
    measured("peer", "peer", 600),
    measured("bare", "limit", 10, { bytes: 300 }),
    measured("barer", "limit", 1),
  ]);
  const [, , cpu, , bytes, wall, ofOurs, , distance] = getRow(report, "ours");
  expect([cpu, bytes, wall, ofOurs, distance]).toEqual([
    "30.0 µs",
    "900",
    "60.0 µs",
    "1",
    "CPU 3.00, wall 3.00, bytes 3.00",
  ]);
  expect(getRow(report, "peer")[8]).toBe("CPU 60, wall 60");
  expect(getRow(report, "bare")[8]).toBe("");
  expect(toMarkdown(report)).toContain("A unit is one nothing; budget 1 µs; limit: bare.");
});

test("an exponent above 1.1 is marked in its row, and exponents of ours are listed as findings at the end", () => {
  const report = getReport([
    measured("ours", "ours", 1, { growth: growing(1.2, 1.05) }),
    measured("peer", "peer", 1, { growth: growing(1.9) }),
    measured("bare", "limit", 1, { growth: growing(1.15) }),
  ]);
  expect(getRow(report, "ours")[8]).toBe("1.20 **finding**, bytes 1.05 (100 to 800)");
  expect(getRow(report, "peer")[8]).toBe("1.90 **finding** (100 to 800)");
  const sentence = "B0: CPU of ours grows with exponent 1.20 from 100 to 800; bare: 1.15.";
  expect(listFindings(report)).toEqual([sentence]);
  expect(toMarkdown(report)).toContain(`### Findings\n\n- ${sentence}`);
  expect(toText(report)).toContain(sentence);
});

test("a table of the report has no column that is empty in all rows", () => {
  const header = toMarkdown(getReport([measured("ours", "ours", 30), measured("peer", "peer", 60)]))
    .split("\n")
    .find((line) => line.startsWith("|"));
  expect(header).toBe("|  | CPU | rounds from – to | wall | CPU vs. ours | wall vs. ours |");
  const whole = toMarkdown(
    getReport([measured("ours", "ours", 30, { bytes: 9, growth: growing(1) }), measured("bare", "limit", 1)]),
  );
  expect(whole).toContain("| bytes | wall | CPU vs. ours | wall vs. ours | vs. limit | growth |");
});

test("a case that must not grow has a lower finding threshold, and a report without findings states that", () => {
  const flat = getReport([measured("ours", "ours", 1, { growth: growing(0.4) })], { maxGrowth: 0.3 });
  expect(listFindings(flat)).toEqual(["B0: CPU of ours grows with exponent 0.40 from 100 to 800."]);
  const linear = getReport([measured("ours", "ours", 1, { growth: growing(1.09) })]);
  expect(listFindings(linear)).toEqual(["Nothing in Statewright grows with an exponent above 1.1."]);
  expect(listFindings(getReport([measured("ours", "ours", 1)]))).toEqual([]);
});

test("a load report shows the cost per thread and its growth with the number of threads", () => {
  const active = [250, 500, 1_000].map((threads) => ({
    threads,
    done: threads,
    supersteps: threads * 20,
    seconds: 1,
    cpuSeconds: threads ** 1.3,
    loopDelayMs: { p99: 1, max: 1 },
    rawCommitMs: { median: 1, max: 1 },
    rssBeforeMb: 100,
    maxRssMb: 100 + threads / 10,
    maxHeapMb: threads / 20,
  }));
  const waiting = [1_000, 2_000].map((runs) => ({ runs, heapBytes: 5_000 + runs * 3, resumeMs: 2 }));
  const load: Load = { active, waiting };
  const { cpuByThreads, heapByThreads, resumeByWaitingRuns, bytesPerWaitingRun } = fitLoadGrowth(load);
  expect(
    [cpuByThreads, heapByThreads, resumeByWaitingRuns, bytesPerWaitingRun].map((value) => value?.toFixed(2)),
  ).toEqual(["1.30", "1.00", "0.00", "3.00"]);
  const report = { ...getReport([]), load };
  expect(listFindings(report)).toEqual(["Load: CPU by active threads grows with exponent 1.30."]);
  expect(toText(report)).toContain("102 KB of memory, 51 KB of heap.");
});

test("the parts of a bundle are its source folders, largest first", () => {
  const inputs = {
    "src/index.ts": { bytesInOutput: 10 },
    "packages/core/src/run/run.ts": { bytesInOutput: 300 },
    "packages/core/src/tool/tool.ts": { bytesInOutput: 200 },
    "src/run/task.ts": { bytesInOutput: 100 },
    "src/define/edge.ts": { bytesInOutput: 0 },
  };
  expect([...measureBundleParts({ metafile: { outputs: { "out.js": { inputs } } } })]).toEqual([
    ["run", 400],
    ["tool", 200],
    ["index", 10],
  ]);
});
