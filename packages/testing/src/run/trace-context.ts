/**
 * Context of a trace: matchers that receive only the trace explain a failure with the graph and the run of the trace.
 */
import type { Graph } from "@statewright/core";
import type { Trace } from "../trace/trace.ts";
import type { TestRun } from "./test-run.ts";

/** Run with the graph as defined by the author, and the initial state. */
export interface TraceContext {
  readonly graph: Graph;
  readonly run: TestRun;
  readonly initial: Readonly<Record<string, unknown>>;
}

/**
 * Symbol property on the trace: a test runner may load this package twice, and matchers of a copy receive traces of
 * another copy.
 */
const contextKey = Symbol.for("statewright.traceContext");

/** Attaches the context to a trace and notifies the subscribers. */
export function attachTraceContext(trace: Trace, context: TraceContext): void {
  Object.defineProperty(trace, contextKey, { value: context });
  for (const subscriber of subscribers) subscriber(trace, context);
}

const subscribers: Set<(trace: Trace, context: TraceContext) => void> = new Set();

/** Subscribes to the creation of every test run. */
export function subscribeToTestRuns(subscriber: (trace: Trace, context: TraceContext) => void): void {
  subscribers.add(subscriber);
}

/** Returns the context of a trace; undefined for a trace made by hand. */
export function getTraceContext(trace: Trace): TraceContext | undefined {
  return (trace as { readonly [contextKey]?: TraceContext })[contextKey];
}
