/**
 * Explores the machine of a graph with the engine's events: tasks finish, fail or interrupt, the run resumes, the
 * superstep commits. A refused event, or another state than the engine expects, is a mismatch.
 *
 * Cancel, crash and drain send no event to the machine: a resume restores the state of the last commit. A timeout is
 * a failure, and retries belong to the task: the machine receives only the final failure.
 */
import { isStatewrightError } from "../../base/errors.ts";
import type { Effect, Kernel, Snapshot } from "../../run/kernel/kernel.ts";

/**
 * A superstep of the machine: nodes that execute together, and the possible next supersteps; no nodes at the start
 * and at the end.
 */
export interface MachineStep {
  readonly nodes: readonly string[];
  readonly next: Iterable<MachineStep>;
  /** True if failures, interrupts and resumes are also checked here. */
  readonly endings: boolean;
}

/** A difference between the machine and the engine's expectation. */
export interface MachineMismatch {
  readonly at: MachineStep;
  readonly message: string;
}

/**
 * Explores every step of the machine from its initial state. A mismatch in several steps is reported once, at the
 * nearest step.
 */
export function exploreMachine(kernel: Kernel, first: MachineStep): readonly MachineMismatch[] {
  const mismatches = new Map<string, MachineMismatch>();
  const report = (kind: string, at: MachineStep, message: string): void => {
    if (!mismatches.has(kind)) mismatches.set(kind, { at, message });
  };
  const attempt = (kind: string, at: MachineStep, work: () => string | undefined): void => {
    try {
      const message = work();
      if (message !== undefined) report(kind, at, message);
    } catch (error) {
      if (!isStatewrightError(error)) throw error;
      report(kind, at, error.message);
    }
  };
  const snapshots = new Map<MachineStep, Snapshot>([[first, kernel.enter()[0]]]);
  // The loop adds to the map.
  for (const [step, snapshot] of snapshots) {
    if (step.endings)
      for (const [kind, work] of generateResumeChecks(kernel, snapshot, step)) attempt(kind, step, work);
    attempt("done", step, () => {
      const finished = sendToAll(kernel, snapshot, step.nodes, createDoneEvent);
      for (const next of step.next) {
        attempt(`${formatSnapshot(finished)} to ${next.nodes.join(" ")}`, step, () => {
          const [target, effects] = kernel.step(finished, { type: "step.commit", to: next.nodes });
          const mismatch = findArrivalMismatch(target, effects, next, snapshots.get(next));
          if (mismatch === undefined) snapshots.set(next, target);
          return mismatch;
        });
      }
      return undefined;
    });
  }
  return [...mismatches.values()];
}

/**
 * Checks that a commit starts exactly the next nodes, or ends the machine, with the same state value on every path.
 */
function findArrivalMismatch(
  target: Snapshot,
  effects: readonly Effect[],
  { nodes }: MachineStep,
  known: Snapshot | undefined,
): string | undefined {
  const commit = `the commit that leads to ${formatNodes(nodes)} ends in ${formatSnapshot(target)}`;
  if (!hasStarted(target, effects, nodes)) return commit;
  return known === undefined || formatSnapshot(known) === formatSnapshot(target)
    ? undefined
    : `${commit}, and on another path in ${formatSnapshot(known)}`;
}

/**
 * Returns steps that cover all transitions of every region of a parallel machine. Regions depend on the event alone,
 * so each set of nodes behaves as its regions do: an exploration of all sets of a wide graph would take seconds
 * without further findings.
 */
export function createRegionSteps(nodes: readonly string[]): MachineStep {
  const end: MachineStep = { nodes: [], next: [], endings: false };
  const { even, odd } = splitAlternating(nodes);
  const others = { nodes: odd, next: [end], endings: false };
  const half = { nodes: even, next: [others], endings: false };
  const parts = odd.length === 0 ? [end] : [end, half, others];
  const all = { nodes, next: parts, endings: true };
  return { nodes: [], next: [all, ...parts], endings: false };
}

type NodeEvent = (node: string) => Parameters<Kernel["step"]>[1];
type ResumeCheck = readonly [kind: string, work: () => string | undefined];

const createDoneEvent: NodeEvent = (node) => ({ type: `xstate.done.actor.${node}` });
const createFailedEvent: NodeEvent = (node) => ({ type: "task.failed", node });
const createInterruptedEvent: NodeEvent = (node) => ({ type: "task.interrupted", node });

