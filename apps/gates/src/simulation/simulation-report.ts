/** Report of a simulation, and its comparison with the run without faults. */
import { omitFailedAttempts } from "@statewright/testing";
import type { FaultCounts } from "./faults.ts";

/** Report of a simulation. */
export interface SimulationReport {
  readonly end: "done" | "cancelled" | "stuck";
  readonly state: unknown;
  /** Checkpoints of each namespace: step, nodes and next tasks. */
  readonly namespaces: Readonly<Record<string, readonly string[]>>;
  /** Number of external effects by key. */
  readonly effects: ReadonlyMap<string, number>;
  readonly once: ReadonlySet<string>;
  readonly processes: number;
  readonly deaths: number;
  /** Injected faults by kind. */
  readonly faults: FaultCounts;
  readonly events: number;
  /** Violated invariants; each text starts with the id of the invariant. */
  readonly violations: readonly string[];
}

/** Lists forbidden differences to the run without faults. */
export function listDifferences(report: SimulationReport, baseline: SimulationReport): readonly string[] {
  const repeated = listRepeatedEffects(report);
  // A cancel answers pending tool calls, also if the run finishes in the end.
  if (report.end !== "done" || report.faults.cancel !== undefined) return repeated;
  return [
    ...repeated,
    ...listEffectDifferences(report, baseline),
    ...listStateDifferences(report, baseline),
    ...listCheckpointDifferences(report, baseline),
  ];
}

function listRepeatedEffects({ effects, once }: SimulationReport): readonly string[] {
  const repeated = [...effects].filter(([key, times]) => once.has(key) && times > 1);
  return repeated.map(([key, times]) => `I2 ${key} happened ${times} times`);
}

function listEffectDifferences(report: SimulationReport, baseline: SimulationReport): readonly string[] {
  const missing = [...baseline.effects.keys()].filter((key) => !report.effects.has(key));
  const extra = [...report.effects.keys()].filter((key) => !baseline.effects.has(key));
  return [
    ...missing.map((key) => `I2 ${key} never happened`),
    ...extra.map((key) => `I3 ${key} happened, but not in the run without faults`),
  ];
}

function listStateDifferences(report: SimulationReport, baseline: SimulationReport): readonly string[] {
  if (JSON.stringify(omitFailedAttempts(report.state)) === JSON.stringify(omitFailedAttempts(baseline.state)))
    return [];
  return [`I3 the state is ${JSON.stringify(report.state)} and without faults ${JSON.stringify(baseline.state)}`];
}

/** Lists the first deviating checkpoint of each namespace. */
function listCheckpointDifferences(report: SimulationReport, baseline: SimulationReport): readonly string[] {
  const differences: string[] = [];
  for (const namespace of new Set([...Object.keys(report.namespaces), ...Object.keys(baseline.namespaces)])) {
    const [actual = [], expected = []] = [report.namespaces[namespace], baseline.namespaces[namespace]];
    const deviation = expected.findIndex((text, index) => text !== actual[index]);
    if (deviation < 0 && actual.length === expected.length) continue;
    const index = deviation < 0 ? expected.length : deviation;
    differences.push(
      `I3 checkpoint ${index} of ${namespace} is ${actual[index]} and without faults ${expected[index]}`,
    );
  }
  return differences;
}
