/**
 * `machines`: random durable machines with events at every point and crashes, each compared with a live XState actor.
 * The shares of seeds with an event at work, and with a crash between a recorded result and a waiting event, are
 * printed and demanded.
 */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { runChild } from "../run-child.ts";
import { type MachineReport, runMachineSeed } from "./run-machine-seed.ts";

const file = fileURLToPath(new URL("./machines-process.ts", import.meta.url));

/** Share of the seeds with real processes of which at least one process must be killed. */
const demandedKills = 0.9;

/** Shares of the seeds that the gate demands. */
const demandedShares = { hasEventAtWork: 0.5, crashedBetween: 0.1 } as const;

/** Runs many seeds. Returns true without violations and with the demanded shares. */
export async function runMachines(seeds: number, from: number): Promise<boolean> {
  const startedAt = performance.now();
  const workers = Math.min(2, availableParallelism());
  const reports: MachineReport[] = [];
  const onLine = (line: string): void => {
    const report = JSON.parse(line) as MachineReport;
    reports.push(report);
    if (report.violations.length > 0) printViolation(report);
  };
  const children = await Promise.all(
    Array.from({ length: workers }, (_, worker) =>
      runChild(file, [from, from + seeds, worker, workers].map(String), onLine),
    ),
  );
  for (const { code, signal, stderr } of children)
    if (code !== 0) console.log(`a process exited with ${signal ?? code}\n${stderr}`);
  const seconds = (performance.now() - startedAt) / 1000;
  const sum = (count: (report: MachineReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  const failed = sum(({ violations }) => Number(violations.length > 0));
  console.log(`machines: ${reports.length} (seeds ${from} to ${from + seeds - 1}) in ${seconds.toFixed(1)} s`);
  console.log(
    `  transitions ${sum(({ transitions }) => transitions)}, crashes ${sum(({ crashes }) => crashes)}, promises in doubt ${sum(({ doubts }) => doubts)}`,
  );
  console.log(`  on SQLite: ${sum(({ store }) => Number(store !== "memory"))}`);
  const areKilled = checkKills(reports);
  const isReached = checkShares(reports) && areKilled;
  console.log(`  violations: ${failed}`);
  return failed === 0 && reports.length === seeds && isReached && children.every(({ code }) => code === 0);
}

/** Runs one seed and prints its report. */
export async function runMachine(seed: number): Promise<boolean> {
  const report = await runMachineSeed(seed);
  console.log(JSON.stringify({ ...report, violations: undefined }));
  for (const violation of report.violations) console.log(`violation: ${violation}`);
  return report.violations.length === 0;
}

/** Prints the count of each demanded share. Returns false when a share is missed. */
export function checkShares(reports: readonly MachineReport[]): boolean {
  let isReached = true;
  for (const [name, text] of [
    ["hasEventAtWork", "an event arrived while a promise was running"],
    ["crashedBetween", "a crash came between a recorded result and a waiting event"],
  ] as const) {
    const count = reports.filter((report) => report[name]).length;
    const isEnough = count >= reports.length * demandedShares[name];
    console.log(
      `  ${text}: ${count} of ${reports.length}${isEnough ? "" : `, expected ${demandedShares[name] * 100} %`}`,
    );
    isReached &&= isEnough;
  }
  return isReached;
}

/** Prints the number of real kills. Returns false when fewer than 90 % of the seeds of this kind were killed. */
export function checkKills(reports: readonly Pick<MachineReport, "store" | "kills">[]): boolean {
  const chosen = reports.filter(({ store }) => store === "killed");
  const killed = chosen.filter(({ kills }) => kills > 0).length;
  const kills = chosen.reduce((total, report) => total + report.kills, 0);
  const isEnough = killed >= chosen.length * demandedKills;
  console.log(
    `  in processes killed by SIGKILL: ${killed} of ${chosen.length} seeds, ${kills} kills${isEnough ? "" : `, expected ${demandedKills * 100} % of the seeds`}`,
  );
  return isEnough;
}

function printViolation({ seed, violations }: MachineReport): void {
  console.log(`seed ${seed}: ${violations[0]}`);
  console.log(`  reproduce: npm run gates -- machines --seed ${seed}`);
}
