/** Position of a session: the graph, the run and the step. */
import type { ErrorPlace } from "../../../base/errors.ts";
import type { RunRow } from "../../../checkpoint/checkpoint.ts";
import type { Plan } from "../../../compile/plan.ts";
import { formatNestingPath, type Nesting } from "./nesting.ts";

/** Position of a session: its graph, run, namespace, nesting and step. */
export interface Position {
  readonly plan: Plan;
  readonly run: RunRow;
  /** Namespace of the rows in the store: the run's branch, or a child namespace. */
  readonly namespace: string;
  /** Position in the outermost graph; undefined for the outermost graph. */
  readonly nesting: Nesting | undefined;
  step: number;
  /** Supersteps of this run in earlier processes, and in this process. */
  readonly stepsBefore: number;
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

/** Returns the path from the outermost graph to the session's machine. */
export function getMachinePath({ run, nesting }: Position): readonly string[] {
  return nesting === undefined ? [run.graph] : [run.graph, ...nesting.path];
}

/** Counts the supersteps of the run over all its resumes; for an inner graph, of its call. */
export function countSteps({ stepsBefore, stepsOfRun }: Position): number {
  return stepsBefore + stepsOfRun;
}
