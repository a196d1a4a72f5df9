import { describe, expect, test } from "vitest";
import type { Contender } from "../src/case.ts";
import type { CaseReport, Report } from "../src/case-report.ts";
import { createCases } from "../src/cases/all.ts";
import { listFailures } from "../src/check.ts";
import { type Costs, findRegressions, measurePaths } from "../src/guard/guard.ts";
import { measureLeaks } from "../src/leaks.ts";
import { measureLoad } from "../src/load/load.ts";
import { computeSpread, computeSteadyGrowth, fitExponent, type Measurement, measureCase } from "../src/measure.ts";
import { noPeers } from "../src/peers/langgraph.ts";
import { describeMachine, toMarkdown, toText } from "../src/report.ts";
import { measureRetainedHeap } from "../src/retained-heap.ts";
import { startContender } from "../src/start-contender.ts";

/** A sixth of the cases; with STATEWRIGHT_WHOLE=1 all. */
function isTried(nth: number): boolean {
  return process.env["STATEWRIGHT_WHOLE"] === "1" || nth % 6 === 0;
}

/** Cases that are of the built packages, which may be those of an older source. */
function usesBuiltPackages(id: string): boolean {
  return id.startsWith("B10") || id === "B12";
}

describe("cases without peers", () => {
  const cases = createCases(noPeers).filter(({ id }, nth) => !usesBuiltPackages(id) && isTried(nth));
  test.each(cases.map((each) => [each.id, each] as const))(
    "the benchmark case %s runs once without peers",
    async (_id, each) => {
      const contenders = each.contenders.map((contender) => ({ ...contender, size: 4 }));
      const measured = await measureCase(
        { ...each, contenders, disk: false },
        { rounds: 1, warmUpMs: 0, growth: false },
      );
      expect(measured.map(({ name }) => name)).toEqual(contenders.map(({ name }) => name));
      for (const { cpuUs, wallUs } of measured) {
        expect(cpuUs.median).toBeGreaterThanOrEqual(0);
        expect(wallUs.median).toBeGreaterThan(0);
      }
    },
  );

  test("the leak check runs and finds no leaked listener", async () => {
    expect(await measureLeaks(20)).toMatchObject({ runs: 20, listeners: 0 });
    expect(await measureRetainedHeap(40)).toMatchObject({ units: 40 });
  });
});

test("the bench has a row for each condition of users: defaults, short runs, resumes, AI SDK models, openings, several processes [FX101]", () => {
  const ids = new Set(createCases(noPeers).map(({ id }) => id));
  const rows = ["B2 short", "B9 resume", "B14 sdk", "B14 sdk short", "B15 default", "B20", "B21", "B21 new", "B21 run"];
  expect(rows.filter((id) => !ids.has(id))).toEqual([]);
  const own = { name: "statewright", main: "statewright", folder: "/app" };
  expect(createCases({ ...noPeers, installed: [own] }).map(({ id }) => id)).toContain("B22");
});

test("a silent stream has at most 20 KB of heap, and a visited thread none, as checked by the bench [V116]", () => {
  const amounts = createCases(noPeers).flatMap(({ id, amounts: limits = [] }) => limits.map(({ max }) => [id, max]));
  expect(amounts).toEqual([
    ["B23 silent", 20_000],
    ["B23 visited", 32],
  ]);
});

test("the creation of a store is measured beside the creation of the same tables in better-sqlite3 [FX99]", () => {
  const newFile = createCases(noPeers).find(({ id }) => id === "B21 new");
  const tables = "better-sqlite3, the same tables in one transaction";
  expect(newFile?.contenders.filter(({ role }) => role === "limit").map(({ name }) => name)).toContain(tables);
  expect(newFile?.checks).toContainEqual({ subject: "statewright", baseline: tables, measure: "cpu", max: 1 });
});

test("a first saved run in a fresh process is measured as installed, with a compile cache, and bundled [FX100]", () => {
  const installed = [{ name: "statewright", main: "statewright", folder: "/app" }];
  const bundler = { build: async () => ({ outputFiles: [], metafile: { outputs: {} } }) };
  const cold = createCases({ ...noPeers, installed, bundler }).find(({ id }) => id === "B22");
  expect(cold?.contenders.filter(({ role }) => role === "ours").map(({ name }) => name)).toEqual([
    "statewright",
    "statewright, with Node's compile cache",
    "statewright, bundled",
    "statewright, bundled, with Node's compile cache",
  ]);
});

