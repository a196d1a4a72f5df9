/** Injections: hidden arguments of tools, which the model never sees. The public namespace `inject`. */
// biome-ignore-start lint/performance/noBarrelFile: members of the namespace `inject`

import type { Injection, InjectionSource, RunIdentity } from "../base/injection.ts";
import { invalidOption } from "../base/invalid-option.ts";

export { longTerm as store } from "../long-term/inject-long-term.ts";
export { secret } from "./policy/secret.ts";
// biome-ignore-end lint/performance/noBarrelFile: members of the namespace `inject`

/**
 * Injects a part of the context of the run, read at the time of the call and again on resume.
 * `inject.context(Desk, (desk) => desk.customerId)`
 */
export function context<Context, Value>(
  definition: { readonly from: <Part>(select: (context: Context) => Part) => Injection<Part, Context> },
  select: (context: Context) => Value,
): Injection<Value, Context> {
  return definition.from(select);
}

/** Injects a part of the state, read at the time of the call: `inject.state(Shop, (shop) => shop.cart)`. */
export function state<State, Value>(
  definition: { readonly from: <Part>(select: (state: State) => Part) => Injection<Part, unknown, State> },
  select: (state: State) => Value,
): Injection<Value, unknown, State> {
  return definition.from(select);
}

/** Injects the ids of thread, branch, run, node and task. */
export function run(): Injection<RunIdentity> {
  return { kind: "run", resolve: ({ run }) => run };
}

/**
 * Injects the result of a function, called at the time of the tool call and again on resume: for example a client
 * created with a secret. The function receives context, state, ids, secrets, signal, `emit` and `progress`. An error
 * in the function fails the run before the call starts.
 */
export function custom<Value>(resolve: (source: InjectionSource) => Value | Promise<Value>): Injection<Value> {
  if (typeof resolve === "function") return { kind: "custom", resolve };
  throw invalidOption({
    where: "inject.custom",
    expected: "a function",
    got: resolve,
    fix: "Use inject.custom(({ secrets, context }) => …)",
  });
}
