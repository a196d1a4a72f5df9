import { expect, test } from "vitest";
import { partsOfBundle } from "../src/cases/bundle.ts";
import { findings } from "../src/findings.ts";
import { type Load, loadGrowth } from "../src/load/load.ts";
import { type Growth, type Measured, spread } from "../src/measure.ts";
import { type CaseReport, type Report, toMarkdown, toText } from "../src/report.ts";

function measured(name: string, role: Measured["role"], us: number, more: Partial<Measured> = {}): Measured {
  const cost = { cpuUs: spread([us]), wallUs: spread([us * 2]) };
  return { name, role, size: 1, rounds: 1, ...cost, bytes: undefined, growth: undefined, ...more };
}

function growing(exponent: number, bytesExponent?: number): Growth {
  const points = [100, 200, 400, 800].map((size) => ({ size, cpuUs: size }));
  return { points, exponent, ...(bytesExponent !== undefined && { bytesExponent }) };
}

function reportOf(contenders: readonly Measured[], more: Partial<CaseReport> = {}): Report {
  const budget = { cpuUs: 1, text: "1 µs" };
  const cases = [{ id: "B0", title: "nothing", unit: "nothing", budget, checks: [], contenders, ...more }];
  const nothing = { date: "", command: "", machine: "", versions: "", leaks: undefined, held: undefined };
  return { ...nothing, peers: [], cases, load: undefined };
}

function rowOf(report: Report, name: string): readonly string[] {
  const line = toMarkdown(report)
    .split("\n")
    .find((each) => each.startsWith(`| ${name} |`));
  return (line ?? "").split("|").map((cell) => cell.trim());
}

test("the distance to the limit is a column: CPU, wall time, and the bytes where both leave some", () => {
  const report = reportOf([
    measured("ours", "ours", 30, { bytes: 900 }),
    measured("peer", "peer", 600),
    measured("bare", "limit", 10, { bytes: 300 }),
    measured("barer", "limit", 1),
  ]);
  const [, , cpu, , bytes, wall, ofOurs, , distance] = rowOf(report, "ours");
  expect([cpu, bytes, wall, ofOurs, distance]).toEqual([
    "30.0 µs",
    "900",
    "60.0 µs",
    "1",
    "CPU 3.00, wall 3.00, bytes 3.00",
  ]);
  expect(rowOf(report, "peer")[8]).toBe("CPU 60, wall 60");
  expect(rowOf(report, "bare")[8]).toBe("");
  expect(toMarkdown(report)).toContain("A unit is one nothing; budget 1 µs; limit: bare.");
});

test("an exponent above 1.1 is marked as a finding in its row, and those of ours are told at the end", () => {
  const report = reportOf([
    measured("ours", "ours", 1, { growth: growing(1.2, 1.05) }),
    measured("peer", "peer", 1, { growth: growing(1.9) }),
    measured("bare", "limit", 1, { growth: growing(1.15) }),
  ]);
  expect(rowOf(report, "ours")[9]).toBe("1.20 **finding**, bytes 1.05 (100 to 800)");
  expect(rowOf(report, "peer")[9]).toBe("1.90 **finding** (100 to 800)");
  const sentence = "B0: CPU of ours grows with 1.20 from 100 to 800, where bare shows 1.15.";
  expect(findings(report)).toEqual([sentence]);
  expect(toMarkdown(report)).toContain(`### Findings\n\n- ${sentence}`);
  expect(toText(report)).toContain(sentence);
});

test("what must not grow at all is a finding sooner, and nothing found is said", () => {
  const flat = reportOf([measured("ours", "ours", 1, { growth: growing(0.4) })], { steepest: 0.3 });
  expect(findings(flat)).toEqual(["B0: CPU of ours grows with 0.40 from 100 to 800."]);
  const linear = reportOf([measured("ours", "ours", 1, { growth: growing(1.09) })]);
  expect(findings(linear)).toEqual(["Nothing of ours grows with an exponent above 1.1."]);
  expect(findings(reportOf([measured("ours", "ours", 1)]))).toEqual([]);
});

test("a load tells what a thread takes and how it grows with their number", () => {
  const active = [250, 500, 1_000].map((threads) => ({
    threads,
    done: threads,
    supersteps: threads * 20,
    seconds: 1,
    cpuSeconds: threads ** 1.3,
    loopDelayMs: { p99: 1, most: 1 },
    rawCommitMs: { median: 1, most: 1 },
    rssBeforeMb: 100,
    mostRssMb: 100 + threads / 10,
    mostHeapMb: threads / 20,
  }));
  const parked = [1_000, 2_000].map((runs) => ({ runs, heapBytes: 5_000 + runs * 3, resumeMs: 2 }));
  const load: Load = { active, parked };
  const { cpuByThreads, heapByThreads, resumeByParked, bytesOfParked } = loadGrowth(load);
  expect([cpuByThreads, heapByThreads, resumeByParked, bytesOfParked].map((value) => value?.toFixed(2))).toEqual([
    "1.30",
    "1.00",
    "0.00",
    "3.00",
  ]);
  const report = { ...reportOf([]), load };
  expect(findings(report)).toEqual(["Load: CPU by threads at work grows with 1.30."]);
  expect(toText(report)).toContain("102 KB of memory, 51 KB of heap.");
});

test("the parts of a bundle are the folders of its sources, the largest first", () => {
  const inputs = {
    "src/index.ts": { bytesInOutput: 10 },
    "packages/core/src/run/run.ts": { bytesInOutput: 300 },
    "packages/core/src/tool/tool.ts": { bytesInOutput: 200 },
    "src/run/task.ts": { bytesInOutput: 100 },
    "src/define/edge.ts": { bytesInOutput: 0 },
  };
  expect([...partsOfBundle({ metafile: { outputs: { "out.js": { inputs } } } })]).toEqual([
    ["run", 400],
    ["tool", 200],
    ["index", 10],
  ]);
});