test("a first agent in a fresh process is measured beside the AI SDK, pi and LangChain [FX101]", () => {
  const mains = ["statewright", "ai", "@earendil-works/pi-agent-core", "langchain"];
  const installed = mains.map((main) => ({ name: main, main, folder: "/app" }));
  const [agentCase] = createCases({ ...noPeers, installed }).filter(({ id }) => id === "B22 agent");
  expect(agentCase?.contenders.map(({ name, role }) => [role, name])).toEqual([
    ["ours", "statewright"],
    ["ours", "statewright, with Node's compile cache"],
    ["ours", "statewright, saved to SQLite"],
    ["peer", "AI SDK"],
    ["peer", "AI SDK streamText"],
    ["peer", "pi-agent-core"],
    ["peer", "LangChain createAgent"],
  ]);
});

test("the load measurement runs with a small number of threads", async () => {
  const { active, waiting } = await measureLoad({ active: [3], waiting: [5] });
  expect(active).toMatchObject([{ threads: 3, done: 3, supersteps: 60 }]);
  expect(waiting).toMatchObject([{ runs: 5 }]);
});

test("a contender with rounds above 20 s of CPU runs one round, and one for each size", async () => {
  const asked: number[] = [];
  const run = async (size: number) => {
    asked.push(size);
    return { cpuUs: size * 1_000_000, wallUs: 1 };
  };
  const slow = { name: "slow", role: "peer" as const, growth: [10, 40], open: () => ({ run }) };
  const budget = { cpuUs: 1, text: "1 µs" };
  const each = { id: "B0", title: "nothing", unit: "nothing", budget, size: 21, contenders: [slow], steady: true };
  const measured = await measureCase(each, { rounds: 7, warmUpMs: 1_000, growth: true });
  expect(measured).toMatchObject([{ rounds: 1, cpuUs: { median: 1_000_000 } }]);
  expect(asked).toEqual([21, 10, 10, 10, 40]);
});

test("each process of a contender warms up for the CPU time of a contender with one process", async () => {
  const rounds = new Map<string, number>();
  const createCounted = (name: string, processes: number) => ({
    ...{ name, processes, role: "ours" as const },
    open: () => ({
      run: async () => {
        rounds.set(name, (rounds.get(name) ?? 0) + 1);
        return { cpuUs: 1_000_000, wallUs: 1 };
      },
    }),
  });
  const budget = { cpuUs: 1, text: "1 µs" };
  const contenders = [createCounted("one", 1), createCounted("eight", 8)];
  const each = { id: "B0", title: "nothing", unit: "nothing", budget, size: 1, contenders, steady: true };
  await measureCase(each, { rounds: 1, warmUpMs: 60_000, growth: false });
  expect(Object.fromEntries(rounds)).toEqual({ one: 60 + 1, eight: 8 * 60 + 1 });
});

test("a contender in its own process is measured there, and its errors are reported", async () => {
  const [each] = createCases(noPeers).filter(({ id }) => id === "B4");
  if (each === undefined) throw new Error("there is no B4");
  const contenders = each.contenders.filter(({ role }) => role === "ours");
  const open = (contender: Contender) => startContender("B4", contender, undefined);
  const [measured] = await measureCase(
    { ...each, contenders, size: 2, disk: false },
    { rounds: 1, warmUpMs: 0, growth: false, open },
  );
  expect(measured?.cpuUs.median).toBeGreaterThan(0);
  expect(measured?.bytes).toBeGreaterThan(1_000);
  const brokenContender = { name: "nobody", role: "limit", open: () => ({ run: () => undefined }) } as const;
  await expect(startContender("B4", brokenContender, undefined)).rejects.toThrow(
    'expected a contender of case B4, got "nobody"',
  );
});

test("the fitted exponent of linear work is 1 and that of quadratic work is 2", () => {
  const createGrowth = (power: number) => [1, 2, 4, 8].map((size) => [size, 3 * size ** power] as const);
  expect(fitExponent(createGrowth(1))).toBeCloseTo(1);
  expect(fitExponent(createGrowth(2))).toBeCloseTo(2);
});

test("steady growth is the common growth of all samples, without a doubled table or a late collection", () => {
  expect(computeSteadyGrowth([0, 10, 20, 900, 40, 50, 60])).toBe(10);
  expect(computeSteadyGrowth([0, 10, 20, 30, 540, 550, 560, 570, 580, 590])).toBeCloseTo(10);
});

