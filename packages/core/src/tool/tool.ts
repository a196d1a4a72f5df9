/**
 * Tools: what a model may call. `defineTool` types arguments from the schema and hidden values from `inject`;
 * the graph that uses a tool must have the state and context that it injects.
 */
import type { EffectClass } from "../base/effect.ts";
import { describeThrown, isStatewrightError, located, StatewrightError } from "../base/errors.ts";
import {
  type Injection,
  type InjectionKind,
  type InjectionSource,
  noSecrets,
  type RunIdentity,
  type SecretSource,
} from "../base/injection.ts";
import { describeValue, isPlainObject, type Json } from "../base/json.ts";
import { checkEffect, checkOptions, optionNames } from "../base/options.ts";
import { checkRetry, type RetryPolicy } from "../base/retry.ts";
import { isSchema, type Schema, type SchemaOutput } from "../base/schema.ts";
import type { Clock } from "../base/time.ts";
import type { ModelTool } from "../model/model.ts";
import { checkToolName, type JsonSchemaInput, modelToolOf } from "./model-tool.ts";
import type { ToolOutput, ToolReturn } from "./result.ts";
import type { ToolErrorKind } from "./tool-error.ts";

/** Facts about what a tool touches, for policies. A tool without them is `unclassified`: it runs, and policies see the word. */
export interface ToolSafety {
  readonly access: "read" | "write" | "destructive" | "unclassified";
  /** Whether, and to which hosts, it uses the network. */
  readonly network?: boolean | readonly string[];
  readonly filesystem?: "none" | "read" | "write";
  readonly process?: boolean;
  readonly spend?: boolean | { readonly maxUsd: number };
  readonly confirm?: "never" | "always" | "policy";
  readonly roots?: readonly string[];
}

/** How a tool shares the floor with others in one set of calls. */
export interface ToolExecution<Args = never> {
  /** `sequential` runs alone among the calls of its set. */
  readonly mode?: "parallel" | "sequential";
  /** Names that no two running calls may hold at the same time, such as real paths. */
  readonly lock?: (args: Args) => readonly string[];
  /** What a steering message does to a call that has not started. */
  readonly onSteer?: "skip" | "run";
}

/** A call as it reaches a tool and its middleware: parsed arguments, canonical name. */
export interface ToolCall<Args = unknown> {
  readonly id: string;
  readonly name: string;
  readonly args: Args;
}

/** What a tool gets beside its arguments. One object, so that it can grow without breaking tools. */
export interface ToolRuntime<Context = unknown, Injected = unknown> {
  readonly callId: string;
  readonly toolName: string;
  readonly attempt: number;
  readonly run: RunIdentity;
  readonly context: Context;
  readonly injected: Injected;
  /** Fires on cancel, timeout and shutdown. */
  readonly signal: AbortSignal;
  /** Fires when a person has spoken: a long wait may return early. */
  readonly steered: AbortSignal;
  /** The same in every attempt and after every resume: give it to the other side. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  /** Say in one line what is being done. */
  readonly progress: (text: string) => void;
  /** Show a partial result; absent when nobody listens. */
  readonly update?: ((partial: ToolOutput) => void) | undefined;
  /** Send an event of your own on the run's stream. */
  readonly emit: (name: string, payload: Json) => void;
  /** Where `secret` injections are found; empty for the tool itself. */
  readonly secrets: SecretSource;
}

/** Which failures of a tool are tried again: kinds, or a function. */
export type ToolRetryOn = readonly ToolErrorKind[] | ((error: unknown, attempt: number) => boolean);

/** What is known of a tool without running it: plain metadata. */
export interface ToolSpec {
  readonly name: string;
  /** For people; the title-cased name when none was given. */
  readonly label: string;
  readonly description: string;
  readonly input: Schema | JsonSchemaInput;
  readonly output?: Schema | undefined;
  readonly inject: Readonly<Record<string, InjectionKind>>;
  readonly effect: EffectClass;
  readonly safety: ToolSafety;
  readonly retry?: RetryPolicy<ToolRetryOn> | undefined;
  /** Time limit of one attempt in milliseconds; none when absent. */
  readonly timeoutMs?: number | undefined;
  readonly execution: ToolExecution;
}

