/**
 * Hidden values: what a tool gets at run time and the model never sees.
 * What an injection needs is the type of a function `(context, state) => void`, so that plain variance decides
 * whether a graph can serve a tool.
 */

import type { Json } from "./json.ts";
import type { OpenLongTerm } from "./long-term.ts";

/** Who runs: ids that are safe to show. */
export interface RunIdentity {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly node: string;
  readonly task: string;
  readonly step: number;
}

/** What injections are resolved from, at call time and again on resume. */
export interface InjectionSource {
  readonly context: unknown;
  readonly state: unknown;
  readonly run: RunIdentity;
  readonly secrets: SecretSource;
  /** The long-term store; absent in a run without a store. */
  readonly longTerm?: OpenLongTerm | undefined;
  /** Fires when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Send an event of your own on the run's stream; heard while an attempt of the call is at work. */
  readonly emit: (name: string, payload: Json) => void;
  /** Say in one line what is being done; heard as long. */
  readonly progress: (text: string) => void;
}

/** Where secrets come from: `env([...])` or a function; `undefined` means that it is not there. */
export interface SecretSource {
  get(name: string): string | undefined | Promise<string | undefined>;
}

/** The kinds of hidden value, as `describe()` names them. */
export type InjectionKind = "context" | "state" | "run" | "store" | "secret" | "custom";

/** A hidden argument: its kind, and how its value is found. `needs` exists only in types. */
export interface Injection<Value, Context = unknown, State = unknown> {
  readonly kind: InjectionKind;
  readonly resolve: (source: InjectionSource) => Value | Promise<Value>;
  readonly needs?: (context: Context, state: State) => void;
}

/** A source without any secret: what a run has when none was given. */
export const noSecrets: SecretSource = { get: () => undefined };
