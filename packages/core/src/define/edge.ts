/** Edges: the routes of control after a node. */

import { checkOptions } from "../base/options.ts";

/** Entry point of a graph. */
export const START = "__start__" as const;

/** End point of a graph. */
export const END = "__end__" as const;

/** Conditional edge: a function of the state and the context chooses among declared targets. */
export interface Route<State, Target extends string, Context = unknown> {
  readonly kind: "route";
  readonly targets: readonly Target[];
  /** Returns the next node, or several with `many`. */
  readonly choose: (state: State, context: Context) => Target | readonly Target[];
  /** True when the function may choose several targets at once. */
  readonly many: boolean;
}

/** Fan-out edge: a single task of `target` for each item returned by `select`. */
export interface FanOut<State, Target extends string, Input, Otherwise extends string = string, Context = unknown> {
  readonly kind: "fanOut";
  readonly target: Target;
  /** Returns the inputs of the tasks, one for each task. */
  readonly select: (state: State, context: Context) => readonly Input[];
  /** Target when there are no items. */
  readonly otherwise?: Otherwise | undefined;
}

/** Declared targets of a node's `goto` and `send` commands. */
export interface CommandTargets<Target extends string> {
  readonly kind: "commandTargets";
  readonly targets: readonly Target[];
  /** Exists only in types. */
  readonly accepts?: (target: Target) => void;
}

/** Join edge: the target waits for every node with a join to the target. */
export interface Join<Target extends string> {
  readonly kind: "join";
  readonly target: Target;
}

/**
 * Routes to the next node by a function of the state and of the context of the run; only declared targets may be
 * returned. With `many` (default false) the function may return a list of targets, which run in parallel; otherwise one
 * node runs at a time.
 */
export function route<const Target extends string, State, const Many extends boolean = false, Context = unknown>(
  targets: readonly Target[],
  choose: (
    state: State,
    context: Context,
  ) => NoInfer<Target> | (Many extends true ? readonly NoInfer<Target>[] : never),
  options: { readonly many?: Many } = {},
): Route<State, Target, Context> {
  checkOptions("route", options, ["many"]);
  return { kind: "route", targets, choose, many: options.many ?? false };
}

/**
 * Starts a single task of `target` for each item, selected by the state and the context of the run. Without items
 * control goes to `otherwise`, or the run fails with `empty_fan_out`.
 */
export function fanOut<
  const Target extends string,
  State,
  Input,
  const Otherwise extends string = never,
  Context = unknown,
>(
  target: Target,
  select: (state: State, context: Context) => readonly Input[],
  options: { readonly otherwise?: Otherwise } = {},
): FanOut<State, Target, Input, Otherwise, Context> {
  checkOptions("fanOut", options, ["otherwise"]);
  return { kind: "fanOut", target, select, otherwise: options.otherwise };
}

/** Declares the targets of a node's `goto` and `send` commands. A node that returns no command ends its branch. */
export function commandTargets<const Target extends string>(...targets: readonly Target[]): CommandTargets<Target> {
  return { kind: "commandTargets", targets };
}

/** Routes to `target` when every node with a join to the target has finished, once per round. */
export function join<const Target extends string>(target: Target): Join<Target> {
  return { kind: "join", target };
}
