/** Compares the machine of a graph with the control states of the graph. */
import { getMachineKernel } from "../../run/kernel/get-kernel.ts";
import { type CheckedGraph, getPath, listNodes, toQualifiedName } from "./checked-graph.ts";
import { createRegionSteps, exploreMachine, type MachineMismatch, type MachineStep } from "./explore-machine.ts";
import type { ControlState } from "./explore-states.ts";
import type { GraphViolation } from "./report.ts";

/**
 * Checks a sequential machine, and a small parallel machine, in every control state; a larger parallel machine region
 * by region.
 */
export function findMachineMismatches(checked: CheckedGraph): GraphViolation[] {
  const { graph, plan, exploration } = checked;
  const { states } = exploration;
  const steps = new Map(
    plan.parallel && estimateCost(states, plan.nodes.size) > maxCost
      ? []
      : states.map((state) => [state, toMachineStep(state)] as const),
  );
  for (const [state, { next }] of steps) {
    for (const after of state.next) {
      const step = steps.get(after);
      if (step !== undefined) next.push(step);
    }
  }
  const [first = createRegionSteps([...plan.nodes.keys()])] = steps.values();
  const statesByStep = new Map<MachineStep, ControlState>([...steps].map(([state, station]) => [station, state]));
  return exploreMachine(getMachineKernel(graph), first).map(({ at, message }) => ({
    rule: "machine_mismatch",
    path: getMismatchPath(checked, statesByStep.get(at), at),
    message,
  }));
}

/** Number of events over all control states, times the number of regions that receive each event. */
function estimateCost(states: readonly ControlState[], regions: number): number {
  return states.reduce((sum, { pending }) => sum + (5 * pending.length + 5) * regions, 0);
}

/** About the cost of the regions of a graph with thirty nodes. */
const maxCost = 6_000;

function toMachineStep(state: ControlState): MachineStep & { readonly next: MachineStep[] } {
  return { nodes: listNodes(state), next: [], endings: listNodes(state).length > 0 };
}

function getMismatchPath(
  checked: CheckedGraph,
  state: ControlState | undefined,
  { nodes }: MachineMismatch["at"],
): readonly string[] {
  if (state !== undefined) return getPath(checked, state);
  const start = checked.entryPath.length === 0 ? ["start"] : checked.entryPath;
  return nodes.length === 0 ? start : [...start, nodes.map((node) => toQualifiedName(checked, node)).join(" + ")];
}
