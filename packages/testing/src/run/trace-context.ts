/** What is known of the run that a trace tells of: matchers that are given the trace alone explain a failure by it. */
import type { Graph } from "@statewright/core";
import type { Trace } from "../trace/trace.ts";
import type { TestRun } from "./test-run.ts";

/** A run, its graph as its author wrote it, and the state that it began with. */
export interface ToldOf {
  readonly graph: Graph;
  readonly run: TestRun;
  readonly initial: Readonly<Record<string, unknown>>;
}

/** On the trace itself: a test runner may load this package twice, and the matchers of one copy are given traces of the other. */
const told = Symbol.for("statewright.toldOf");

/** Remember whose trace this is. */
export function tellOf(trace: Trace, of: ToldOf): void {
  Object.defineProperty(trace, told, { value: of });
  for (const hear of hearers) hear(trace, of);
}

const hearers: Set<(trace: Trace, of: ToldOf) => void> = new Set();

/** Hear of every run as it is made. */
export function onTold(hear: (trace: Trace, of: ToldOf) => void): void {
  hearers.add(hear);
}

/** Whose trace this is; undefined for one that was made by hand. */
export function toldOf(trace: Trace): ToldOf | undefined {
  return (trace as { readonly [told]?: ToldOf })[told];
}
