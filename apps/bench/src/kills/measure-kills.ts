/** Runs a graph in processes that are killed, and counts the effects in the external world. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Action, actions, getResult, readLog } from "./external-world.ts";
import { createKillPlan, type KillPlan } from "./plan.ts";
import { type ChildOptions, type ProcessResult, runProcess } from "./process.ts";
import type { ContenderId, Stop } from "./program.ts";

/** Counts over all runs of a contender. */
export interface KillCounts {
  readonly runs: number;
  readonly kills: number;
  /** Runs with an action done more than once. */
  readonly repeated: number;
  /** Runs with a repeated action that the external service could not detect: another idempotency key, or none. */
  readonly twice: number;
  /** Finished runs without one of their actions. */
  readonly lost: number;
  /** Runs with other results than the undisturbed run, and runs without an end. */
  readonly wrongEnd: number;
  /** Runs with an interrupt for a call in doubt. */
  readonly inDoubt: number;
  /** Seeds and faults of failed runs. */
  readonly faults: readonly { readonly seed: number; readonly fault: string }[];
}

/** Maximum number of processes of a run; a run beyond this number counts as not ended. */
const maxProcesses = 12;

export async function measureKills(
  contender: ContenderId,
  {
    runs,
    seed,
    home,
    entry,
  }: { readonly runs: number; readonly seed: number; readonly home: string; readonly entry: string },
): Promise<KillCounts> {
  const createOptions = (name: string): ChildOptions => {
    const folder = join(home, contender, name);
    mkdirSync(folder, { recursive: true });
    return { contender, folder, entry, compileCache: join(home, "compiled") };
  };
  const baseline = await measureBaseline(createOptions("undisturbed"));
  const outcomes: { readonly seed: number; readonly outcome: RunOutcome }[] = [];
  const pendingSeeds = Array.from({ length: runs }, (_, index) => seed + index);
  const runPending = async (): Promise<void> => {
    for (let each = pendingSeeds.shift(); each !== undefined; each = pendingSeeds.shift())
      outcomes.push({
        seed: each,
        outcome: await runWithKills(createOptions(String(each)), createKillPlan(each), baseline),
      });
  };
  await Promise.all([runPending(), runPending()]);
  const countOutcomes = (matches: (outcome: RunOutcome) => boolean): number =>
    outcomes.filter(({ outcome }) => matches(outcome)).length;
  return {
    runs,
    kills: outcomes.reduce((sum, { outcome }) => sum + outcome.kills, 0),
    repeated: countOutcomes(({ repeated }) => repeated.length > 0),
    twice: countOutcomes(({ twice }) => twice.length > 0),
    lost: countOutcomes(({ lost }) => lost.length > 0),
    wrongEnd: countOutcomes(({ endFault }) => endFault !== undefined),
    inDoubt: countOutcomes(({ inDoubt }) => inDoubt),
    faults: outcomes
      .flatMap(({ seed: each, outcome }) => listFaults(outcome).map((fault) => ({ seed: each, fault })))
      .sort((one, other) => one.seed - other.seed),
  };
}

interface Baseline {
  readonly points: number;
  readonly durationMs: number;
}

interface RunOutcome {
  readonly kills: number;
  readonly repeated: readonly Action[];
  readonly twice: readonly Action[];
  readonly lost: readonly Action[];
  /** Fault of the run's end. */
  readonly endFault: string | undefined;
  readonly inDoubt: boolean;
}

function listFaults({ twice, lost, endFault }: RunOutcome): readonly string[] {
  return [
    ...twice.map((action) => `${action} was done twice`),
    ...lost.map((action) => `${action} was never done`),
    ...(endFault === undefined ? [] : [endFault]),
  ];
}

/** Runs without kills. Returns the number of kill points of the first process, and its duration with compiled code. */
async function measureBaseline(options: ChildOptions): Promise<Baseline> {
  const first = expectStop(options, await runProcess(options, {}));
  const end = expectStop(options, await runProcess(options, {}));
  const fault = findEndFault(end.stop);
  if (fault !== undefined) throw new Error(`${options.contender} without kills: ${fault}`);
  return first;
}

function expectStop(
  { contender }: ChildOptions,
  result: ProcessResult,
): Extract<ProcessResult, { readonly kind: "stopped" }> {
  if (result.kind === "stopped") return result;
  throw new Error(
    `${contender} without kills: expected a stop, got ${result.kind === "failed" ? result.reason : result.kind}`,
  );
}

async function runWithKills(options: ChildOptions, plan: KillPlan, baseline: Baseline): Promise<RunOutcome> {
  let killCount = 0;
  let end: string | undefined = `the run did not end within ${maxProcesses} processes`;
  for (let nth = 0; nth < maxProcesses; nth++) {
    const result = await runProcess(options, toKillOptions(plan[nth], baseline));
    if (result.kind === "killed") killCount += 1;
    if (result.kind === "failed") {
      end = result.reason;
      break;
    }
    if (result.kind === "stopped" && result.stop.kind === "done") {
      end = findEndFault(result.stop);
      break;
    }
  }
  const log = readLog(options.folder);
  const all = [...actions.before, ...actions.after];
  const listKeys = (action: Action): readonly (string | undefined)[] =>
    log.flatMap((line) => (line.kind === "action" && line.action === action ? [line.key] : []));
  return {
    kills: killCount,
    repeated: all.filter((action) => listKeys(action).length > 1),
    twice: all.filter((action) => countUndetectedCalls(listKeys(action)) > 1),
    lost: all.filter((action) => listKeys(action).length === 0),
    endFault: end,
    inDoubt: log.some(({ kind }) => kind === "interrupt"),
  };
}

function toKillOptions(
  kill: KillPlan[number],
  { points, durationMs }: Baseline,
): { readonly point?: number; readonly afterMs?: number } {
  if (kill === undefined) return {};
  return kill.at === "point" ? { point: 1 + Math.floor(kill.share * points) } : { afterMs: kill.share * durationMs };
}

/**
 * Counts the calls that the external service cannot detect as repeated: distinct keys, and every call without a key.
 */
function countUndetectedCalls(keys: readonly (string | undefined)[]): number {
  return new Set(keys.filter((key) => key !== undefined)).size + keys.filter((key) => key === undefined).length;
}

function findEndFault(stop: Stop): string | undefined {
  if (stop.kind !== "done") return "the run stopped at an answered interrupt";
  const expected = [...actions.before, ...actions.after].map(getResult).join(", ");
  const found = stop.results.join(", ");
  return found === expected && stop.verdict === "yes"
    ? undefined
    : `the run ended with "${found}" and "${stop.verdict}"`;
}
