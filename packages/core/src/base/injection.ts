/**
 * Hidden tool arguments: values injected at run time and never shown to the model.
 *
 * An injection declares its needs as a function type `(context, state) => void`, so that plain variance decides if a
 * graph can serve a tool.
 */

import type { Json } from "./json.ts";
import type { OpenLongTerm } from "./long-term.ts";

/** Ids of the current run, node and task; safe to show. */
export interface RunIdentity {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly node: string;
  readonly task: string;
  readonly step: number;
}

/** Inputs of an injection, at call time and again on resume. */
export interface InjectionSource {
  readonly context: unknown;
  readonly state: unknown;
  readonly run: RunIdentity;
  readonly secrets: SecretSource;
  /** Long-term store; undefined in a run without a store. */
  readonly longTerm?: OpenLongTerm | undefined;
  /** Aborted when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Emits a custom event on the stream of the run; ignored after the current attempt of the call. */
  readonly emit: (name: string, payload: Json) => void;
  /** Emits a one-line progress text; ignored after the current attempt of the call. */
  readonly progress: (text: string) => void;
}

/** Source of secrets: `env([...])` or a function. `undefined` means that the secret does not exist. */
export interface SecretSource {
  /** Returns the secret of this name; undefined when it does not exist. */
  get(name: string): string | undefined | Promise<string | undefined>;
}

/** Kinds of hidden arguments, as in the output of `describe()`. */
export type InjectionKind = "context" | "state" | "run" | "store" | "secret" | "custom";

/** A hidden argument: its kind and the function that resolves its value. `needs` exists only in types. */
export interface Injection<Value, Context = unknown, State = unknown> {
  readonly kind: InjectionKind;
  /** Returns the value for a single call. */
  readonly resolve: (source: InjectionSource) => Value | Promise<Value>;
  /** Exists only in types. */
  readonly needs?: (context: Context, state: State) => void;
}

/** Empty source: the default of a run without secrets. */
export const noSecrets: SecretSource = { get: () => undefined };
