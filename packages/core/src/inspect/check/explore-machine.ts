/**
 * The machine of a graph, walked as the engine moves it: tasks end, fail or ask, the run goes on, the superstep commits.
 * What it refuses, or does otherwise than the engine takes for granted, is a fault.
 *
 * A cancel, a crash and a drain send the machine nothing: a resume restores where the last commit left it. A timeout is a
 * failure, and another attempt belongs to the task: the machine hears of the last one.
 */
import { isStatewrightError } from "../../base/errors.ts";
import type { Effect, Kernel, Snapshot } from "../../run/kernel/kernel.ts";

/** Nodes that execute together, and where control may go when they are done; no nodes at the start and at the end. */
export interface Station {
  readonly nodes: readonly string[];
  readonly next: Iterable<Station>;
  /** Whether failures, questions and resumes are tried here too. */
  readonly endings: boolean;
}

/** What the machine does otherwise. */
export interface MachineFault {
  readonly at: Station;
  readonly message: string;
}

/** Walk the machine from its first state to every station. A fault that many stations show is told at the nearest. */
export function walkMachine(kernel: Kernel, first: Station): readonly MachineFault[] {
  const faults = new Map<string, MachineFault>();
  const tell = (kind: string, at: Station, message: string): void => {
    if (!faults.has(kind)) faults.set(kind, { at, message });
  };
  const attempt = (kind: string, at: Station, work: () => string | undefined): void => {
    try {
      const message = work();
      if (message !== undefined) tell(kind, at, message);
    } catch (error) {
      if (!isStatewrightError(error)) throw error;
      tell(kind, at, error.message);
    }
  };
  const reached = new Map<Station, Snapshot>([[first, kernel.initial()[0]]]);
  // The map grows while it is walked.
  for (const [station, snapshot] of reached) {
    if (station.endings) for (const [kind, work] of endingsAt(kernel, snapshot, station)) attempt(kind, station, work);
    attempt("done", station, () => {
      const settled = endAll(kernel, snapshot, station.nodes, done);
      for (const next of station.next) {
        attempt(`${shown(settled)} to ${next.nodes.join(" ")}`, station, () => {
          const [there, effects] = kernel.step(settled, { type: "step.commit", to: next.nodes });
          const fault = arrivalFault(there, effects, next, reached.get(next));
          if (fault === undefined) reached.set(next, there);
          return fault;
        });
      }
      return undefined;
    });
  }
  return [...faults.values()];
}

/** A commit starts exactly the next nodes, or ends the machine; whichever way leads there. */
function arrivalFault(
  there: Snapshot,
  effects: readonly Effect[],
  { nodes }: Station,
  known: Snapshot | undefined,
): string | undefined {
  const commit = `the commit that leads to ${named(nodes)} ends in ${shown(there)}`;
  if (!stands(there, effects, nodes)) return commit;
  return known === undefined || shown(known) === shown(there)
    ? undefined
    : `${commit}, and on another way in ${shown(known)}`;
}

/**
 * Stations that take every region of a parallel machine through all of its transitions. Regions read the event alone, so
 * that any set of nodes moves as its regions do: to walk the sets of a wide graph one by one would take seconds and tell no more.
 */
export function regionStations(nodes: readonly string[]): Station {
  const end: Station = { nodes: [], next: [], endings: false };
  const { even, odd } = halves(nodes);
  const others = { nodes: odd, next: [end], endings: false };
  const half = { nodes: even, next: [others], endings: false };
  const parts = odd.length === 0 ? [end] : [end, half, others];
  const all = { nodes, next: parts, endings: true };
  return { nodes: [], next: [all, ...parts], endings: false };
}

type NodeEvent = (node: string) => Parameters<Kernel["step"]>[1];
type Ending = readonly [kind: string, work: () => string | undefined];

const done: NodeEvent = (node) => ({ type: `xstate.done.actor.${node}` });
const failed: NodeEvent = (node) => ({ type: "task.failed", node });
const interrupted: NodeEvent = (node) => ({ type: "task.interrupted", node });

/**
 * Where a superstep rests that does not end well, and how it is taken up again. Each node fails and asks while others are
 * done, before it and after it, while others are at work, and while others ask and fail: a run that resumes then executes
 * what is not done, and only that.
 */
function* endingsAt(kernel: Kernel, snapshot: Snapshot, { nodes }: Station): Generator<Ending> {
  yield [
    "restored",
    () =>
      shown(kernel.restore(snapshot.value)) === shown(snapshot) ? undefined : `${shown(snapshot)} cannot be restored`,
  ];
  const { even, odd } = halves(nodes);
  for (const [ended, others] of [
    [even, odd],
    [odd, even],
  ] as const) {
    if (ended.length === 0) continue;
    for (const [kind, event, tag] of [
      ["task.interrupted", interrupted, "waiting"],
      ["task.failed", failed, "failed"],
    ] as const) {
      const rests = (): Snapshot => endAll(kernel, snapshot, others, done);
      const back = { kind, tag, nodes: ended };
      yield [kind, () => takenUp(kernel, endAll(kernel, rests(), ended, event), rests(), back)];
      if (others.length === 0) continue;
      const early = (): Snapshot => endAll(kernel, snapshot, ended, event);
      yield [kind, () => takenUp(kernel, early(), snapshot, back)];
      yield [kind, () => takenUp(kernel, endAll(kernel, early(), others, done), rests(), back)];
    }
  }
  const [asking, failing, also] = nodes;
  if (asking === undefined || failing === undefined) return;
  const mixed = (): Snapshot => {
    const both = endAll(kernel, endAll(kernel, snapshot, [asking], interrupted), [failing], failed);
    return endAll(kernel, both, also === undefined ? [] : [also], interrupted);
  };
  const back = { kind: "task.interrupted and task.failed", tag: "failed", nodes: nodes.slice(0, 3) };
  yield ["mixed", () => takenUp(kernel, mixed(), snapshot, back)];
}

interface WayBack {
  readonly kind: string;
  readonly tag: string;
  /** What a resume starts again. */
  readonly nodes: readonly string[];
}

/** What rests must say so by its tag, and `run.resumed` must lead back. */
function takenUp(
  kernel: Kernel,
  resting: Snapshot,
  before: Snapshot,
  { kind, tag, nodes }: WayBack,
): string | undefined {
  if (!resting.tags.has(tag)) return `after ${kind} it rests in ${shown(resting)}, which is not ${tag}`;
  const [back, effects] = kernel.step(resting, { type: "run.resumed" });
  return stands(back, effects, nodes) && shown(back) === shown(before)
    ? undefined
    : `after ${kind} and run.resumed it stands in ${shown(back)}`;
}

function halves(nodes: readonly string[]): { readonly even: readonly string[]; readonly odd: readonly string[] } {
  return { even: nodes.filter((_, index) => index % 2 === 0), odd: nodes.filter((_, index) => index % 2 === 1) };
}

function endAll(kernel: Kernel, snapshot: Snapshot, nodes: readonly string[], event: NodeEvent): Snapshot {
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
