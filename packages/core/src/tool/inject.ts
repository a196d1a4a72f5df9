/** Injections of run data and of custom values. */

import { StatewrightError } from "../base/errors.ts";
import type { Injection, InjectionSource, RunIdentity } from "../base/injection.ts";
import { describeValue } from "../base/json.ts";

/** Injects the ids of thread, branch, run, node and task. */
export function runIdentity(): Injection<RunIdentity> {
  return { kind: "run", resolve: ({ run }) => run };
}

/**
 * Injects the result of a function, called at the time of the tool call and again on resume: for example a client
 * created with a secret. The function receives context, state, ids, secrets, signal, `emit` and `progress`. An error
 * in the function fails the run before the call starts.
 */
export function custom<Value>(resolve: (source: InjectionSource) => Value | Promise<Value>): Injection<Value> {
  if (typeof resolve === "function") return { kind: "custom", resolve };
  throw new StatewrightError("invalid_option", {
    what: `custom: expected a function, got ${describeValue(resolve)}`,
    next: "Use custom(({ secrets, context }) => …)",
  });
}
