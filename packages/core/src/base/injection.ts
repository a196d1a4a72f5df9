/**
 * Hidden values: what a tool gets at run time and the model never sees.
 * What an injection needs is the type of a function `(context, state) => void`, so that plain variance decides
 * whether a graph can serve a tool.
 */

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
}

/** Where secrets come from: `env([...])` or a function; `undefined` means that it is not there. */
export interface SecretSource {
  get(name: string): string | undefined | Promise<string | undefined>;
}

/** The kinds of hidden value, as `describe()` names them. */
export type InjectionKind = "context" | "state" | "run" | "secret" | "custom";

/** A hidden argument: its kind, and how its value is found. `needs` exists only in types. */
export interface Injection<Value, Context = unknown, State = unknown> {
  readonly kind: InjectionKind;
  readonly resolve: (source: InjectionSource) => Value | Promise<Value>;
  readonly needs?: (context: Context, state: State) => void;
}

/** A source without any secret: what a run has when none was given. */
export const noSecrets: SecretSource = { get: () => undefined };
