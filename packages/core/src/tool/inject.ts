/** Hidden arguments that come from the run itself, or that a function of yours finds. */

import { StatewrightError } from "../base/errors.ts";
import type { Injection, InjectionSource, RunIdentity } from "../base/injection.ts";
import { describeValue } from "../base/json.ts";

/** Inject the ids of the run: thread, branch, run, node, task. */
export function runIdentity(): Injection<RunIdentity> {
  return { kind: "run", resolve: ({ run }) => run };
}

/**
 * Inject what a function finds when the call is made, and again on resume: a client made with a secret, the run's signal, its
 * emitter. The function gets context, state, ids, secrets, signal, `emit` and `progress`; what it throws fails the run before the call starts.
 */
export function custom<Value>(resolve: (source: InjectionSource) => Value | Promise<Value>): Injection<Value> {
  if (typeof resolve === "function") return { kind: "custom", resolve };
  throw new StatewrightError("invalid_option", {
    what: `custom got ${describeValue(resolve)} where a function is due`,
    next: "Give custom(({ secrets, context }) => …)",
  });
}