/** A tool: its metadata and its call. State is read-only; changes go through the result's `command`. */
export interface Tool<State = unknown, Context = unknown> {
  readonly spec: ToolSpec;
  readonly call: (state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown;
  /**
   * Find the hidden arguments: `injected` of the runtime. Called before the call starts, so that a secret that is missing
   * leaves nothing in doubt; what it throws fails the run, and the model does not read it.
   */
  readonly resolve?: ((source: InjectionSource) => Promise<unknown>) | undefined;
  /** Ask the other side whether a call with this key happened: its return value, or undefined when it did not. For `once` tools. */
  readonly reconcile?: ((state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown) | undefined;
}

/** Hidden arguments by name. */
export type InjectMap = { readonly [name: string]: Injection<unknown, never, never> };

/** The values that a map of hidden arguments gives. */
export type InjectedOf<Inject extends InjectMap> = {
  readonly [Name in keyof Inject]: Inject[Name] extends Injection<infer Value, never, never> ? Value : never;
};

type NeedsOf<Inject extends InjectMap> = NonNullable<Inject[keyof Inject]["needs"]>;

/** The context that a map of hidden arguments reads. */
export type ContextNeeds<Inject extends InjectMap> = [keyof Inject] extends [never]
  ? unknown
  : [NeedsOf<Inject>] extends [(context: infer Context, state: never) => void]
    ? Context
    : unknown;

/** The state that a map of hidden arguments reads. */
export type StateNeeds<Inject extends InjectMap> = [keyof Inject] extends [never]
  ? unknown
  : [NeedsOf<Inject>] extends [(context: never, state: infer State) => void]
    ? State
    : unknown;

/** What `defineTool` takes. */
export interface ToolDefinition<Name extends string, Input extends Schema, Inject extends InjectMap, Value> {
  readonly name: Name;
  readonly label?: string;
  readonly description: string;
  /** Schema of the arguments that the model chooses: a zod object. */
  readonly input: Input;
  /** Schema of the result's `value`. */
  readonly output?: Schema<unknown, Value>;
  /** Arguments that the model never sees, resolved when the call is made and again on resume, never saved. */
  readonly inject?: Inject;
  /** May it be repeated? Default `once`. */
  readonly effect?: EffectClass;
  readonly safety?: Omit<ToolSafety, "access"> & { readonly access?: ToolSafety["access"] };
  readonly retry?: RetryPolicy<ToolRetryOn>;
  readonly timeoutMs?: number;
  readonly execution?: ToolExecution<SchemaOutput<Input>>;
  readonly run: (
    args: SchemaOutput<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value> | Promise<ToolReturn<Value>>;
  readonly reconcile?: (
    args: SchemaOutput<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value> | Promise<ToolReturn<Value>>;
}

/** Refuses, where it is wrong, a name that is both an argument and an injection: the one comes from the model, the other never does. */
type Apart<Args, Inject> = string extends keyof Args
  ? unknown
  : keyof Args & keyof Inject extends never
    ? unknown
    : { readonly inject: { readonly [Name in keyof Args & keyof Inject]: never } };

/** A tool that `defineTool` made: `is` narrows a call to its arguments. */
export interface DefinedTool<Name extends string = string, Args = unknown, State = unknown, Context = unknown>
  extends Tool<State, Context> {
  readonly name: Name;
  readonly is: (call: ToolCall) => call is ToolCall<Args> & { readonly name: Name };
}

/**
 * Define a tool. Throws `invalid_tool` for a name that providers refuse, an input that is not an object schema, a name
 * that is both an argument and an injection, a retry that its effect forbids.
 */
export function defineTool<
  const Name extends string,
  Input extends Schema,
  const Inject extends InjectMap = Record<never, never>,
  Value = unknown,
>(
  definition: ToolDefinition<Name, Input, Inject, Value> & Apart<SchemaOutput<NoInfer<Input>>, NoInfer<Inject>>,
): DefinedTool<Name, SchemaOutput<Input>, StateNeeds<Inject>, ContextNeeds<Inject>> {
  checkOptions("defineTool", definition, toolOptions, "invalid_tool");
  const { name, description, input, effect = "once", retry, timeoutMs } = definition;
  checkToolName(name);
  checkKinds(name, definition);
  const inject: InjectMap = definition.inject ?? {};
  checkToolPolicy(name, effect, retry, timeoutMs);
  const spec: ToolSpec = Object.freeze({
    name,
    label: definition.label ?? titleOf(name),
    description,
    input,
    output: definition.output,
    inject: Object.freeze(Object.fromEntries(Object.entries(inject).map(([key, injection]) => [key, injection.kind]))),
    effect,
    safety: Object.freeze({ access: "unclassified" as const, ...definition.safety }),
    retry,
    timeoutMs,
    execution: (definition.execution ?? {}) as ToolExecution,
  });
  checkHiddenNames(spec, modelToolOf(spec));
  type State = StateNeeds<Inject>;
  type Context = ContextNeeds<Inject>;
  const callWith =
    (body: (args: SchemaOutput<Input>, runtime: ToolRuntime<unknown, InjectedOf<Inject>>) => unknown) =>
    async (state: State, runtime: ToolRuntime<Context>, call: ToolCall): Promise<unknown> => {
      const { context, run, secrets } = runtime;
      const injected = runtime.injected ?? (await resolveInjected(name, inject, { state, context, run, secrets }));
      return body(call.args as SchemaOutput<Input>, {
        ...runtime,
        injected: injected as InjectedOf<Inject>,
        secrets: noSecrets,
      });
    };
  const { run, reconcile } = definition;
  return Object.freeze({
    name,
    spec,
    call: callWith(run),
    resolve: (source: InjectionSource) => resolveInjected(name, inject, source),
    ...(reconcile === undefined ? {} : { reconcile: callWith(reconcile) }),
    is: (call: ToolCall): call is ToolCall<SchemaOutput<Input>> & { readonly name: Name } => call.name === name,
  });
}

const toolOptions = optionNames<ToolDefinition<string, Schema, InjectMap, unknown>>({
  name: true,
  label: true,
  description: true,
  input: true,
  output: true,
  inject: true,
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  execution: true,
  run: true,
  reconcile: true,
});
const safetyOptions = optionNames<ToolSafety>({
  access: true,
  network: true,
  filesystem: true,
  process: true,
  spend: true,
  confirm: true,
  roots: true,
});
const executionOptions = optionNames<ToolExecution>({ mode: true, lock: true, onSteer: true });

/** Refuse parts of a definition that are of another kind than they must be, as a program without types may give them. */
function checkKinds(
  tool: string,
  parts: { readonly [Part in keyof ToolDefinition<string, Schema, InjectMap, unknown>]?: unknown },
): void {
  const { label, description, input, output, inject, effect, safety, execution, run, reconcile } = parts;
  const owner = `the tool "${tool}"`;
  const must = (part: string, given: unknown, fits: boolean, wanted: string): void => {
    if (fits) return;
    throw new StatewrightError("invalid_tool", {
      what: `the ${part} of ${owner} is ${describeValue(given)}`,
      next: `Give ${wanted}`,
      place: { tool },
    });
  };
  must("description", description, typeof description === "string", "a text that tells the model what the tool does");
  must("label", label, label === undefined || typeof label === "string", "a text for people, or nothing");
  must("input", input, isSchema(input) || isPlainObject(input), "z.object({ … }) of its arguments");
  must("output", output, output === undefined || isSchema(output), "a schema of the result's value, or nothing");
  must("run", run, typeof run === "function", "a function that does it");
  must("reconcile", reconcile, reconcile === undefined || typeof reconcile === "function", "a function, or nothing");
  must("inject", inject, inject === undefined || isPlainObject(inject), "{ name: State.from(…) }, or nothing");
  for (const [name, injection] of Object.entries(isPlainObject(inject) ? inject : {})) {
    const made = isPlainObject(injection) && typeof injection["resolve"] === "function";
    must(`injection "${name}"`, injection, made, "what from(…) of a state or a context, or secret(…), makes");
  }
  checkEffect(owner, effect, "invalid_tool");
  if (safety !== undefined) checkOptions(`the safety of ${owner}`, safety, safetyOptions, "invalid_tool");
  if (execution !== undefined) checkOptions(`the execution of ${owner}`, execution, executionOptions, "invalid_tool");
}

/** Tell whether a value is a tool: what `defineTool` makes, or an object with a spec and a call. */
export function isTool(value: unknown): value is Tool<never, never> {
  if (typeof value !== "object" || value === null || !("spec" in value) || !("call" in value)) return false;
  return typeof value.spec === "object" && value.spec !== null && typeof value.call === "function";
}

async function resolveInjected(
  tool: string,
  inject: InjectMap,
  source: InjectionSource,
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const [key, injection] of Object.entries(inject)) {
    try {
      const value = injection.resolve(source);
      values[key] = value instanceof Promise ? await value : value;
    } catch (cause) {
      if (isStatewrightError(cause)) throw located(cause, { tool });
      throw new StatewrightError("node_failed", {
        what: `the injection "${key}" of the tool "${tool}" failed: ${describeThrown(cause)}`,
        next: "Mend the function that finds it, then resume the thread: the call was not made",
        place: { tool },
        cause,
      });
    }
  }
  return Object.freeze(values);
}

function checkToolPolicy(
  name: string,
  effect: EffectClass,
  retry: RetryPolicy<ToolRetryOn> | undefined,
  timeoutMs: number | undefined,
): void {
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0)) {
    throw new StatewrightError("invalid_tool", {
      what: `the time limit of the tool "${name}" is not a positive number`,
      next: "Give timeoutMs in milliseconds, or leave it out",
    });
  }
  if (retry === undefined) return;
  checkRetry(`the tool "${name}"`, retry);
  if (effect !== "once" || retry.attempts === 1) return;
  const onlyUnavailable = Array.isArray(retry.on) && retry.on.every((kind) => kind === "unavailable");
  if (onlyUnavailable) return;
  throw new StatewrightError("invalid_tool", {
    what: `the tool "${name}" has effect "once" and a retry for more than "unavailable"`,
    next: 'Declare effect "idempotent" or "pure", or retry on ["unavailable"] only, which says that nothing happened',
    place: { tool: name },
  });
}

function checkHiddenNames(spec: ToolSpec, visible: ModelTool): void {
  const properties = Object.keys((visible.inputSchema["properties"] ?? {}) as object);
  const both = Object.keys(spec.inject).filter((key) => properties.includes(key));
  if (both.length === 0) return;
  throw new StatewrightError("invalid_tool", {
    what: `the tool "${spec.name}" has ${both.map((key) => `"${key}"`).join(", ")} both as an argument and as an injection`,
    next: "Rename one of them: an argument comes from the model, an injection never does",
    place: { tool: spec.name },
  });
}

function titleOf(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
}
