/**
 * Tools: what a model may call. `defineTool` types arguments from the schema and hidden values from `inject`;
 * the graph that uses a tool must have the state and context that it injects.
 */

import { checkAnswersAtOnce } from "../../base/async-schema.ts";
import type { EffectClass } from "../../base/effect.ts";
import { describeThrown, isStatewrightError, located, StatewrightError } from "../../base/errors.ts";
import {
  type Injection,
  type InjectionKind,
  type InjectionSource,
  noSecrets,
  type RunIdentity,
  type SecretSource,
} from "../../base/injection.ts";
import { describeValue, isPlainObject, type Json } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkEffect, checkOptions, optionNames } from "../../base/options.ts";
import { checkRetry, type RetryPolicy } from "../../base/retry.ts";
import { isSchema, type Schema, type SchemaOutput } from "../../base/schema.ts";
import type { Clock } from "../../base/time.ts";
import { ofAttempt } from "../../long-term/inject-long-term.ts";
import type { ModelTool } from "../../model/model.ts";
import type { JsonSchemaInput } from "../arguments/json-schema.ts";
import type { ToolArtifacts } from "../artifacts/artifact-access.ts";
import { checkLimits, type ResultLimits } from "../artifacts/artifact-limits.ts";
import { checkRedaction, type RedactionPolicy } from "../artifacts/redaction-policy.ts";
import { approveKey, inDoubtKey } from "../policy/approval.ts";
import type { ToolOutput, ToolResult, ToolReturn } from "../result.ts";
import { modelToolOf } from "./model-tool.ts";
import { isToolErrorKind, type ToolErrorKind, type ToolErrorPolicy, toolErrorKinds } from "./tool-error.ts";
import { checkToolName } from "./tool-name.ts";

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
  /** What is masked in its arguments, and taken out of what it says. */
  readonly redact?: RedactionPolicy;
}

/** How a tool shares the floor with others in one set of calls. */
export interface ToolExecution<Args = never> {
  /** `sequential` runs alone among the calls of its set. */
  readonly mode?: "parallel" | "sequential";
  /**
   * Names of what the call has to itself while it runs, such as the real paths of files. They hold for all calls of this
   * process, whatever their runs and threads, and over the attempts of a call. No two calls wait for each other; a body must
   * not wait for another call that asks for a name that it holds.
   */
  readonly lock?: (args: Args) => readonly string[] | Promise<readonly string[]>;
  /** What a message that steers the run does to a call that has not begun: it is skipped (default), or it runs. */
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
  /** Let so many milliseconds go by on the clock of the run; rejects as soon as `signal` fires. */
  readonly wait: (ms: number) => Promise<void>;
  /** Say in one line what is being done. */
  readonly progress: (text: string) => void;
  /** Show a partial result; absent when nobody listens. */
  readonly update?: ((partial: ToolOutput) => void) | undefined;
  /** Send an event of your own on the run's stream. */
  readonly emit: (name: string, payload: Json) => void;
  /**
   * A namespace of the long-term store: `longTerm("users", id)`. What the call puts is saved with the superstep that takes its result in; a call
   * that ends in an error has put nothing. Fails with `missing_store` without a store.
   */
  readonly longTerm: OpenLongTerm;
  /** What calls of this thread gave to be kept whole. */
  readonly artifacts: ToolArtifacts;
  /** Where `secret` injections are found; empty for the tool itself. */
  readonly secrets: SecretSource;
  /** What printing it shows: ids, and nothing that is hidden. A copy shows the same. */
  readonly toJSON?: () => Json;
}

/** Which failures of a tool are tried again: kinds, or a function. */
export type ToolRetryOn = readonly ToolErrorKind[] | ((error: unknown, attempt: number) => boolean);

/** What is known of a tool without running it: plain metadata. */
export interface ToolSpec {
  readonly name: string;
  /** What the tool is called where it comes from, when that is another name. */
  readonly originalName?: string | undefined;
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
  /** How long an attempt may go on to its end after its signal has fired, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** What becomes of its failures. Default `return`. */
  readonly onError?: ToolErrorPolicy | undefined;
  /** How much of a result the model sees; what it does not say holds for the tool node. */
  readonly limits?: ResultLimits | undefined;
  readonly execution: ToolExecution;
  /** It has no body: a call is a question under the tool's name, and the application's answer is the result. */
  readonly client?: true | undefined;
}

