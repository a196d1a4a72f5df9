/** The matchers for vitest: their names and types, and how vitest comes to know them. */
import type { CheckRunsOptions, Graph } from "@statewright/core";
import { expect } from "vitest";
import type { StateName } from "../node/state-names.ts";
import type { Trace } from "../trace/trace.ts";
import { traceText } from "../trace/trace-text.ts";
import { type RanName, toHaveRunOnce } from "./effects.ts";
import { toHaveNoViolations, toLoadRuns } from "./graph-and-store.ts";
import { toHaveInterrupted, toHaveInterruptedOnce } from "./interrupts.ts";
import { toNeverVisit, toPassThrough, toTakeEdge, toVisit } from "./paths.ts";
import {
  type ChannelsOf,
  isTrace,
  type NodesOf,
  type QuestionsOf,
  type SourceOf,
  type TargetOf,
  type ToolsOf,
} from "./received.ts";
import { type ResumeIdenticallyOptions, toResumeIdentically } from "./resumes.ts";
import { toAccept, toBeInState, toHaveTag } from "./states.ts";
import { type CalledToolsOptions, type ExpectedCall, toHaveCalledTools } from "./tool-calls.ts";
import { toHaveWritten } from "./writes.ts";

/** The tags of a graph's machine, and the events that its states take. */
type GraphTag = "waiting" | "failed";
type GraphEvent = "step.commit" | "task.interrupted" | "task.failed" | "run.resumed";

/**
 * Matchers for a test run, its trace, a checked graph or a store. Names of nodes, tools, channels and questions are those of
 * its graph; a machine drawn by hand takes any.
 */
export interface StatewrightMatchers<Result, Received> {
  /** The run stands in this state: a node, a node's state such as `tools.interrupted`, or `done`. */
  toBeInState(state: StateName<NodesOf<Received>>): Result;
  /** A state in which the run stands has this tag. */
  toHaveTag(tag: string extends NodesOf<Received> ? string : GraphTag): Result;
  /** The run takes an answer to this question now, or its machine this event. */
  toAccept(name: QuestionsOf<Received> | GraphEvent | (string extends NodesOf<Received> ? string : never)): Result;
  /** These states were entered in this order; others may stand between. A node's name means that it executed. */
  toPassThrough(states: readonly StateName<NodesOf<Received>>[]): Result;
  /** This state was entered, so many times where that is said. */
  toVisit(state: StateName<NodesOf<Received>>, options?: { readonly times?: number }): Result;
  /** This state was not entered. */
  toNeverVisit(state: StateName<NodesOf<Received>>): Result;
  /** Control went from this node, or `START`, to that one, or `END`. */
  toTakeEdge(from: SourceOf<Received>, to: TargetOf<Received>): Result;
  /** These calls were made: exactly these, in this order, or as `mode` says. */
  toHaveCalledTools(calls: readonly ExpectedCall<ToolsOf<Received>>[], options?: CalledToolsOptions): Result;
  /** The body of this tool or node, or of a step, was entered once, in all lives of the run together. */
  toHaveRunOnce(name: RanName<NodesOf<Received> | ToolsOf<Received>>): Result;
  /** This question was asked, with this payload when one is given. */
  toHaveInterrupted(key: QuestionsOf<Received>, payload?: unknown): Result;
  /** This question was asked once, in all lives of the run together. */
  toHaveInterruptedOnce(key: QuestionsOf<Received>): Result;
  /** Some superstep wrote this channel, so that it had this value when one is given. */
  toHaveWritten(channel: ChannelsOf<Received>, value?: unknown): Result;
  /**
   * A process that finds what is saved now comes to the same end as this one, and repeats nothing that may happen `once`.
   * Await it: the run goes on until it rests.
   */
  toResumeIdentically(options?: ResumeIdenticallyOptions): Promise<Result>;
  /** `checkGraph` found nothing in the graph: `expect(checkGraph(graph)).toHaveNoViolations()`. */
  toHaveNoViolations(): Result;
  /** Every run of this store loads under these graphs. Await it. */
  toLoadRuns(graphs: readonly Graph[], options?: CheckRunsOptions): Promise<Result>;
}

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends StatewrightMatchers<R, T> {}
}

/** Writes a trace as one line a transition, for `toMatchSnapshot` and `toMatchInlineSnapshot`. */
export const traceSerializer: {
  readonly test: (value: unknown) => boolean;
  readonly serialize: (value: Trace) => string;
} = { test: isTrace, serialize: traceText };

/** Make the matchers known to vitest. Importing `@statewright/testing/vitest` does it. */
export function addMatchers(): void {
  expect.extend({
    toBeInState,
    toHaveTag,
    toAccept,
    toPassThrough,
    toVisit,
    toNeverVisit,
    toTakeEdge,
    toHaveCalledTools,
    toHaveRunOnce,
    toHaveInterrupted,
    toHaveInterruptedOnce,
    toHaveWritten,
    toResumeIdentically,
    toHaveNoViolations,
    toLoadRuns,
  });
  expect.addSnapshotSerializer(traceSerializer);
}
