/** What matchers are given, by vitest and by the test, and the names that its graph has. */
import type { END, GraphTypes, START } from "@statewright/core";
import type { TestRun } from "../run/test-run.ts";
import type { Trace } from "../trace/trace.ts";

/** The types of the graph that a test run, or its trace, is of. */
export type TypesIn<Received> =
  Received extends TestRun<infer Types extends GraphTypes>
    ? Types
    : Received extends Trace<infer Types extends GraphTypes>
      ? Types
      : never;

/** The names of its nodes. */
export type NodesOf<Received> = TypesIn<Received>["nodes"];
/** The names of its tools. */
export type ToolsOf<Received> = TypesIn<Received>["tools"];
/** The names of its channels. */
export type ChannelsOf<Received> = keyof TypesIn<Received>["state"] & string;
/** The keys of its questions, and those of the graphs inside, as `node.key`. */
export type QuestionsOf<Received> = keyof (TypesIn<Received>["interrupts"] & TypesIn<Received>["innerInterrupts"]) &
  string;
/** What an edge may begin at. */
export type SourceOf<Received> = NodesOf<Received> | typeof START;
/** What an edge may lead to. */
export type TargetOf<Received> = NodesOf<Received> | typeof END;

/** What a matcher gives to vitest. */
export interface Verdict {
  readonly pass: boolean;
  readonly message: () => string;
  readonly actual?: unknown;
  readonly expected?: unknown;
}

/** What vitest binds to a matcher. */
export interface Bound {
  readonly isNot: boolean;
  readonly equals: (one: unknown, other: unknown) => boolean;
  readonly utils: { readonly stringify: (value: unknown) => string };
}

/** The test run that a matcher looks at. */
export function asRun(received: unknown, matcher: string): TestRun {
  if (typeof received === "object" && received !== null && "trace" in received && "value" in received)
    return received as TestRun;
  throw new TypeError(`${matcher} looks at a test run: expect(t).${matcher}(…)`);
}

/** The trace that a matcher looks at: given as it is, or that of a run. */
export function asTrace(received: unknown, matcher: string): Trace {
  if (isTrace(received)) return received;
  if (typeof received === "object" && received !== null && "trace" in received && isTrace(received.trace))
    return received.trace;
  throw new TypeError(`${matcher} looks at a test run or its trace: expect(t).${matcher}(…)`);
}

/** Tell whether a value is the trace of a run. */
export function isTrace(value: unknown): value is Trace {
  return (
    typeof value === "object" &&
    value !== null &&
    "graph" in value &&
    "entries" in value &&
    Array.isArray(value.entries)
  );
}