test("the median of an even number of rounds lies between the two middle values", () => {
  expect(computeSpread([4, 1, 3, 2])).toEqual({ median: 2.5, min: 1, max: 4 });
});

describe("the regression guard", () => {
  const path = "a superstep";
  const before: Costs = { [path]: { allocated: 1_000, cpu: 0.02, bytes: 100 } };

  test("the regression guard measures each recorded path", async () => {
    const now = await measurePaths(1, 500);
    expect(findRegressions({}, now)).toEqual([]);
    for (const { allocated, cpu } of Object.values(now)) {
      expect(allocated).toBeGreaterThan(0);
      expect(cpu).toBeGreaterThanOrEqual(0);
    }
  });

  test("the regression guard accepts measurements within its margins", () => {
    expect(findRegressions({ [path]: { allocated: 1_140, cpu: 0.039, bytes: 109 } }, before)).toEqual([]);
  });

  test("the regression guard names measurements above the margins and paths without a record", () => {
    expect(
      findRegressions({ [path]: { allocated: 1_200, cpu: 0.05, bytes: 120 }, more: { allocated: 1, cpu: 1 } }, before),
    ).toMatchInlineSnapshot(`
        [
          "a superstep: allocated bytes: 1.20 times the recorded value (1200, recorded 1000), expected at most 1.15 times",
          "a superstep: bytes on disk: 1.20 times the recorded value (120, recorded 100), expected at most 1.1 times",
          "a superstep: CPU time relative to plain work: 2.50 times the recorded value (0.05, recorded 0.02), expected at most 2 times",
          "more: no recorded values. Run npm run bench -- guard --write.",
        ]
      `);
  });
});

describe("the benchmark verdict", () => {
  const contender = (name: string, cpu: number, exponent?: number): Measurement => ({
    name,
    role: name === "statewright" ? "ours" : "peer",
    size: 1,
    rounds: 1,
    cpuUs: computeSpread([cpu]),
    wallUs: computeSpread([cpu]),
    bytes: undefined,
    growth: exponent === undefined ? undefined : { points: [], exponent },
  });
  const getReport = (contenders: readonly Measurement[]): Report => {
    const checks: CaseReport["checks"] = [{ subject: "statewright", baseline: "peer", measure: "cpu", max: 0.5 }];
    const budget = { cpuUs: 1, text: "1 µs" };
    const cases = [{ id: "B0", title: "nothing", unit: "nothing", budget, checks, contenders }];
    return {
      date: "",
      command: "",
      machine: describeMachine(),
      versions: "",
      peers: [],
      cases,
      leaks: undefined,
      retainedHeap: undefined,
      load: undefined,
    };
  };

  test("the benchmark verdict is clean when the ratios hold and when a peer is missing", () => {
    expect(listFailures(getReport([contender("statewright", 1, 1), contender("peer", 10)]))).toEqual([]);
    expect(listFailures(getReport([contender("statewright", 1)]))).toEqual([]);
  });

  test("the benchmark verdict names a ratio and a growth that do not hold", () => {
    const found = listFailures(getReport([contender("statewright", 9, 2), contender("peer", 10)]));
    expect(found).toHaveLength(2);
    expect(found.join(" ")).toMatch(/0\.90 times.*exponent 2\.00/);
  });

  test("the benchmark verdict names bytes of a unit above their limit", () => {
    const report = getReport([{ ...contender("statewright", 1), bytes: 20_480 }]);
    const withLimit = (max: number): Report => ({
      ...report,
      cases: report.cases.map((each) => ({ ...each, amounts: [{ subject: "statewright", measure: "bytes", max }] })),
    });
    expect(listFailures(withLimit(20_480))).toEqual([]);
    expect(listFailures(withLimit(20_000))).toEqual([
      "B0: statewright needs 20480 bytes for each nothing, expected at most 20000",
    ]);
  });

  test("the benchmark verdict allows ours to grow like the limit of the same case", () => {
    const bare = { ...contender("bare", 1, 1.5), role: "limit" as const };
    expect(listFailures(getReport([contender("statewright", 1, 1.4), bare]))).toEqual([]);
    expect(listFailures(getReport([contender("statewright", 1, 1.6), bare]))).toHaveLength(1);
  });

  test("the benchmark verdict has the same rows in text and Markdown", () => {
    const report = getReport([contender("statewright", 1, 1), contender("peer", 10)]);
    for (const text of [toText(report), toMarkdown(report)]) expect(text).toMatch(/statewright[\s\S]*peer[\s\S]*10/);
  });
});
