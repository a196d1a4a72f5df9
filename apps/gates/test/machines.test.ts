/** A sample of the gate `machines`. */
import { expect, test } from "vitest";
import { type MachineReport, runMachineSeed } from "../src/machines/run-machine-seed.ts";
import { checkKills, checkShares } from "../src/machines/run-machines.ts";

test("random durable machines with events and crashes end like live XState actors, with the same transitions [FX2, FX3]", async () => {
  const reports: MachineReport[] = [];
  for (let seed = 0; seed < 100; seed++) reports.push(await runMachineSeed(seed));
  const failed = reports.filter(({ violations }) => violations.length > 0);
  expect(failed.map(({ seed, violations }) => `npm run gates -- machines --seed ${seed}: ${violations[0]}`)).toEqual(
    [],
  );
  expect(checkShares(reports)).toBe(true);
  expect(new Set(reports.map(({ store }) => store))).toEqual(new Set(["memory", "sqlite", "killed"]));
  expect(checkKills(reports)).toBe(true);
});

test("the gate of machines fails when the processes of too few seeds are killed", () => {
  const killed = { store: "killed", kills: 2 } as const;
  expect([checkKills([killed]), checkKills([killed, { ...killed, kills: 0 }])]).toEqual([true, false]);
});

test("the gate of machines fails when too few seeds have an event at work", async () => {
  const report = await runMachineSeed(1);
  const quiet = { ...report, hasEventAtWork: false, crashedBetween: true };
  expect([checkShares([quiet]), checkShares([{ ...quiet, hasEventAtWork: true }])]).toEqual([false, true]);
});
