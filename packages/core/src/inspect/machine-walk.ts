/**
 * The machine of a graph, walked as the engine moves it: tasks end, fail or ask, the run goes on, the superstep commits.
 * What it refuses, or does otherwise than the engine takes for granted, is a fault.
 */
import { isStatewrightError } from "../base/errors.ts";
import type { Effect, Kernel, Snapshot } from "../run/kernel.ts";

/** Nodes that execute together, and where control may go when they are done; no nodes at the start and at the end. */
export interface Station {
  readonly nodes: readonly string[];
  readonly next: Iterable<Station>;
  /** Failures and questions are tried here too. */
  readonly endings: boolean;
}

/** What the machine does otherwise. */
export interface MachineFault {
  readonly at: Station;
  readonly message: string;
}

/** Walk the machine from its first state to every station. */
export function walkMachine(kernel: Kernel, first: Station): readonly MachineFault[] {
  const faults: MachineFault[] = [];
  const reached = new Map<Station, Snapshot>([[first, kernel.initial()[0]]]);
  // The map grows while it is walked.
  for (const [station, snapshot] of reached) {
    try {
      if (station.endings)
        for (const message of badEndings(kernel, snapshot, station)) faults.push({ at: station, message });
      const settled = endAll(kernel, snapshot, station, (node) => ({ type: `xstate.done.actor.${node}` }));
      for (const next of station.next) {
        const [there, effects] = kernel.step(settled, { type: "step.commit", to: next.nodes });
        if (!stands(there, effects, next.nodes))
          faults.push({
            at: station,
            message: `the commit that leads to ${named(next.nodes)} ends in ${shown(there)}`,
          });
        else if (!reached.has(next)) reached.set(next, there);
      }
    } catch (error) {
      if (!isStatewrightError(error)) throw error;
      faults.push({ at: station, message: error.message });
    }
  }
  return faults;
}

/**
 * Stations that take every region of a parallel machine through all of its transitions. Regions read the event alone, so
 * that any set of nodes moves as its regions do: to walk the sets one by one would cost milliseconds each and tell no more.
 */
export function regionStations(nodes: readonly string[]): Station {
  const done: Station = { nodes: [], next: [], endings: false };
  const odd = { nodes: nodes.filter((_, index) => index % 2 === 1), next: [done], endings: false };
  const even = { nodes: nodes.filter((_, index) => index % 2 === 0), next: [odd], endings: false };
  const all = { nodes, next: [done], endings: true };
  all.next.push(...(odd.nodes.length === 0 ? [all] : [even]));
  return { nodes: [], next: [all, done], endings: false };
}

/** Failures and questions must rest in a state from which `run.resumed` leads back here, also in a new process. */
function* badEndings(kernel: Kernel, snapshot: Snapshot, station: Station): Generator<string> {
  if (shown(kernel.restore(snapshot.value)) !== shown(snapshot)) yield `${shown(snapshot)} cannot be restored`;
  for (const [type, tag] of [
    ["task.interrupted", "waiting"],
    ["task.failed", "failed"],
  ] as const) {
    const resting = endAll(kernel, snapshot, station, (node) => ({ type, node }));
    if (!resting.tags.has(tag)) yield `after ${type} it rests in ${shown(resting)}, which is not ${tag}`;
    const [back, effects] = kernel.step(resting, { type: "run.resumed" });
    if (!stands(back, effects, station.nodes) || shown(back) !== shown(snapshot))
      yield `after ${type} and run.resumed it stands in ${shown(back)}`;
  }
}

function endAll(
  kernel: Kernel,
  snapshot: Snapshot,
  { nodes }: Station,
  event: (node: string) => Parameters<Kernel["step"]>[1],
): Snapshot {
  return nodes.reduce((at, node) => kernel.step(at, event(node))[0], snapshot);
}

/** Whether exactly these nodes were started; without any the machine must have come to its end. */
function stands(snapshot: Snapshot, effects: readonly Effect[], nodes: readonly string[]): boolean {
  if (nodes.length === 0) return snapshot.status === "done";
  const started = effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : []));
  return snapshot.status === "active" && started.toSorted().join() === nodes.toSorted().join();
}

function shown(snapshot: Snapshot): string {
  return JSON.stringify(snapshot.value);
}

function named(nodes: readonly string[]): string {
  return nodes.length === 0 ? "the end" : nodes.map((node) => `"${node}"`).join(" and ");
}
