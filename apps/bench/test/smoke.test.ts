import { describe, expect, test } from "vitest";
import type { Contender } from "../src/case.ts";
import { allCases } from "../src/cases/all.ts";
import { failures } from "../src/check.ts";
import { type Costs, measurePaths, stepsBack } from "../src/guard/guard.ts";
import { findLeaks } from "../src/leaks.ts";
import { findLoad } from "../src/load/load.ts";
import { fitExponent, type Measured, measureCase, spread, steadyGrowth } from "../src/measure.ts";
import { noPeers } from "../src/peers/langgraph.ts";
import { type CaseReport, machine, type Report, toMarkdown, toText } from "../src/report.ts";
import { findHeld } from "../src/retained-heap.ts";
import { runApart } from "../src/start-contender.ts";

/** A third of the cases; with STATEWRIGHT_WHOLE=1 all. */
function isTried(nth: number): boolean {
  return process.env["STATEWRIGHT_WHOLE"] === "1" || nth % 3 === 0;
}

/** Cases that are of the built packages, which may be those of an older source. */
function takesBuilt(id: string): boolean {
  return id.startsWith("B10") || id === "B12";
}

describe("cases run once without peers", () => {
  const cases = allCases(noPeers).filter(({ id }, nth) => !takesBuilt(id) && isTried(nth));
  test.each(cases.map((each) => [each.id, each] as const))("%s", async (_id, each) => {
    const contenders = each.contenders.map((contender) => ({ ...contender, size: 4 }));
    const measured = await measureCase({ ...each, contenders, disk: false }, { rounds: 1, warmUpMs: 0, growth: false });
    expect(measured.map(({ name }) => name)).toEqual(contenders.map(({ name }) => name));
    for (const { cpuUs, wallUs } of measured) {
      expect(cpuUs.median).toBeGreaterThanOrEqual(0);
      expect(wallUs.median).toBeGreaterThan(0);
    }
  });

  test("the leak check", async () => {
    expect(await findLeaks(20)).toMatchObject({ runs: 20, listeners: 0 });
    expect(await findHeld(40)).toMatchObject({ units: 40 });
  });
});

test("a process under load, small", async () => {
  const { active, parked } = await findLoad({ active: [3], parked: [5] });
  expect(active).toMatchObject([{ threads: 3, done: 3, supersteps: 60 }]);
  expect(parked).toMatchObject([{ runs: 5 }]);
});

