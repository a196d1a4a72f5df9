/**
 * Commands: return values of a node other than a partial state, such as a recipe over a draft, the next node, or sent
 * tasks.
 */
import type { Draft } from "immer";

const kind: unique symbol = Symbol.for("statewright.command") as never;

/** Recipe over a draft of any state. */
export interface AnyRecipe {
  readonly [kind]: "recipe";
}

/** Recipe over a draft of the state; may change only last-value channels. */
export interface Recipe<State, Drafted = Draft<State>> extends AnyRecipe {
  /** Changes the draft. */
  readonly recipe: (draft: Drafted) => void;
}

/** Draft of a state: only the editable channels can be changed. */
export type DraftOf<State, Editable extends string> = string extends Editable
  ? Draft<State>
  : { -readonly [Name in keyof State & Editable]: Draft<State[Name]> } & {
      readonly [Name in Exclude<keyof State, Editable>]: State[Name];
    };

/** Next node with an optional update; replaces the node's edges for this step. */
export interface Goto<Target extends string = string, Update = unknown> {
  readonly [kind]: "goto";
  readonly target: Target;
  readonly update?: Update;
}

/** Task of a node with its own input; replaces the node's edges for this step. */
export interface Send<Target extends string = string, Input = unknown> {
  readonly [kind]: "send";
  readonly target: Target;
  readonly input: Input;
}

/** Object that is not a command, a list or a promise. */
export interface PlainObject {
  readonly [kind]?: undefined;
  readonly [Symbol.iterator]?: undefined;
  readonly [Symbol.toStringTag]?: undefined;
  readonly [Symbol.hasInstance]?: undefined;
}

/** Recipes are synchronous: a recipe that returns a promise has this sentence as its type. */
type Synchronous<Returned> = Returned extends PromiseLike<unknown> ? "a recipe cannot be asynchronous" : unknown;

/** Changes the state with an Immer recipe over a draft. Only last-value channels may change. */
export function edit<State, Returned = void, Drafted = Draft<State>>(
  recipe: ((draft: Drafted) => Returned) & ((draft: Drafted) => Synchronous<NoInfer<Returned>>),
): Recipe<State, Drafted> {
  return { [kind]: "recipe", recipe };
}

/** Routes to `target` next, instead of the node's edges. Declare the targets of the node with `commandTargets`. */
export function goto<const Target extends string>(target: Target): Goto<Target, never>;
/** Routes to `target` next with an update of the state. */
export function goto<const Target extends string, Update>(
  target: Target,
  update: Update | undefined,
): Goto<Target, Update>;
export function goto(target: string, update?: unknown): Goto {
  return { [kind]: "goto", target, ...(update === undefined ? {} : { update }) };
}

/** Starts a task of `target` with `input`. Declare the targets of the node with `commandTargets`. */
export function send<const Target extends string, Input>(target: Target, input: Input): Send<Target, Input> {
  return { [kind]: "send", target, input };
}

/** Returns the value if it is a command, otherwise undefined. */
export function toCommand(value: unknown): Recipe<unknown> | Goto | Send | undefined {
  return typeof value === "object" && value !== null && kind in value
    ? (value as Recipe<unknown> | Goto | Send)
    : undefined;
}

/** Returns the kind of a command. */
export function getCommandKind(command: Recipe<unknown> | Goto | Send): "recipe" | "goto" | "send" {
  return command[kind];
}