/** What a tool says of itself: a name, a description, its arguments, and whatever else is not as usual. */
export type ToolSpecParts = {
  readonly [Part in Exclude<keyof ToolSpec, "name" | "description" | "input" | "safety">]?: ToolSpec[Part] | undefined;
} & Pick<ToolSpec, "name" | "description" | "input"> & {
    readonly safety?: (Omit<ToolSafety, "access"> & { readonly access?: ToolSafety["access"] }) | undefined;
  };

/** A tool: its metadata and its call. State is read-only; changes go through the result's `command`. */
export interface Tool<State = unknown, Context = unknown> {
  readonly spec: ToolSpec;
  readonly call: (state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown;
  /** Mend what a model is known to get wrong, before the arguments are validated. Given a copy; may change it. */
  readonly prepareArguments?: ((args: unknown) => unknown) | undefined;
  /**
   * Find the hidden arguments: `injected` of the runtime. Called before the call starts, so that a secret that is missing
   * leaves nothing in doubt; what it throws fails the run, and the model does not read it.
   */
  readonly resolve?: ((source: InjectionSource) => Promise<unknown>) | undefined;
  /**
   * Ask the other side whether a call with this key happened: its return value, or undefined when it did not. For `once` tools.
   * Given the arguments that the call began with, hooks and people included. Where those could not be saved, a person is asked.
   * What cannot be known is a `ToolError` of the kind `unknown_outcome`, which becomes the call's answer: nobody is asked.
   */
  readonly reconcile?: ((state: State, runtime: ToolRuntime<Context>, call: ToolCall) => unknown) | undefined;
  /** The graph that its calls run in place of `call`, where `graphTool` made it. */
  readonly graph?: object | undefined;
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

/** What describes arguments: a zod object or another Standard Schema, or a JSON Schema (`jsonSchemaInput`). */
export type ToolInput = Schema | JsonSchemaInput<unknown>;

/** The arguments that a tool with this input is given. */
export type ArgsOf<Input extends ToolInput> = Input extends Schema
  ? SchemaOutput<Input>
  : Input extends { readonly types?: { readonly args: infer Args } }
    ? Args
    : unknown;

/** What `defineTool` takes. */
export interface ToolDefinition<Name extends string, Input extends ToolInput, Inject extends InjectMap, Value> {
  readonly name: Name;
  readonly label?: string;
  readonly description: string;
  /** Schema of the arguments that the model chooses: a zod object. */
  readonly input: Input;
  /** Mend what a model is known to get wrong, before the arguments are validated. Given a copy; may change it. */
  readonly prepareArguments?: (args: unknown) => unknown;
  /** Schema of the result's `value`. */
  readonly output?: Schema<unknown, Value>;
  /** Arguments that the model never sees, resolved when the call is made and again on resume, never saved. */
  readonly inject?: Inject;
  /** May it be repeated? Default `once`. */
  readonly effect?: EffectClass;
  readonly safety?: Omit<ToolSafety, "access"> & { readonly access?: ToolSafety["access"] };
  readonly retry?: RetryPolicy<ToolRetryOn>;
  readonly timeoutMs?: number;
  /**
   * How long an attempt may go on to its end after its signal has fired, in milliseconds. What it answers in that time is the
   * call's answer, as a timeout or a cancellation; what comes later is dropped. Default 5,000.
   */
  readonly graceMs?: number;
  /** What becomes of its failures: the model reads them (`return`, the default), the run fails once the call is answered (`fail`), or the model reads `message` in their place. */
  readonly onError?: ToolErrorPolicy;
  /** How much of a result the model sees; what it does not say holds for the tool node. */
  readonly limits?: ResultLimits;
  readonly execution?: ToolExecution<ArgsOf<Input>>;
  /**
   * Does it. Without it the tool is executed by whoever shows the run, a browser for example: its call is a question under
   * the tool's name, the answer is the result, and `timeoutMs` is how long the question waits.
   */
  readonly run?: (
    args: ArgsOf<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value> | Promise<ToolReturn<Value>>;
  readonly reconcile?: (
    args: ArgsOf<Input>,
    runtime: ToolRuntime<unknown, InjectedOf<NoInfer<Inject>>>,
  ) => ToolReturn<Value> | Promise<ToolReturn<Value>>;
}

/** Refuses, where it is wrong, a name that is both an argument and an injection: the one comes from the model, the other never does. */
type Apart<Args, Inject> = string extends keyof Args
  ? unknown
  : keyof Args & keyof Inject extends never
    ? unknown
    : { readonly inject: { readonly [Name in keyof Args & keyof Inject]: never } };

/** A tool that `defineTool` made: `is` narrows a call to its arguments, `gave` a result to its value and details. */
export interface DefinedTool<
  Name extends string = string,
  Args = unknown,
  State = unknown,
  Context = unknown,
  Value = unknown,
  Details = unknown,
> extends Tool<State, Context> {
  readonly name: Name;
  readonly is: (call: ToolCall) => call is ToolCall<Args> & { readonly name: Name };
  /** Tell whether a result is of this tool. A failed call has neither value nor details, unless its error gave some. */
  readonly gave: (result: ToolResult) => result is ToolResult & GivenBy<Name, Value, Details>;
}

/** What a tool's own results hold. */
export interface GivenBy<Name, Value, Details> {
  readonly name: Name;
  readonly value?: Value;
  readonly details?: Details;
}

/**
 * The metadata of a tool, whole and checked: for a class or an object with `spec` and `call`. Throws `invalid_tool` like
 * `defineTool`.
 */
export function toolSpec(parts: ToolSpecParts): ToolSpec {
  checkOptions("the spec of a tool", parts, specOptions, "invalid_tool");
  const { name, originalName, description, input, output, inject = {}, effect = "once", retry, timeoutMs } = parts;
  checkToolName(name);
  checkKinds(name, parts);
  checkToolPolicy(name, effect, retry, timeoutMs);
  checkEnding(name, parts);
  checkLimits(`the tool "${name}"`, parts.limits, "invalid_tool");
  checkRedaction(`the tool "${name}"`, parts.safety?.redact);
  const spec: ToolSpec = Object.freeze({
    name,
    ...(originalName === undefined ? {} : { originalName }),
    label: parts.label ?? titleOf(name),
    description,
    input,
    output,
    inject: Object.freeze({ ...inject }),
    effect,
    safety: Object.freeze({ access: "unclassified" as const, ...parts.safety }),
    retry,
    timeoutMs,
    graceMs: parts.graceMs,
    onError: parts.onError,
    limits: parts.limits,
    execution: parts.execution ?? {},
    ...(parts.client === true ? { client: true as const } : {}),
  });
  checkHiddenNames(spec, modelToolOf(spec));
  whole.add(spec);
  return spec;
}

/** Specs that `toolSpec` made. */
const whole: WeakSet<ToolSpec> = new WeakSet();

/** A spec as it is when it is whole; one that a program without types made, or that was changed in a copy, made whole. */
export function wholeSpec(spec: ToolSpec): ToolSpec {
  return whole.has(spec) ? spec : toolSpec(spec);
}

/**
 * Define a tool. Throws `invalid_tool` for a name that providers refuse, an input that is not an object schema, a name
 * that is both an argument and an injection, a retry that its effect forbids.
 */
export function defineTool<
  const Name extends string,
  Input extends ToolInput,
  const Inject extends InjectMap = Record<never, never>,
  Value = unknown,
>(
  definition: ToolDefinition<Name, Input, Inject, Value> & Apart<ArgsOf<NoInfer<Input>>, NoInfer<Inject>>,
): DefinedTool<Name, ArgsOf<Input>, StateNeeds<Inject>, ContextNeeds<Inject>, Value> {
  checkOptions("defineTool", definition, toolOptions, "invalid_tool", meantForTools);
  const { run, reconcile, inject: given, execution, prepareArguments, ...parts } = definition;
  checkBodies(definition);
  const inject: InjectMap = given ?? {};
  const spec = toolSpec({
    ...parts,
    ...(execution === undefined ? {} : { execution: execution as ToolExecution }),
    inject: Object.fromEntries(Object.entries(inject).map(([key, injection]) => [key, injection.kind])),
    ...(run === undefined ? { client: true as const } : {}),
  });
  if (spec.client === true) checkClient(definition);
  const { name } = definition;
  type State = StateNeeds<Inject>;
  type Context = ContextNeeds<Inject>;
  const bound = ofAttempt(inject);
  const hides = Object.keys(inject).length > 0;
  const callWith =
    (body: (args: ArgsOf<Input>, runtime: ToolRuntime<unknown, InjectedOf<Inject>>) => unknown) =>
    async (state: State, runtime: ToolRuntime<Context>, call: ToolCall): Promise<unknown> => {
      const injected = hides
        ? (runtime.injected ?? (await resolveInjected(name, inject, { ...runtime, state })))
        : nothingHidden;
      return body(call.args as ArgsOf<Input>, {
        ...runtime,
        injected: bound(injected, runtime.longTerm) as InjectedOf<Inject>,
        secrets: noSecrets,
      });
    };
  return Object.freeze({
    name,
    spec,
    call: run === undefined ? noBody : callWith(run),
    ...(hides ? { resolve: (source: InjectionSource) => resolveInjected(name, inject, source) } : {}),
    ...(prepareArguments === undefined ? {} : { prepareArguments }),
    ...(reconcile === undefined ? {} : { reconcile: callWith(reconcile) }),
    is: (call: ToolCall): call is ToolCall<ArgsOf<Input>> & { readonly name: Name } => call.name === name,
    gave: (result: ToolResult): result is ToolResult & GivenBy<Name, Value, unknown> => result.name === name,
  });
}

/** What a spec and a definition both say. */
const said = {
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
  onError: true,
  limits: true,
  execution: true,
} as const;
const specOptions = optionNames<ToolSpec>({ ...said, originalName: true, client: true });
/** What the options of tools are called elsewhere. */
const meantForTools: Readonly<Record<string, string>> = {
  inputSchema: "input",
  parameters: "input",
  schema: "input",
  outputSchema: "output",
  execute: "run",
  func: "run",
  needsApproval: 'safety: { confirm: "always" }',
};

const toolOptions = optionNames<ToolDefinition<string, ToolInput, InjectMap, unknown>>({
  ...said,
  prepareArguments: true,
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
  redact: true,
});
const executionOptions = optionNames<ToolExecution>({ mode: true, lock: true, onSteer: true });

/** Refuse parts of a definition that are of another kind than they must be, as a program without types may give them. */
function checkKinds(tool: string, parts: { readonly [Part in keyof ToolSpec]?: unknown }): void {
  const { label, originalName, description, input, output, inject, effect, safety, execution } = parts;
  const must = mustBe(tool);
  must("description", description, typeof description === "string", "a text that tells the model what the tool does");
  must("label", label, label === undefined || typeof label === "string", "a text for people, or nothing");
  const isNamed = originalName === undefined || typeof originalName === "string";
  must("original name", originalName, isNamed, "what the tool is called where it comes from, or nothing");
  must("input", input, isSchema(input) || isJsonSchemaInput(input), "z.object({ … }) of its arguments");
  must("output", output, output === undefined || isSchema(output), "a schema of the result's value, or nothing");
  checkAnswersAtOnce(input, `the input of the tool "${tool}"`, { tool });
  checkAnswersAtOnce(output, `the output of the tool "${tool}"`, { tool });
  must(
    "inject",
    inject,
    inject === undefined || isPlainObject(inject),
    "the kinds of its injections by name, or nothing",
  );
  const owner = `the tool "${tool}"`;
  checkEffect(owner, effect, "invalid_tool");
  if (safety !== undefined) {
    checkOptions(`the safety of ${owner}`, safety, safetyOptions, "invalid_tool");
    checkSafety(tool, safety as { readonly [Part in keyof ToolSafety]?: unknown });
  }
  if (execution !== undefined) {
    checkOptions(`the execution of ${owner}`, execution, executionOptions, "invalid_tool");
    const { mode, lock, onSteer } = execution as { readonly [Part in keyof ToolExecution]?: unknown };
    must("execution.mode", mode, isOneOf(mode, ["parallel", "sequential"]), '"parallel" or "sequential"');
    must(
      "execution.lock",
      lock,
      lock === undefined || typeof lock === "function",
      "a function that gives a list of names",
    );
    must("execution.onSteer", onSteer, isOneOf(onSteer, ["skip", "run"]), '"skip" or "run"');
  }
}

/** Policies go by these words: one that is misspelt would pass for a tool that says nothing. */
function checkSafety(tool: string, safety: { readonly [Part in keyof ToolSafety]?: unknown }): void {
  const { access, network, filesystem, process, spend, confirm, roots } = safety;
  const must = mustBe(tool);
  const isAccess = isOneOf(access, ["read", "write", "destructive", "unclassified"]);
  must("safety.access", access, isAccess, '"read", "write", "destructive" or "unclassified"');
  must("safety.network", network, isFlag(network) || areTexts(network), "true, false or a list of hosts");
  must("safety.filesystem", filesystem, isOneOf(filesystem, ["none", "read", "write"]), '"none", "read" or "write"');
  must("safety.process", process, isFlag(process), "true or false");
  const isSpend = isFlag(spend) || (isPlainObject(spend) && typeof spend["maxUsd"] === "number");
  must("safety.spend", spend, isSpend, "true, false or { maxUsd }");
  must("safety.confirm", confirm, isOneOf(confirm, ["never", "always", "policy"]), '"never", "always" or "policy"');
  must("safety.roots", roots, roots === undefined || areTexts(roots), "a list of folders");
}

function isOneOf(given: unknown, words: readonly string[]): boolean {
  return given === undefined || (typeof given === "string" && words.includes(given));
}

function isFlag(given: unknown): boolean {
  return given === undefined || typeof given === "boolean";
}

function areTexts(given: unknown): boolean {
  return Array.isArray(given) && given.every((each) => typeof each === "string");
}

/** Refuse functions that are none, and injections that nothing of ours made. */
function checkBodies(
  parts: {
    readonly [Part in keyof ToolDefinition<string, ToolInput, InjectMap, unknown>]?: unknown;
  },
): void {
  const { name, run, reconcile, prepareArguments, inject } = parts;
  checkToolName(name);
  const must = mustBe(String(name));
  const isFunction = (given: unknown): boolean => typeof given === "function";
  must("run", run, !("run" in parts) || isFunction(run), "a function that does it, or leave it out");
  must("reconcile", reconcile, reconcile === undefined || isFunction(reconcile), "a function, or nothing");
  const mends = prepareArguments === undefined || isFunction(prepareArguments);
  must("prepareArguments", prepareArguments, mends, "a function, or nothing");
  must("inject", inject, inject === undefined || isPlainObject(inject), "{ name: State.from(…) }, or nothing");
  for (const [name, injection] of Object.entries(isPlainObject(inject) ? inject : {})) {
    const made = isPlainObject(injection) && typeof injection["resolve"] === "function";
    must(`injection "${name}"`, injection, made, "what from(…) of a state or a context, or secret(…), makes");
  }
}

/** What a tool without a body cannot have: its call is a question, which nobody tries again and nobody else answers. */
function checkClient(parts: { readonly name: string; readonly retry?: unknown; readonly reconcile?: unknown }): void {
  const { name: tool, retry, reconcile } = parts;
  const taken = tool === approveKey || tool === inDoubtKey;
  const what = taken
    ? `the tool "${tool}" has no run, and its name is the key of another question`
    : `the tool "${tool}" has no run, and a ${retry !== undefined ? "retry" : "reconcile"}`;
  if (!taken && retry === undefined && reconcile === undefined) return;
  throw new StatewrightError("invalid_tool", {
    what,
    next: taken
      ? "Rename it"
      : "Leave that out, or give it a run: the application that answers it does what has to be done",
    place: { tool },
  });
}

const nothingHidden: Readonly<Record<string, never>> = Object.freeze({});

function noBody(): never {
  throw new TypeError("it has no body: the application answers its calls");
}

function mustBe(tool: string): (part: string, given: unknown, fits: boolean, wanted: string) => void {
  return (part, given, fits, wanted) => {
    if (fits) return;
    throw new StatewrightError("invalid_tool", {
      what: `the ${part} of the tool "${tool}" is ${describeValue(given)}`,
      next: `Give ${wanted}`,
      place: { tool },
    });
  };
}

/** A JSON Schema without what checks it would let anything through. */
function isJsonSchemaInput(input: unknown): boolean {
  return isPlainObject(input) && isPlainObject(input["jsonSchema"]) && typeof input["validate"] === "function";
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

/** How an attempt may end: unfit values from a program without types are refused. */
function checkEnding(tool: string, { graceMs, onError }: Pick<ToolSpecParts, "graceMs" | "onError">): void {
  const must = mustBe(tool);
  const isGrace = graceMs === undefined || (typeof graceMs === "number" && graceMs >= 0 && graceMs < Infinity);
  must("graceMs", graceMs, isGrace, "milliseconds from 0, or leave it out");
  const isPolicy =
    onError === undefined ||
    onError === "return" ||
    onError === "fail" ||
    (isPlainObject(onError) && typeof onError["message"] === "string");
  must("onError", onError, isPolicy, '"return", "fail" or { message: "what the model reads" }');
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
  const { on } = retry;
  const isOn = on === undefined || typeof on === "function" || (Array.isArray(on) && on.every(isToolErrorKind));
  mustBe(name)("retry.on", on, isOn, `a function, or a list of ${toolErrorKinds.join(", ")}`);
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