test("a contender of which one round takes more than 20 s of CPU has one, and one for each size", async () => {
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

test("a contender in a process of its own is measured there, and its faults are told", async () => {
  const [each] = allCases(noPeers).filter(({ id }) => id === "B4");
  if (each === undefined) throw new Error("there is no B4");
  const contenders = each.contenders.filter(({ role }) => role === "ours");
  const open = (contender: Contender) => runApart("B4", contender, undefined);
  const [measured] = await measureCase(
    { ...each, contenders, size: 2, disk: false },
    { rounds: 1, warmUpMs: 0, growth: false, open },
  );
  expect(measured?.cpuUs.median).toBeGreaterThan(0);
  expect(measured?.bytes).toBeGreaterThan(1_000);
  const nobody = { name: "nobody", role: "limit", open: () => ({ run: () => undefined }) } as const;
  await expect(runApart("B4", nobody, undefined)).rejects.toThrow('there is no contender "nobody" of B4');
});

test("the exponent of linear work is 1, that of quadratic work 2", () => {
  const grown = (power: number) => [1, 2, 4, 8].map((size) => [size, 3 * size ** power] as const);
  expect(fitExponent(grown(1))).toBeCloseTo(1);
  expect(fitExponent(grown(2))).toBeCloseTo(2);
});

test("growth between moments is what all of them tell, not a table that doubled or a late collection", () => {
  expect(steadyGrowth([0, 10, 20, 900, 40, 50, 60])).toBe(10);
  expect(steadyGrowth([0, 10, 20, 30, 540, 550, 560, 570, 580, 590])).toBeCloseTo(10);
});

test("the median of an even number of rounds lies between the two in the middle", () => {
  expect(spread([4, 1, 3, 2])).toEqual({ median: 2.5, least: 1, most: 4 });
});

describe("the guard against steps back", () => {
  const path = "a superstep";
  const before: Costs = { [path]: { allocated: 1_000, cpu: 0.02, bytes: 100 } };

  test("measures each path that was recorded", async () => {
    const now = await measurePaths(1, 500);
    expect(stepsBack({}, now)).toEqual([]);
    for (const { allocated, cpu } of Object.values(now)) {
      expect(allocated).toBeGreaterThan(0);
      expect(cpu).toBeGreaterThanOrEqual(0);
    }
  });

  test("takes what is within its margins", () => {
    expect(stepsBack({ [path]: { allocated: 1_140, cpu: 0.039, bytes: 109 } }, before)).toEqual([]);
  });

  test("names what is above them, and what was never recorded", () => {
    expect(
      stepsBack({ [path]: { allocated: 1_200, cpu: 0.05, bytes: 120 }, more: { allocated: 1, cpu: 1 } }, before),
    ).toMatchInlineSnapshot(`
        [
          "a superstep: what it allocates is 1.20 times what was recorded (1200, was 1000), at most 1.15 is right",
          "a superstep: what it leaves on disk is 1.20 times what was recorded (120, was 100), at most 1.1 is right",
          "a superstep: its CPU time beside plain work is 2.50 times what was recorded (0.05, was 0.02), at most 2 is right",
          "more was not recorded: npm run bench -- guard --write",
        ]
      `);
  });
});

describe("the verdict", () => {
  const contender = (name: string, cpu: number, exponent?: number): Measured => ({
    name,
    role: name === "statewright" ? "ours" : "peer",
    size: 1,
    rounds: 1,
    cpuUs: spread([cpu]),
    wallUs: spread([cpu]),
    bytes: undefined,
    growth: exponent === undefined ? undefined : { points: [], exponent },
  });
  const reportOf = (contenders: readonly Measured[]): Report => {
    const checks: CaseReport["checks"] = [{ of: "statewright", to: "peer", measure: "cpu", atMost: 0.5 }];
    const budget = { cpuUs: 1, text: "1 µs" };
    const cases = [{ id: "B0", title: "nothing", unit: "nothing", budget, checks, contenders }];
    return {
      date: "",
      command: "",
      machine: machine(),
      versions: "",
      peers: [],
      cases,
      leaks: undefined,
      held: undefined,
      load: undefined,
    };
  };

  test("is clean when ratios hold, and when a peer is missing", () => {
    expect(failures(reportOf([contender("statewright", 1, 1), contender("peer", 10)]))).toEqual([]);
    expect(failures(reportOf([contender("statewright", 1)]))).toEqual([]);
  });

  test("names a ratio and a growth that do not hold", () => {
    const found = failures(reportOf([contender("statewright", 9, 2), contender("peer", 10)]));
    expect(found).toHaveLength(2);
    expect(found.join(" ")).toMatch(/0\.90 times.*exponent 2\.00/);
  });

  test("lets ours grow as the limit of the same case does", () => {
    const bare = { ...contender("bare", 1, 1.5), role: "limit" as const };
    expect(failures(reportOf([contender("statewright", 1, 1.4), bare]))).toEqual([]);
    expect(failures(reportOf([contender("statewright", 1, 1.6), bare]))).toHaveLength(1);
  });

  test("is shown with the same rows in text and Markdown", () => {
    const report = reportOf([contender("statewright", 1, 1), contender("peer", 10)]);
    for (const text of [toText(report), toMarkdown(report)]) expect(text).toMatch(/statewright[\s\S]*peer[\s\S]*10/);
  });
});