/**
 * Yields checks of supersteps with failures and interrupts, and of their resume. Each node fails and interrupts
 * before and after other nodes finish, while other nodes execute, and while other nodes interrupt and fail: a resume
 * must execute exactly the unfinished nodes.
 */
function* generateResumeChecks(kernel: Kernel, snapshot: Snapshot, { nodes }: MachineStep): Generator<ResumeCheck> {
  yield [
    "restored",
    () =>
      formatSnapshot(kernel.restore(snapshot.value)) === formatSnapshot(snapshot)
        ? undefined
        : `${formatSnapshot(snapshot)} cannot be restored`,
  ];
  const { even, odd } = splitAlternating(nodes);
  for (const [ended, others] of [
    [even, odd],
    [odd, even],
  ] as const) {
    if (ended.length === 0) continue;
    for (const [kind, event, tag] of [
      ["task.interrupted", createInterruptedEvent, "waiting"],
      ["task.failed", createFailedEvent, "failed"],
    ] as const) {
      const getResting = (): Snapshot => sendToAll(kernel, snapshot, others, createDoneEvent);
      const back = { kind, tag, nodes: ended };
      yield [kind, () => checkResume(kernel, sendToAll(kernel, getResting(), ended, event), getResting(), back)];
      if (others.length === 0) continue;
      const getEarly = (): Snapshot => sendToAll(kernel, snapshot, ended, event);
      yield [kind, () => checkResume(kernel, getEarly(), snapshot, back)];
      yield [
        kind,
        () => checkResume(kernel, sendToAll(kernel, getEarly(), others, createDoneEvent), getResting(), back),
      ];
    }
  }
  const [interruptedNode, failedNode, thirdNode] = nodes;
  if (interruptedNode === undefined || failedNode === undefined) return;
  const getMixed = (): Snapshot => {
    const both = sendToAll(
      kernel,
      sendToAll(kernel, snapshot, [interruptedNode], createInterruptedEvent),
      [failedNode],
      createFailedEvent,
    );
    return sendToAll(kernel, both, thirdNode === undefined ? [] : [thirdNode], createInterruptedEvent);
  };
  const back = { kind: "task.interrupted and task.failed", tag: "failed", nodes: nodes.slice(0, 3) };
  yield ["mixed", () => checkResume(kernel, getMixed(), snapshot, back)];
}

interface ExpectedResume {
  readonly kind: string;
  readonly tag: string;
  /** Nodes restarted by a resume. */
  readonly nodes: readonly string[];
}

/** Checks that a resting machine has the expected tag, and that `run.resumed` returns to the expected state. */
function checkResume(
  kernel: Kernel,
  resting: Snapshot,
  expected: Snapshot,
  { kind, tag, nodes }: ExpectedResume,
): string | undefined {
  if (!resting.tags.has(tag))
    return `after ${kind} the machine rests in ${formatSnapshot(resting)} without the tag ${tag}`;
  const [resumed, effects] = kernel.step(resting, { type: "run.resumed" });
  return hasStarted(resumed, effects, nodes) && formatSnapshot(resumed) === formatSnapshot(expected)
    ? undefined
    : `after ${kind} and run.resumed the machine is in ${formatSnapshot(resumed)}`;
}

function splitAlternating(nodes: readonly string[]): {
  readonly even: readonly string[];
  readonly odd: readonly string[];
} {
  return { even: nodes.filter((_, index) => index % 2 === 0), odd: nodes.filter((_, index) => index % 2 === 1) };
}

function sendToAll(kernel: Kernel, snapshot: Snapshot, nodes: readonly string[], event: NodeEvent): Snapshot {
  return nodes.reduce((at, node) => kernel.step(at, event(node))[0], snapshot);
}

/** Returns true if exactly these nodes were started; without nodes, if the machine is done. */
function hasStarted(snapshot: Snapshot, effects: readonly Effect[], nodes: readonly string[]): boolean {
  if (nodes.length === 0) return snapshot.status === "done";
  const started = effects.flatMap((effect) => (effect.kind === "start" ? [effect.id] : []));
  return snapshot.status === "active" && started.toSorted().join() === nodes.toSorted().join();
}

function formatSnapshot(snapshot: Snapshot): string {
  return JSON.stringify(snapshot.value);
}

function formatNodes(nodes: readonly string[]): string {
  return nodes.length === 0 ? "the end" : nodes.map((node) => `"${node}"`).join(" and ");
}
