/** Position of a session: the graph, the run and the step; the count of its supersteps and of the turns of agents. */

import type { ErrorPlace } from "../../../base/errors.ts";
import type { Control, RunRow, Task } from "../../../checkpoint/checkpoint.ts";
import { toBranchPrefix } from "../../../checkpoint/thread-rules.ts";
import type { Plan } from "../../../compile/plan.ts";
import type { TurnLimit } from "../../../define/agent-turn.ts";
import { formatNestingPath, type Nesting } from "./nesting.ts";
import type { Progress } from "./progress.ts";

/** Position of a session: its graph, run, namespace, nesting and step. */
export interface Position {
  readonly plan: Plan;
  readonly run: RunRow;
  /** Namespace of the rows in the store: the run's branch, or a child namespace. */
  readonly namespace: string;
  /** Random part of the idempotency keys of the thread. */
  readonly keySalt: string;
  /** Position in the outermost graph; undefined for the outermost graph. */
  readonly nesting: Nesting | undefined;
  step: number;
  /** Number of supersteps of this run in earlier processes. */
  readonly stepsBefore: number;
  /** Number of supersteps of this run in this process. */
  stepsOfRun: number;
}

/** Returns the location in the run for errors. */
export function getErrorPlace(position: Position, more: ErrorPlace = {}): ErrorPlace {
  return {
    graph: position.plan.graph.name,
    thread: position.run.thread,
    branch: position.run.branch,
    ...(position.step < 0 ? {} : { step: position.step }),
    ...(position.nesting === undefined ? {} : { nesting: formatNestingPath(position.nesting) }),
    ...more,
  };
}

/** Returns the location of a task for errors. */
export function getTaskPlace(
  position: Position,
  { node, id }: Pick<Task, "node" | "id">,
  more?: ErrorPlace,
): ErrorPlace {
  return getErrorPlace(position, { node, task: id, ...more });
}

/** Returns the id of a message that a task makes: unique over the branches of the thread. */
export function createMessageId({ run }: Pick<Position, "run">, { id }: Pick<Task, "id">, key: string): string {
  return `${toBranchPrefix(run.branch)}${id}:${key}`;
}

/** Returns the prefix of the ids of interrupts raised at a position: the branch, then the tasks and calls on the path. */
export function getInterruptIdPrefix({ run, nesting }: Pick<Position, "run" | "nesting">): string {
  return `${toBranchPrefix(run.branch)}${nesting?.idPrefix ?? ""}`;
}

/** Returns the path from the outermost graph to the session's machine. */
export function getMachinePath({ run, nesting }: Position): readonly string[] {
  return nesting === undefined ? [run.graph] : [run.graph, ...nesting.path];
}

/** Counts the supersteps of the run over all its resumes; for an inner graph, of its call. */
export function countSteps({ stepsBefore, stepsOfRun }: Position): number {
  return stepsBefore + stepsOfRun;
}

/**
 * Returns the turns so far, including this superstep. A run that starts from another run's checkpoint starts at zero.
 */
export function getTurns(position: Position, progress: Progress): Control["turns"] {
  return progress.turns ?? getPreviousTurns(position, progress);
}

/** Counts a turn of the node's agent; returns false at the limit. */
export function countTurn(position: Position, progress: Progress, { node }: Task, { turns }: TurnLimit): boolean {
  // A retry of the node stays in the same turn.
  const previousTurns = getPreviousTurns(position, progress)?.[node] ?? 0;
  if (previousTurns >= turns) return false;
  progress.turns = { ...getTurns(position, progress), [node]: previousTurns + 1 };
  return true;
}

function getPreviousTurns(position: Position, progress: Progress): Control["turns"] {
  return countSteps(position) === 0 ? undefined : progress.control.turns;
}
