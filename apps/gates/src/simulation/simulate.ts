/**
 * Simulations: a program runs with process deaths, failing writes, competing owners, clock jumps, and late or
 * duplicate answers, in an order determined by one seed. The result must equal the result of a run without faults.
 */
import { createChance } from "@statewright/testing";
import { type FaultKind, faultKinds, planFaults } from "./faults.ts";
import type { ProgramFactory } from "./simulated-program.ts";
import type { SimulatedStores } from "./simulated-stores.ts";
import { Simulation } from "./simulation.ts";
import { listDifferences, type SimulationReport } from "./simulation-report.ts";

/** Seed, faults and stores of a simulation. */
export interface SimulationOptions {
  readonly seed: number;
  /** Allowed kinds of faults; all by default. */
  readonly faults?: readonly FaultKind[];
  /** Default: in memory. */
  readonly stores?: () => SimulatedStores;
  /** Report of the run without faults, for the comparison; computed when absent. */
  readonly baseline?: SimulationReport;
  /** Receives a log of the simulation, for debugging a violation. */
  readonly trace?: (line: string) => void;
}

/** Runs a program without faults, in scheduling order. */
export function runUninterrupted(factory: ProgramFactory): Promise<SimulationReport> {
  return new Simulation({ factory, seed: 1, chance: undefined, plannedFaults: [] }).run();
}

/** Runs a program under faults and compares the result with the run without faults. */
export async function simulate(factory: ProgramFactory, options: SimulationOptions): Promise<SimulationReport> {
  const { seed, faults = faultKinds, stores, trace } = options;
  const baseline = options.baseline ?? (await runUninterrupted(factory));
  if (baseline.violations.length > 0 || baseline.end !== "done") return baseline;
  const chance = createChance(seed);
  const plannedFaults = planFaults(chance, baseline.events, faults);
  const report = await new Simulation({ factory, seed, chance, plannedFaults, stores, trace }).run();
  return { ...report, violations: [...report.violations, ...listDifferences(report, baseline)] };
}
