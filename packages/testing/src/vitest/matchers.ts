/** Matchers for vitest: types and registration. */
import type { CheckRunsOptions, Graph } from "@statewright/core";
import { expect } from "vitest";
import type { StateName } from "../node/state-names.ts";
import type { Trace } from "../trace/trace.ts";
import { traceText } from "../trace/trace-text.ts";
import { type BodyName, toHaveRunOnce } from "./effects.ts";
import { toHaveNoViolations, toLoadRuns } from "./graph-and-store.ts";
import { toHaveInterrupted, toHaveInterruptedOnce } from "./interrupts.ts";
import { toNeverVisit, toPassThrough, toTakeEdge, toVisit } from "./paths.ts";
import {
  type ChannelNames,
  type EdgeSource,
  type EdgeTarget,
  type InterruptKeys,
  isTrace,
  type NodeNames,
  type ToolNames,
} from "./received.ts";
import { type ResumeIdenticallyOptions, toResumeIdentically } from "./resumes.ts";
import { toAccept, toBeInState, toHaveTag } from "./states.ts";
import { type CalledToolsOptions, type ExpectedCall, toHaveCalledTools } from "./tool-calls.ts";
import { toHaveWritten } from "./writes.ts";

/** Tags of a graph's machine, and events accepted by the states. */
type GraphTag = "waiting" | "failed";
type GraphEvent = "step.commit" | "task.interrupted" | "task.failed" | "run.resumed";

/**
 * Matchers for a test run, its trace, a graph report or a store. Names of nodes, tools, channels and interrupts are
 * typed by the graph; a durable machine accepts any name.
 */
export interface StatewrightMatchers<Result, Received> {
  /** Passes when the run is in this state: a node, a state of a node such as `tools.interrupted`, or `done`. */
  toBeInState(state: StateName<NodeNames<Received>>): Result;
  /** Passes when an active state of the run has this tag. */
  toHaveTag(tag: string extends NodeNames<Received> ? string : GraphTag): Result;
  /** Passes when the run accepts an answer to this interrupt, or the machine accepts this event. */
  toAccept(name: InterruptKeys<Received> | GraphEvent | (string extends NodeNames<Received> ? string : never)): Result;
  /**
   * Passes when these states were entered in this order, possibly with other states between. A node name means its
   * execution.
   */
  toPassThrough(states: readonly StateName<NodeNames<Received>>[]): Result;
  /** Passes when this state was entered, exactly `times` times when given. */
  toVisit(state: StateName<NodeNames<Received>>, options?: { readonly times?: number }): Result;
  /** Passes when this state was not entered. */
  toNeverVisit(state: StateName<NodeNames<Received>>): Result;
  /** Passes when the edge between two nodes was taken; `from` may be `START`, `to` may be `END`. */
  toTakeEdge(from: EdgeSource<Received>, to: EdgeTarget<Received>): Result;
  /** Passes when the tools were called like this: exactly these calls in this order, or as `mode` specifies. */
  toHaveCalledTools(calls: readonly ExpectedCall<ToolNames<Received>>[], options?: CalledToolsOptions): Result;
  /** Passes when the body of this tool, node or step was entered once, in all processes of the run together. */
  toHaveRunOnce(name: BodyName<NodeNames<Received> | ToolNames<Received>>): Result;
  /** Passes when this interrupt was raised, with this payload when given. */
  toHaveInterrupted(key: InterruptKeys<Received>, payload?: unknown): Result;
  /** Passes when this interrupt was raised once, in all processes of the run together. */
  toHaveInterruptedOnce(key: InterruptKeys<Received>): Result;
  /** Passes when a superstep wrote this channel, with this resulting value when given. */
  toHaveWritten(channel: ChannelNames<Received>, value?: unknown): Result;
  /**
   * Passes when another process, resumed from the currently saved state, produces the same result as this process and
   * repeats no `once` effect. Await the matcher: the run advances until it rests.
   */
  toResumeIdentically(options?: ResumeIdenticallyOptions): Promise<Result>;
  /** Passes when `checkGraph` found no violation: `expect(checkGraph(graph)).toHaveNoViolations()`. */
  toHaveNoViolations(): Result;
  /** Passes when every run of this store loads under these graphs. Await the matcher. */
  toLoadRuns(graphs: readonly Graph[], options?: CheckRunsOptions): Promise<Result>;
}

declare module "vitest" {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends StatewrightMatchers<R, T> {}
}

/**
 * Snapshot serializer that writes a trace as a single line per transition, for `toMatchSnapshot` and
 * `toMatchInlineSnapshot`.
 */
export const traceSerializer: {
  readonly test: (value: unknown) => boolean;
  readonly serialize: (value: Trace) => string;
} = { test: isTrace, serialize: traceText };

/** Registers the matchers in vitest. Importing `@statewright/testing/vitest` calls this function. */
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
