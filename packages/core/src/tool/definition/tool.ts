/**
 * Tools: functions that a model may call. `defineTool` infers the argument types from the schema and the hidden
 * values from `inject`; a graph that uses a tool must have the state and context that the tool injects.
 */

import { checkSyncSchema } from "../../base/async-schema.ts";
import type { EffectClass } from "../../base/effect.ts";
import { addErrorPlace, describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import {
  type Injection,
  type InjectionKind,
  type InjectionSource,
  noSecrets,
  type RunIdentity,
  type SecretSource,
} from "../../base/injection.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { type DeepReadonly, isPlainObject, type Json } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkEffect, checkOptions, listOptionNames } from "../../base/options.ts";
import { checkRetry, type RetryPolicy } from "../../base/retry.ts";
import { isSchema, type Schema, type SchemaInput, type SchemaOutput } from "../../base/schema.ts";
import type { Clock } from "../../base/time.ts";
import { createAttemptInjector } from "../../long-term/inject-long-term.ts";
import type { ModelTool } from "../../model/model.ts";
import type { JsonSchemaInput } from "../arguments/json-schema.ts";
import type { ToolArtifacts } from "../artifacts/artifact-access.ts";
import { checkLimits, type ResultLimits } from "../artifacts/artifact-limits.ts";
import { checkRedaction, type RedactionPolicy } from "../artifacts/redaction-policy.ts";
import { approveKey, inDoubtKey } from "../policy/approval.ts";
import type { ToolOutput, ToolResult, ToolReturn } from "../result.ts";
import type { Generate } from "./generate.ts";
import { toModelTool } from "./model-tool.ts";
import { isToolErrorKind, type ToolErrorKind, type ToolErrorPolicy, toolErrorKinds } from "./tool-error.ts";
import { checkToolName } from "./tool-name.ts";

/**
 * Safety metadata of a tool, for policies. A tool without metadata is `unclassified`: it runs, and policies can match
 * `unclassified`.
 */
export interface ToolSafety {
  readonly access: "read" | "write" | "destructive" | "unclassified";
  /** Network access: true, false or a list of hosts. */
  readonly network?: boolean | readonly string[];
  readonly filesystem?: "none" | "read" | "write";
  readonly process?: boolean;
  readonly spend?: boolean;
  readonly confirm?: "never" | "always" | "policy";
  readonly roots?: readonly string[];
  /** Redaction of arguments and output. */
  readonly redact?: RedactionPolicy;
}

/** Concurrency of a tool within a batch of calls. */
export interface ToolExecution<Args = never> {
  /** `sequential` runs alone among the calls of its batch. */
  readonly mode?: "parallel" | "sequential";
  /**
   * Returns the names of the exclusive locks of a call, such as real paths of files. Locks are shared by all runs and
   * threads of this process, and held across the attempts of a call. Locks are acquired without deadlock; but a body
   * must not wait for another call that needs one of its locks.
   */
  readonly lock?: (args: Args) => readonly string[] | Promise<readonly string[]>;
  /**
   * Returns the reason for which a person must approve this call, shown with the interrupt `approve`; undefined for a
   * call that needs no approval. Called after the before hooks of middleware. In a graph that does not declare
   * `approve` such a call is denied.
   */
  readonly needsApproval?: (args: Args) => string | undefined | Promise<string | undefined>;
  /** Effect of a steering message on a call that has not started. Default `skip`. */
  readonly onSteer?: "skip" | "run";
}

/** A call as passed to a tool and its middleware: parsed arguments and canonical name. */
export interface ToolCall<Args = unknown> {
  readonly id: string;
  readonly name: string;
  readonly args: Args;
}

/** Runtime of a tool call. A single object, so that new properties do not break existing tools. */
export interface ToolRuntime<Context = unknown, Injected = unknown> {
  readonly callId: string;
  readonly toolName: string;
  readonly attempt: number;
  readonly run: RunIdentity;
  readonly context: Context;
  readonly injected: Injected;
  /** Aborted on cancel, timeout and shutdown. */
  readonly signal: AbortSignal;
  /** Aborted when a person sends a steering message, so that a long wait may return early. */
  readonly steered: AbortSignal;
  /** Equal in every attempt and after every resume: pass the key to the remote service. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  /** Waits by the clock of the run; rejects as soon as `signal` is aborted. */
  readonly wait: (ms: number) => Promise<void>;
  /** Emits a one-line progress text. */
  readonly progress: (text: string) => void;
  /** Emits a partial result; undefined without listeners. */
  readonly update?: ((partial: ToolOutput) => void) | undefined;
  /** Emits a custom event on the stream of the run. */
  readonly emit: (name: string, payload: Json) => void;
  /**
   * Opens a namespace of the long-term store: `longTerm("users", id)`. Writes of the call are committed with the
   * superstep that commits its result; a failed call writes nothing. Fails with `missing_store` without a store.
   */
  readonly longTerm: OpenLongTerm;
  /**
   * Asks a model inside the call, as a recorded effect: a finished answer is not requested again after a crash. The
   * answer does not stream and is no message of the conversation; its usage is part of the result.
   */
  readonly generate: Generate;
  /** Artifacts of this thread. */
  readonly artifacts: ToolArtifacts;
  /** Source of `secret` injections; empty for the tool itself. */
  readonly secrets: SecretSource;
  /** Serializes the ids only, so that printing the runtime or a copy shows no hidden values. */
  readonly toJSON?: () => Json;
}

/** Failures to retry: kinds, or a predicate. */
export type ToolRetryOn = readonly ToolErrorKind[] | ((error: unknown, attempt: number) => boolean);

/** Metadata of a tool, as plain data. */
export interface ToolSpec {
  readonly name: string;
  /** Name of the tool at its origin, if different. */
  readonly originalName?: string | undefined;
  /** Display name. Default: the name in title case. */
  readonly label: string;
  readonly description: string;
  readonly input: Schema | JsonSchemaInput;
  readonly output?: Schema | undefined;
  readonly inject: Readonly<Record<string, InjectionKind>>;
  readonly effect: EffectClass;
  readonly safety: ToolSafety;
  readonly retry?: RetryPolicy<ToolRetryOn> | undefined;
  /** Timeout of an attempt in milliseconds. Default: none. */
  readonly timeoutMs?: number | undefined;
  /** Time in milliseconds for an attempt to finish after its signal was aborted. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** Enforcement of the argument schema by the provider. Default: the provider's own. */
  readonly strict?: boolean | undefined;
  /** Policy of failures. Default `return`. */
  readonly onError?: ToolErrorPolicy | undefined;
  /** Size limits of a result for the model. Default: the limits of the tool node. */
  readonly limits?: ResultLimits | undefined;
  readonly execution: ToolExecution;
  /**
   * True for a client-side tool, without a body: a call interrupts the run under the tool's name, and the
   * application's answer is the result.
   */
  readonly client?: true | undefined;
}

/** Argument of `toolSpec`: name, description, arguments, and optional metadata. */
export type ToolSpecParts = {
  readonly [Part in Exclude<keyof ToolSpec, "name" | "description" | "input" | "safety">]?: ToolSpec[Part] | undefined;
} & Pick<ToolSpec, "name" | "description" | "input"> & {
    readonly safety?: (Omit<ToolSafety, "access"> & { readonly access?: ToolSafety["access"] }) | undefined;
  };

/** A tool: its metadata and its call. State is read-only; changes go through the result's `command`. */
export interface Tool<State = unknown, Context = unknown> {
  readonly spec: ToolSpec;
  /** Executes a call with parsed arguments; returns the result, or a promise of it. */
  readonly call: (state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown;
  /** Fixes known mistakes of models before validation. Receives a copy, which may be mutated. */
  readonly prepareArguments?: ((args: unknown) => unknown) | undefined;
  /**
   * Resolves the hidden arguments (`injected` of the runtime). Runs before the call starts, so that a missing secret
   * leaves no call in doubt. An error fails the run and is not shown to the model.
   */
  readonly resolve?: ((source: InjectionSource) => Promise<unknown>) | undefined;
  /**
   * Checks the outcome of an earlier call with this idempotency key, for `once` tools. Returns the result of that
   * call, or undefined when the call did not happen. Receives the arguments of the started call, including changes by
   * hooks and people; when these could not be saved, a person is asked instead. Throw a `ToolError` of kind
   * `unknown_outcome` for an unknown outcome: the error becomes the result of the call, without an interrupt.
   */
  readonly reconcile?: ((state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown) | undefined;
  /** Graph to run in place of `call`; set by `graphTool`. */
  readonly graph?: object | undefined;
}

/** Hidden arguments by name. */
export type InjectMap = { readonly [name: string]: Injection<unknown, never, never> };

/** Value types of a map of hidden arguments. */
export type InjectedOf<Inject extends InjectMap> = {
  readonly [Name in keyof Inject]: Inject[Name] extends Injection<infer Value, never, never> ? Value : never;
};

type InjectionNeeds<Inject extends InjectMap> = NonNullable<Inject[keyof Inject]["needs"]>;

/** Context type that a map of hidden arguments reads. */
export type ContextNeeds<Inject extends InjectMap> = [keyof Inject] extends [never]
  ? unknown
  : [InjectionNeeds<Inject>] extends [(context: infer Context, state: never) => void]
    ? Context
    : unknown;

/** State type that a map of hidden arguments reads. */
export type StateNeeds<Inject extends InjectMap> = [keyof Inject] extends [never]
  ? unknown
  : [InjectionNeeds<Inject>] extends [(context: never, state: infer State) => void]
    ? State
    : unknown;

/** Schema of arguments: a zod object, another Standard Schema, or a JSON Schema (`jsonSchemaInput`). */
export type ToolInput = Schema | JsonSchemaInput<unknown>;

/** Argument type of a tool with this input. */
export type ArgsOf<Input extends ToolInput> = Input extends Schema
  ? SchemaOutput<Input>
  : Input extends { readonly types?: { readonly args: infer Args } }
    ? Args
    : unknown;

/** Arguments of a tool with this input as a model gives them: arguments with a default are optional. */
export type GivenArgs<Input extends ToolInput> = Input extends Schema ? DeepReadonly<SchemaInput<Input>> : unknown;

/** Argument of `defineTool`. */
export interface ToolDefinition<
  Name extends string,
  Input extends ToolInput,
  Inject extends InjectMap,
  Value,
  Details = unknown,
> {
  /** Name by which the model calls the tool. */
  readonly name: Name;
  /** Display name. Default: the name in title case. */
  readonly label?: string;
  /** Description of the tool for the model. */
  readonly description: string;
  /** Schema of the arguments chosen by the model: a zod object. */
  readonly input: Input;
  /** Fixes known mistakes of models before validation. Receives a copy, which may be mutated. */
  readonly prepareArguments?: (args: unknown) => unknown;
  /** Schema of the result's `value`. */
  readonly output?: Schema<unknown, Value>;
  /** Hidden arguments: never shown to the model, resolved at the time of the call and again on resume, never saved. */
  readonly inject?: Inject;
  /** Effect class: decides about repetition after a crash. Default `once`. */
  readonly effect?: EffectClass;
  /** Safety metadata for policies. Default: `unclassified`. */
  readonly safety?: Omit<ToolSafety, "access"> & { readonly access?: ToolSafety["access"] };
  /** Retries of failed attempts. Default: none. */
  readonly retry?: RetryPolicy<ToolRetryOn>;
  /** Timeout of an attempt in milliseconds. Default: the limit of the tool node, else none. */
  readonly timeoutMs?: number;
  /**
   * Time in milliseconds for an attempt to finish after its signal was aborted. An answer in that time becomes the
   * result of the call, marked as timeout or cancelled; a later answer is dropped. Default 5,000.
   */
  readonly graceMs?: number;
  /**
   * True when the provider must enforce the schema of the arguments, where it can; false when it must not. A provider
   * may refuse a schema that it cannot enforce. Default: the provider's own.
   */
  readonly strict?: boolean;
  /**
   * Policy of failures: `return` the error to the model (default), `fail` the run after all calls have results, or
   * return `message` to the model.
   */
  readonly onError?: ToolErrorPolicy;
  /** Size limits of a result for the model. Default: the limits of the tool node. */
  readonly limits?: ResultLimits;
  /** Concurrency of the calls, and approval by arguments. Default: parallel, without locks and approval. */
  readonly execution?: ToolExecution<ArgsOf<Input>>;
  /**
   * Executes the tool. Without `run` the tool is client-side: the application, such as a browser, executes the call.
   * The call interrupts the run under the tool's name, the answer is the result, and `timeoutMs` is the time to
   * answer.
   */
  readonly run?: (
    args: ArgsOf<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value, Details> | Promise<ToolReturn<Value, Details>>;
  /**
   * Checks the outcome of an earlier call with this idempotency key, for `once` tools: its result, or undefined when
   * the call did not happen. Default: a person is asked.
   */
  readonly reconcile?: (
    args: ArgsOf<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value, NoInfer<Details>> | Promise<ToolReturn<Value, NoInfer<Details>>>;
}

/**
 * Turns the type of the definition into an error message: for an input that is no object, and for a name that is both an
 * argument and an injection. Arguments come from the model, injections never do.
 */
export type ValidInput<Input extends ToolInput, Inject> = [ArgsOf<Input>] extends [object]
  ? [keyof Inject] extends [never]
    ? unknown
    : string extends keyof ArgsOf<Input>
      ? unknown
      : DisjointNames<keyof ArgsOf<Input> & keyof Inject>
  : unknown extends ArgsOf<Input>
    ? unknown
    : { readonly input: "the input of a tool is an object: use z.object({ … })" };
type DisjointNames<Names extends PropertyKey> = [Names] extends [never]
  ? unknown
  : {
      readonly inject: {
        readonly [Name in Names]: `the input has an argument ${Name & string}: rename one of them`;
      };
    };

/** Result of `defineTool`. `is` narrows a call to its arguments. */
export interface DefinedTool<
  Name extends string = string,
  Args = unknown,
  State = unknown,
  Context = unknown,
  Value = unknown,
  Details = unknown,
  Given = unknown,
> extends Tool<State, Context> {
  readonly name: Name;
  /** Exists only in types: the arguments as a model gives them. */
  readonly given?: Given;
  /** Returns true for a call of this tool, and narrows its arguments. */
  readonly is: (call: ToolCall) => call is ToolCall<Args> & { readonly name: Name };
  /** Narrows a result to this tool's value and details. A failed call has neither, unless its error has details. */
  readonly isResult: (result: ToolResult) => result is ToolResult & ToolResultData<Name, Value, Details>;
}

/** Typed data of a tool's results. */
export interface ToolResultData<Name, Value, Details> {
  readonly name: Name;
  readonly value?: Value;
  readonly details?: Details;
}

/**
 * Validates and completes the metadata of a tool, for a class or object with `spec` and `call`. Throws `invalid_tool`
 * like `defineTool`.
 */
export function toolSpec(parts: ToolSpecParts): ToolSpec {
  checkOptions("the spec of a tool", parts, specOptions, { code: "invalid_tool" });
  const { name, originalName, description, input, output, inject = {}, effect = "once", retry, timeoutMs } = parts;
  checkToolName(name);
  checkTypes(name, parts);
  checkToolPolicy(name, effect, retry, timeoutMs);
  checkAttemptOptions(name, parts);
  checkLimits(`the tool "${name}"`, parts.limits, "invalid_tool");
  checkRedaction(`the tool "${name}"`, parts.safety?.redact);
  const spec: ToolSpec = Object.freeze({
    name,
    ...(originalName === undefined ? {} : { originalName }),
    label: parts.label ?? toTitle(name),
    description,
    input,
    output,
    inject: Object.freeze({ ...inject }),
    effect,
    safety: Object.freeze({ access: "unclassified" as const, ...parts.safety }),
    retry,
    timeoutMs,
    graceMs: parts.graceMs,
    ...(parts.strict === undefined ? {} : { strict: parts.strict }),
    onError: parts.onError,
    limits: parts.limits,
    execution: parts.execution ?? {},
    ...(parts.client === true ? { client: true as const } : {}),
  });
  checkHiddenNames(spec, toModelTool(spec));
  completeSpecs.add(spec);
  return spec;
}

/** Specs of `defineTool` without injections. */
const statelessSpecs: WeakSet<ToolSpec> = new WeakSet();

/**
 * True for a spec of `defineTool` without injections: the body receives no state. False for a hand-written tool, whose
 * `call` receives the state.
 */
export function isStatelessTool(spec: ToolSpec): boolean {
  return statelessSpecs.has(spec);
}

/** Results of `toolSpec`. */
const completeSpecs: WeakSet<ToolSpec> = new WeakSet();

/**
 * Returns a complete spec: the same spec if created by `toolSpec`; otherwise validates and completes the spec, such
 * as a modified copy.
 */
export function completeSpec(spec: ToolSpec): ToolSpec {
  return completeSpecs.has(spec) ? spec : toolSpec(spec);
}

/**
 * Defines a tool. Throws `invalid_tool` for a name that providers refuse, an input other than an object schema, a
 * name that is both an argument and an injection, or a retry policy that conflicts with the effect class.
 */
export function defineTool<
  const Name extends string,
  Input extends ToolInput,
  const Inject extends InjectMap = Record<never, never>,
  Value = unknown,
  Details = unknown,
>(
  definition: ToolDefinition<Name, Input, Inject, Value, Details> & ValidInput<Input, Inject>,
): DefinedTool<Name, ArgsOf<Input>, StateNeeds<Inject>, ContextNeeds<Inject>, Value, Details, GivenArgs<Input>> {
  checkOptions("defineTool", definition, toolOptions, { code: "invalid_tool", replacements: optionReplacements });
  const { run, reconcile, inject: injections = {}, execution, prepareArguments, ...parts } = definition;
  checkFunctions(definition);
  const inject: InjectMap = injections;
  const { kinds, resolve } = createInjections(parts.name, inject);
  const spec = toolSpec({
    ...parts,
    ...(execution === undefined ? {} : { execution: execution as ToolExecution }),
    inject: kinds,
    ...(run === undefined ? { client: true as const } : {}),
  });
  if (spec.client === true) checkClient(definition);
  if (resolve === undefined) statelessSpecs.add(spec);
  const { name } = definition;
  type State = StateNeeds<Inject>;
  type Context = ContextNeeds<Inject>;
  const injectAttempt = createAttemptInjector(inject);
  const createCall =
    (body: (args: ArgsOf<Input>, runtime: ToolRuntime<unknown, InjectedOf<Inject>>) => unknown) =>
    async (state: State, runtime: ToolRuntime<Context>, call: ToolCall): Promise<unknown> => {
      const injected =
        resolve === undefined ? noInjections : (runtime.injected ?? (await resolve({ ...runtime, state })));
      return body(call.args as ArgsOf<Input>, {
        ...runtime,
        injected: injectAttempt(injected, runtime.longTerm) as InjectedOf<Inject>,
        secrets: noSecrets,
      });
    };
  return Object.freeze({
    name,
    spec,
    call: run === undefined ? throwNoBody : createCall(run),
    ...(resolve === undefined ? {} : { resolve }),
    ...(prepareArguments === undefined ? {} : { prepareArguments }),
    ...(reconcile === undefined ? {} : { reconcile: createCall(reconcile) }),
    is: (call: ToolCall): call is ToolCall<ArgsOf<Input>> & { readonly name: Name } => call.name === name,
    isResult: (result: ToolResult): result is ToolResult & ToolResultData<Name, Value, Details> => result.name === name,
  });
}

/** Options common to specs and definitions. */
const commonOptions = {
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
  graceMs: true,
  strict: true,
  onError: true,
  limits: true,
  execution: true,
} as const;
const specOptions = listOptionNames<ToolSpec>({ ...commonOptions, originalName: true, client: true });
/** Option names of other frameworks, with their equivalents. */
const optionReplacements: Readonly<Record<string, string>> = {
  inputSchema: "input",
  parameters: "input",
  schema: "input",
  outputSchema: "output",
  execute: "run",
  func: "run",
  needsApproval: 'safety: { confirm: "always" } or execution: { needsApproval }',
};

const toolOptions = listOptionNames<ToolDefinition<string, ToolInput, InjectMap, unknown>>({
  ...commonOptions,
  prepareArguments: true,
  run: true,
  reconcile: true,
});
const safetyOptions = listOptionNames<ToolSafety>({
  access: true,
  network: true,
  filesystem: true,
  process: true,
  spend: true,
  confirm: true,
  roots: true,
  redact: true,
});
const executionOptions = listOptionNames<ToolExecution>({
  mode: true,
  lock: true,
  needsApproval: true,
  onSteer: true,
});

/** Throws `invalid_tool` for options of a wrong type (possible in untyped JavaScript). */
function checkTypes(tool: string, parts: { readonly [Part in keyof ToolSpec]?: unknown }): void {
  const { label, originalName, description, input, output, inject, effect, safety, execution } = parts;
  const expectPart = createPartCheck(tool);
  expectPart(
    "description",
    description,
    typeof description === "string",
    "a string that describes the tool to the model",
  );
  expectPart("label", label, label === undefined || typeof label === "string", "a display name, or undefined");
  const isNamed = originalName === undefined || typeof originalName === "string";
  expectPart("original name", originalName, isNamed, "the name of the tool at its origin, or undefined");
  expectPart("input", input, isSchema(input) || isJsonSchemaInput(input), "z.object({ … }) with its arguments");
  expectPart(
    "output",
    output,
    output === undefined || isSchema(output),
    "a schema of the result's value, or undefined",
  );
  checkSyncSchema(input, `the input of the tool "${tool}"`, { tool });
  checkSyncSchema(output, `the output of the tool "${tool}"`, { tool });
  expectPart(
    "inject",
    inject,
    inject === undefined || isPlainObject(inject),
    "the kinds of its injections by name, or undefined",
  );
  const owner = `the tool "${tool}"`;
  checkEffect(owner, effect, "invalid_tool");
  if (safety !== undefined) {
    checkOptions(`the safety of ${owner}`, safety, safetyOptions, { code: "invalid_tool" });
    checkSafety(tool, safety as { readonly [Part in keyof ToolSafety]?: unknown });
  }
  if (execution !== undefined) {
    checkOptions(`the execution of ${owner}`, execution, executionOptions, { code: "invalid_tool" });
    const { mode, lock, needsApproval, onSteer } = execution as { readonly [Part in keyof ToolExecution]?: unknown };
    expectPart("execution.mode", mode, isListed(mode, ["parallel", "sequential"]), '"parallel" or "sequential"');
    expectPart(
      "execution.lock",
      lock,
      lock === undefined || typeof lock === "function",
      "a function that returns a list of names",
    );
    expectPart(
      "execution.needsApproval",
      needsApproval,
      needsApproval === undefined || typeof needsApproval === "function",
      "a function that returns a reason, or undefined",
    );
    expectPart("execution.onSteer", onSteer, isListed(onSteer, ["skip", "run"]), '"skip" or "run"');
  }
}

/** Policies match these values: a misspelt value would look like a tool without metadata. */
function checkSafety(tool: string, safety: { readonly [Part in keyof ToolSafety]?: unknown }): void {
  const { access, network, filesystem, process, spend, confirm, roots } = safety;
  const expectPart = createPartCheck(tool);
  const isAccess = isListed(access, ["read", "write", "destructive", "unclassified"]);
  expectPart("safety.access", access, isAccess, '"read", "write", "destructive" or "unclassified"');
  expectPart(
    "safety.network",
    network,
    isOptionalBoolean(network) || isStringList(network),
    "true, false or a list of hosts",
  );
  expectPart(
    "safety.filesystem",
    filesystem,
    isListed(filesystem, ["none", "read", "write"]),
    '"none", "read" or "write"',
  );
  expectPart("safety.process", process, isOptionalBoolean(process), "true or false");
  expectPart("safety.spend", spend, isOptionalBoolean(spend), "true or false; limit money with budget");
  expectPart(
    "safety.confirm",
    confirm,
    isListed(confirm, ["never", "always", "policy"]),
    '"never", "always" or "policy"',
  );
  expectPart("safety.roots", roots, roots === undefined || isStringList(roots), "a list of folders");
}

function isListed(value: unknown, words: readonly string[]): boolean {
  return value === undefined || (typeof value === "string" && words.includes(value));
}

function isOptionalBoolean(value: unknown): boolean {
  return value === undefined || typeof value === "boolean";
}

function isStringList(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

/** Throws `invalid_tool` for options that must be functions. */
function checkFunctions(
  parts: {
    readonly [Part in keyof ToolDefinition<string, ToolInput, InjectMap, unknown>]?: unknown;
  },
): void {
  const { name, run, reconcile, prepareArguments } = parts;
  checkToolName(name);
  const expectPart = createPartCheck(String(name));
  const isFunction = (value: unknown): boolean => typeof value === "function";
  expectPart(
    "run",
    run,
    !("run" in parts) || isFunction(run),
    "a function that executes the tool, or omit it for a client-side tool",
  );
  expectPart("reconcile", reconcile, reconcile === undefined || isFunction(reconcile), "a function, or nothing");
  const isPrepareValid = prepareArguments === undefined || isFunction(prepareArguments);
  expectPart("prepareArguments", prepareArguments, isPrepareValid, "a function, or nothing");
}

/** Kinds of the injections of a tool, and the function that resolves them; undefined without injections. */
interface Injections {
  readonly kinds: Readonly<Record<string, InjectionKind>>;
  readonly resolve: ((source: InjectionSource) => Promise<unknown>) | undefined;
}

/** Checks the `inject` option of a tool. Throws `invalid_tool` for a value other than injections by name. */
export function createInjections(tool: unknown, inject: InjectMap | undefined): Injections {
  checkToolName(tool);
  const name = String(tool);
  const expectPart = createPartCheck(name);
  expectPart("inject", inject, inject === undefined || isPlainObject(inject), "{ name: State.from(…) }, or nothing");
  const injections = inject ?? {};
  for (const [key, injection] of Object.entries<unknown>(injections)) {
    const isInjection = isPlainObject(injection) && typeof injection["resolve"] === "function";
    expectPart(
      `injection "${key}"`,
      injection,
      isInjection,
      "the result of from(…) of a state or a context, or of inject.secret(…)",
    );
  }
  const entries = Object.entries(injections);
  return {
    kinds: Object.fromEntries(entries.map(([key, { kind }]) => [key, kind])),
    resolve: entries.length === 0 ? undefined : (source) => resolveInjected(name, injections, source),
  };
}

/**
 * Throws `invalid_tool` for options that a client-side tool cannot have: its call is an interrupt, without retry or
 * reconcile.
 */
function checkClient(parts: { readonly name: string; readonly retry?: unknown; readonly reconcile?: unknown }): void {
  const { name: tool, retry, reconcile } = parts;
  const isReservedKey = tool === approveKey || tool === inDoubtKey;
  const what = isReservedKey
    ? `the tool "${tool}" has no run, and its name is a reserved interrupt key`
    : `the tool "${tool}" has no run, but a ${retry !== undefined ? "retry" : "reconcile"}`;
  if (!isReservedKey && retry === undefined && reconcile === undefined) return;
  throw new StatewrightError("invalid_tool", {
    what,
    next: isReservedKey
      ? "Rename it"
      : "Remove it, or add a run: the application that answers the call is responsible for both",
    place: { tool },
  });
}

const noInjections: Readonly<Record<string, never>> = Object.freeze({});

function throwNoBody(): never {
  throw new TypeError("the tool has no body: the application answers its calls");
}

function createPartCheck(tool: string): (part: string, value: unknown, isValid: boolean, expected: string) => void {
  return (part, value, isValid, expected) => {
    if (isValid) return;
    const where = `tool "${tool}"`;
    throw invalidOption({ where, option: part, expected: expected, got: value, code: "invalid_tool", place: { tool } });
  };
}

/** Returns true for a JSON Schema with its validator; without a validator any arguments would pass. */
function isJsonSchemaInput(input: unknown): boolean {
  return isPlainObject(input) && isPlainObject(input["jsonSchema"]) && typeof input["validate"] === "function";
}

/** Returns true if a value is a tool: a result of `defineTool`, or an object with `spec` and `call`. */
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
      if (isStatewrightError(cause)) throw addErrorPlace(cause, { tool });
      throw new StatewrightError("node_failed", {
        what: `the injection "${key}" of the tool "${tool}" failed: ${describeThrown(cause)}`,
        next: "Fix the function that resolves it, then resume the thread: the call did not start",
        place: { tool },
        cause,
      });
    }
  }
  return Object.freeze(values);
}

/** Throws `invalid_tool` for invalid `graceMs`, `strict` or `onError` (possible in untyped JavaScript). */
function checkAttemptOptions(
  tool: string,
  { graceMs, strict, onError }: Pick<ToolSpecParts, "graceMs" | "strict" | "onError">,
): void {
  const expectPart = createPartCheck(tool);
  expectPart("strict", strict, strict === undefined || typeof strict === "boolean", "true or false, or omit it");
  const isGrace = graceMs === undefined || (typeof graceMs === "number" && graceMs >= 0 && graceMs < Infinity);
  expectPart("graceMs", graceMs, isGrace, "a number of milliseconds from 0, or omit it");
  const isPolicy =
    onError === undefined ||
    onError === "return" ||
    onError === "fail" ||
    (isPlainObject(onError) && typeof onError["message"] === "string");
  expectPart("onError", onError, isPolicy, '"return", "fail" or { message: "text for the model" }');
}

function checkToolPolicy(
  name: string,
  effect: EffectClass,
  retry: RetryPolicy<ToolRetryOn> | undefined,
  timeoutMs: number | undefined,
): void {
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0)) {
    throw new StatewrightError("invalid_tool", {
      what: `the timeoutMs of the tool "${name}" is not a positive number`,
      next: "Use a number of milliseconds above 0, or remove timeoutMs",
    });
  }
  if (retry === undefined) return;
  checkRetry(`the tool "${name}"`, retry);
  const { on } = retry;
  const isOn = on === undefined || typeof on === "function" || (Array.isArray(on) && on.every(isToolErrorKind));
  createPartCheck(name)("retry.on", on, isOn, `a function, or a list of ${toolErrorKinds.join(", ")}`);
  if (effect !== "once" || retry.attempts === 1) return;
  const onlyUnavailable = Array.isArray(retry.on) && retry.on.every((kind) => kind === "unavailable");
  if (onlyUnavailable) return;
  throw new StatewrightError("invalid_tool", {
    what: `the tool "${name}" has effect "once" and a retry of failures other than "unavailable"`,
    next: 'Use effect "idempotent" or "pure", or retry on ["unavailable"] only, where the call had no effect',
    place: { tool: name },
  });
}

function checkHiddenNames(spec: ToolSpec, visible: ModelTool): void {
  const properties = Object.keys((visible.inputSchema["properties"] ?? {}) as object);
  const duplicates = Object.keys(spec.inject).filter((key) => properties.includes(key));
  if (duplicates.length === 0) return;
  throw new StatewrightError("invalid_tool", {
    what: `the tool "${spec.name}" has ${duplicates.map((key) => `"${key}"`).join(", ")} both as an argument and as an injection`,
    next: "Rename one of them: an argument comes from the model, an injection never does",
    place: { tool: spec.name },
  });
}

function toTitle(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
}
