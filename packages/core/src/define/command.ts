/**
 * Commands: return values of a node other than a partial state, such as a recipe over a draft, the next node, or sent
 * tasks.
 */
import type { Draft } from "immer";

/**
 * The parts of a command have symbols as keys: editors offer the properties of each possible return value of a body, and
 * the parts of a command are no channels.
 */
const kind: unique symbol = Symbol.for("statewright.command") as never;
const recipeKey: unique symbol = Symbol.for("statewright.command.recipe") as never;
const targetKey: unique symbol = Symbol.for("statewright.command.target") as never;
const updateKey: unique symbol = Symbol.for("statewright.command.update") as never;
const inputKey: unique symbol = Symbol.for("statewright.command.input") as never;

/** Recipe over a draft of any state. */
export interface AnyRecipe {
  readonly [kind]: "recipe";
}

/** Recipe over a draft of the state; may change only last-value channels. */
export interface Recipe<State, Drafted = Draft<State>> extends AnyRecipe {
  /** Changes the draft. */
  readonly [recipeKey]: (draft: Drafted) => void;
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
  readonly [targetKey]: Target;
  readonly [updateKey]?: Update;
}

/** Task of a node with its own input; replaces the node's edges for this step. */
export interface Send<Target extends string = string, Input = unknown> {
  readonly [kind]: "send";
  readonly [targetKey]: Target;
  readonly [inputKey]: Input;
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
  return { [kind]: "recipe", [recipeKey]: recipe };
}

/** Routes to `target` next, instead of the node's edges. Declare the targets of the node with `commandTargets`. */
export function goto<const Target extends string>(target: Target): Goto<Target, never>;
/** Routes to `target` next with an update of the state. */
export function goto<const Target extends string, Update>(
  target: Target,
  update: Update | undefined,
): Goto<Target, Update>;
export function goto(target: string, update?: unknown): Goto {
  return { [kind]: "goto", [targetKey]: target, ...(update === undefined ? {} : { [updateKey]: update }) };
}

/** Starts a task of `target` with `input`. Declare the targets of the node with `commandTargets`. */
export function send<const Target extends string, Input>(target: Target, input: Input): Send<Target, Input> {
  return { [kind]: "send", [targetKey]: target, [inputKey]: input };
}

/** Parts of a command. */
export type Command =
  | { readonly kind: "recipe"; readonly recipe: (draft: unknown) => void }
  | { readonly kind: "goto"; readonly target: string; readonly update: unknown }
  | { readonly kind: "send"; readonly target: string; readonly input: unknown };

/** Returns the parts of a command; undefined for any other value. */
export function toCommand(value: unknown): Command | undefined {
  if (typeof value !== "object" || value === null || !(kind in value)) return undefined;
  const command = value as Recipe<unknown, unknown> | Goto | Send;
  switch (command[kind]) {
    case "recipe":
      return { kind: "recipe", recipe: command[recipeKey] };
    case "goto":
      return { kind: "goto", target: command[targetKey], update: command[updateKey] };
    case "send":
      return { kind: "send", target: command[targetKey], input: command[inputKey] };
  }
}
