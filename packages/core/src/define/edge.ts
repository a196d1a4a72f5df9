/** Edges: where control goes after a node. */

import { checkOptions } from "../base/options.ts";

/** Where a graph begins. */
export const START = "__start__" as const;

/** Where a graph ends. */
export const END = "__end__" as const;

/** A choice among declared targets, made by a function of the state. */
export interface Route<State, Target extends string> {
  readonly kind: "route";
  readonly targets: readonly Target[];
  readonly choose: (state: State) => Target | readonly Target[];
  /** Whether it may choose several targets at once. */
  readonly many: boolean;
}

/** One task of `target` for each item that `select` gives. */
export interface Sends<State, Target extends string, Input, Otherwise extends string = string> {
  readonly kind: "sends";
  readonly target: Target;
  readonly select: (state: State) => readonly Input[];
  /** Where control goes when there are no items. */
  readonly otherwise?: Otherwise | undefined;
}

/** The targets that a node's own `goto` and `send` commands may name. */
export interface Gotos<Target extends string> {
  readonly kind: "gotos";
  readonly targets: readonly Target[];
  readonly accepts?: (target: Target) => void;
}

/** An edge to a node that waits for every node with a join to it. */
export interface Join<Target extends string> {
  readonly kind: "join";
  readonly target: Target;
}

/**
 * Choose the next node by a function of the state; only declared targets may be returned. With `many` it may return a list
 * of them, which run in parallel; without, one node runs at a time, and the graph's machine says so.
 */
export function route<const Target extends string, State, const Many extends boolean = false>(
  targets: readonly Target[],
  choose: (state: State) => NoInfer<Target> | (Many extends true ? readonly NoInfer<Target>[] : never),
  options: { readonly many?: Many } = {},
): Route<State, Target> {
  checkOptions("route", options, ["many"]);
  return { kind: "route", targets, choose, many: options.many ?? false };
}

/** Start one task of `target` for each item; with no items control goes to `otherwise`, or the run fails with `empty_sends`. */
export function sends<const Target extends string, State, Input, const Otherwise extends string = never>(
  target: Target,
  select: (state: State) => readonly Input[],
  options: { readonly otherwise?: Otherwise } = {},
): Sends<State, Target, Input, Otherwise> {
  checkOptions("sends", options, ["otherwise"]);
  return { kind: "sends", target, select, otherwise: options.otherwise };
}

/** Declare where a node's `goto` and `send` commands may lead. A node that returns none of them ends its branch. */
export function gotos<const Target extends string>(...targets: readonly Target[]): Gotos<Target> {
  return { kind: "gotos", targets };
}

/** Go to `target` when every node with a join to it has finished, once per round. */
export function join<const Target extends string>(target: Target): Join<Target> {
  return { kind: "join", target };
}
