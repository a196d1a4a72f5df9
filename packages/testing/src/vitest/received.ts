/** Inputs of matchers from vitest and the test, and the names in the graph of the received run. */
import type { END, GraphTypes, START } from "@statewright/core";
import type { TestRun } from "../run/test-run.ts";
import type { Trace } from "../trace/trace.ts";

/** Graph types of the received test run or trace. */
export type ReceivedTypes<Received> =
  Received extends TestRun<infer Types extends GraphTypes>
    ? Types
    : Received extends Trace<infer Types extends GraphTypes>
      ? Types
      : never;

/** Node names. */
export type NodeNames<Received> = ReceivedTypes<Received>["nodes"];
/** Tool names. */
export type ToolNames<Received> = ReceivedTypes<Received>["tools"];
/** Channel names. */
export type ChannelNames<Received> = keyof ReceivedTypes<Received>["state"] & string;
/** Interrupt keys, including the keys of inner graphs as `node.key`. */
export type InterruptKeys<Received> = keyof (ReceivedTypes<Received>["interrupts"] &
  ReceivedTypes<Received>["innerInterrupts"]) &
  string;
/** Source of an edge. */
export type EdgeSource<Received> = NodeNames<Received> | typeof START;
/** Target of an edge. */
export type EdgeTarget<Received> = NodeNames<Received> | typeof END;

/** Result of a matcher. */
export interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
  readonly actual?: unknown;
  readonly expected?: unknown;
}

/** `this` of a matcher, bound by vitest. */
export interface MatcherContext {
  readonly isNot: boolean;
  readonly equals: (one: unknown, other: unknown) => boolean;
  readonly utils: { readonly stringify: (value: unknown) => string };
}

/** Returns the received test run; throws for other values. */
export function requireTestRun(received: unknown, matcher: string): TestRun {
  if (typeof received === "object" && received !== null && "trace" in received && "value" in received)
    return received as TestRun;
  throw new TypeError(`${matcher}: expected a test run, got another value. Use expect(t).${matcher}(…).`);
}

/** Returns the received trace, or the trace of the received run; throws for other values. */
export function requireTrace(received: unknown, matcher: string): Trace {
  if (isTrace(received)) return received;
  if (typeof received === "object" && received !== null && "trace" in received && isTrace(received.trace))
    return received.trace;
  throw new TypeError(`${matcher}: expected a test run or its trace, got another value. Use expect(t).${matcher}(…).`);
}

/** Returns true for a trace of a run. */
export function isTrace(value: unknown): value is Trace {
  return (
    typeof value === "object" &&
    value !== null &&
    "graph" in value &&
    "entries" in value &&
    Array.isArray(value.entries)
  );
}
