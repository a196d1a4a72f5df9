/** What a node may return besides a partial state: a recipe over a draft, the next node, tasks of their own. */
import type { Draft } from "immer";

const kind: unique symbol = Symbol.for("statewright.command") as never;

/** A recipe over a draft of the state; touches only channels that keep the last value. */
export interface Recipe<State> {
  readonly [kind]: "recipe";
  readonly recipe: (draft: Draft<State>) => void;
}

/** The next node, in place of the node's edges for this step, with an update. */
export interface Goto<Target extends string = string, Update = unknown> {
  readonly [kind]: "goto";
  readonly target: Target;
  readonly update?: Update;
}

/** One task of a node, with an input of its own, in place of the node's edges for this step. */
export interface Send<Target extends string = string, Input = unknown> {
  readonly [kind]: "send";
  readonly target: Target;
  readonly input: Input;
}

/** What is no command, no list and no promise. */
export interface PlainObject {
  readonly [kind]?: undefined;
  readonly [Symbol.iterator]?: undefined;
  readonly [Symbol.toStringTag]?: undefined;
  readonly [Symbol.hasInstance]?: undefined;
}

/** A recipe decides at once: one that gives a promise turns its type into this sentence. */
type AtOnce<Returned> = Returned extends PromiseLike<unknown> ? "a recipe cannot be asynchronous" : unknown;

/** Change the state by a recipe over a draft, with Immer. */
export function update<State, Returned = void>(
  recipe: ((draft: Draft<State>) => Returned) & ((draft: Draft<State>) => AtOnce<NoInfer<Returned>>),
): Recipe<State> {
  return { [kind]: "recipe", recipe };
}

/** Go to `target` next, whatever the node's edges say; the node lists its targets with `gotos`. */
export function goto<const Target extends string, Update = never>(
  target: Target,
  update?: Update,
): Goto<Target, Update> {
  return { [kind]: "goto", target, ...(update === undefined ? {} : { update }) };
}

/** Start a task of `target` with `input`; the node lists its targets with `gotos`. */
export function send<const Target extends string, Input>(target: Target, input: Input): Send<Target, Input> {
  return { [kind]: "send", target, input };
}

/** A command, or undefined for anything else. */
export function commandOf(value: unknown): Recipe<unknown> | Goto | Send | undefined {
  return typeof value === "object" && value !== null && kind in value
    ? (value as Recipe<unknown> | Goto | Send)
    : undefined;
}

/** Which command it is. */
export function commandKind(command: Recipe<unknown> | Goto | Send): "recipe" | "goto" | "send" {
  return command[kind];
}
