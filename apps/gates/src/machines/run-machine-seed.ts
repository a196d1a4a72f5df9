/** One seed: a random machine as a durable machine under crashes, compared with a live XState actor. */
import type { StoreKind } from "./machine-stores.ts";
import { createMachinePlan } from "./random-machine.ts";
import { type MachineFacts, runDurable } from "./run-durable.ts";
import { type KilledResult, runKilled } from "./run-killed.ts";
import { type LiveResult, runLive } from "./run-live.ts";

/** Report of one seed. */
export interface MachineReport extends MachineFacts {
  readonly seed: number;
  readonly store: StoreKind;
  /** Number of processes that SIGKILL ended. */
  readonly kills: number;
  readonly transitions: number;
  readonly isDone: boolean;
  readonly violations: readonly string[];
}

/** Number of plans of one seed that are tried until no two results or delays end at one time. */
const maxPlans = 20;

/** Every nth seed uses SQLite. */
const sqliteEvery = 25;

/** Every nth seed runs in processes that SIGKILL ends. */
const killedEvery = 66;

/** Number of the event in an entry of the trail: the live actor gets no numbers. */
const eventNumber = / (\d+)$/;

/** Runs a seed. A plan in which two results or delays end at one time is replaced: XState does not define their order. */
export async function runMachineSeed(seed: number): Promise<MachineReport> {
  const store = selectStore(seed);
  for (let nth = 0; nth < maxPlans; nth++) {
    const planSeed = seed + nth * 100_000_000;
    const plan = createMachinePlan(planSeed);
    const durable = store === "killed" ? await runKilled(planSeed) : await runInProcess(plan, planSeed, store);
    const live = await runLive(plan, durable);
    if (live !== "tie") return createReport(seed, store, durable, live);
  }
  throw new Error(`seed ${seed}: every plan of ${maxPlans} has two results or delays at one time`);
}

function selectStore(seed: number): StoreKind {
  if (seed % killedEvery === 1) return "killed";
  return seed % sqliteEvery === 0 ? "sqlite" : "memory";
}

async function runInProcess(...input: Parameters<typeof runDurable>): Promise<KilledResult> {
  return { ...(await runDurable(...input)), kills: 0 };
}

function createReport(
  seed: number,
  store: StoreKind,
  durable: KilledResult,
  live: Exclude<LiveResult, "tie">,
): MachineReport {
  const { crashes, kills, doubts, hasEventAtWork, crashedBetween, isDone } = durable;
  const violations = [...durable.violations, ...live.violations];
  const received = durable.events.filter(({ isRefused }) => !isRefused).length;
  const numbers = new Set(durable.context.trail.flatMap((entry) => entry.match(eventNumber)?.[1] ?? []));
  if (numbers.size !== received)
    violations.push(`${received} events were received, and ${numbers.size} were processed`);
  const context = { ...durable.context, trail: durable.context.trail.map((entry) => entry.replace(eventNumber, "")) };
  for (const part of ["isDone", "value", "context", "values"] as const) {
    const [actual, expected] = [{ ...durable, context }[part], live[part]].map((value) => JSON.stringify(value));
    if (actual !== expected) violations.push(`${part}: expected ${expected} as of the live actor, got ${actual}`);
  }
  const transitions = durable.context.trail.length;
  return { seed, store, crashes, kills, doubts, hasEventAtWork, crashedBetween, isDone, transitions, violations };
}
