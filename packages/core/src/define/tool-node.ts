/** Tool node: answers every tool call of the last assistant message, in call order. */

import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkChoice, checkCount, checkNumber, checkOptions, listOptionNames } from "../base/options.ts";
import type { Message } from "../model/message.ts";
import type { ArtifactStore } from "../tool/artifacts/artifact.ts";
import { checkLimits, type ResultLimits } from "../tool/artifacts/artifact-limits.ts";
import { checkFinalCall, type FinalCall, finalCallName } from "../tool/definition/final-call.ts";
import type { Tool } from "../tool/definition/tool.ts";
import { checkMiddleware, type Middleware } from "../tool/policy/middleware.ts";
import { isRegistry, reserveName, type ToolRegistry, toolRegistry } from "../tool/registry.ts";
import type { AgentEndCheck } from "./agent-turn.ts";

/** Concurrency of the tool calls of a message: all at once, one by one, or in batches. */
export type ToolStrategy = "parallel" | "sequential" | { readonly batch: number };

/**
 * Reason why a tool call cannot run: unknown tool, tool not advertised to the model, invalid arguments, message
 * truncated at the length limit, message stopped by the provider, or call limit.
 */
export type InvalidCall = "unknown" | "not_advertised" | "invalid_args" | "cut_off" | "stopped" | "limit";

/** Policy for tool calls that cannot run, for all reasons or by reason. Default of each reason: `repair`. */
export type InvalidCallPolicy = "repair" | "fail" | { readonly [Reason in InvalidCall]?: "repair" | "fail" };

/** Options of `toolNode`. */
export interface ToolNodeOptions<State, Context> {
  /** Tools, or a registry of tools: changes of a registry apply from the next model request. */
  readonly tools: readonly Tool<State, Context>[] | ToolRegistry<State, Context>;
  /** Middleware, the first outermost. Default: none. */
  readonly middleware?: readonly Middleware<Context, State>[];
  /** Concurrency of the calls of a message. Default `parallel`. */
  readonly strategy?: ToolStrategy;
  /** Maximum number of concurrent calls; default: no limit. */
  readonly maxConcurrency?: number;
  /**
   * Effect of a steering message on tool calls not yet started: `skip-remaining` (default) answers each call as
   * skipped, `finish-batch` runs all calls. A tool may override this option (`execution.onSteer`).
   */
  readonly steering?: "skip-remaining" | "finish-batch";
  /**
   * Time limit of an attempt in milliseconds, for tools without a `timeoutMs` of their own; it fires the tool's signal.
   * Default: the limit of the graph's defaults, else none.
   */
  readonly timeoutMs?: number;
  /** Maximum number of calls per message; further calls are refused with an answer. Default: no limit. */
  readonly maxCalls?: number;
  /** Returns how an agent ends with these answers, so that `afterAgent` hooks run. */
  readonly ends?: AgentEndCheck;
  /**
   * Policy for a call that cannot run: an answer that lets the model fix the call (default), or failure of the run.
   */
  readonly onInvalidCall?: InvalidCallPolicy;
  /**
   * Policy for a call of a tool with `confirm: "always"` when no middleware can ask for confirmation: `run` (default,
   * for graphs with their own confirmation) or `deny`.
   */
  readonly unconfirmed?: "run" | "deny";
  /** Limits of results shown to the model, for tools without their own limits. */
  readonly limits?: ResultLimits;
  /**
   * Store for large results, instead of the store of the run: files, an object store. On an error the result is
   * truncated and the call continues.
   */
  readonly artifacts?: ArtifactStore;
  /** Tool call by which the model returns the output of its agent and ends the agent. */
  readonly final?: FinalCall;
}

/** Tool names of a list of tools; any string for a registry or an untyped list. */
export type ToolNamesIn<Tools> = Tools extends readonly []
  ? never
  : Tools extends readonly { readonly name: infer Name extends string }[]
    ? Name
    : string;

/** Node that answers tool calls; `State` must have the channel `messages`. */
export interface ToolNode<State = unknown, Context = unknown, Names extends string = string> {
  readonly kind: "tools";
  /** Exists only in types: the names of the tools. */
  readonly names?: Names;
  readonly registry: ToolRegistry<State, Context>;
  /** True for a registry: tools may be added later. */
  readonly isDynamic: boolean;
  /** Tools of the registry when the node was created. */
  readonly initialTools: ReadonlyMap<string, Tool<State, Context>>;
  readonly middleware: readonly Middleware<Context, State>[];
  readonly strategy: ToolStrategy;
  readonly maxConcurrency: number;
  readonly steering: "skip-remaining" | "finish-batch";
  readonly maxCalls: number;
  readonly timeoutMs: number | undefined;
  readonly ends: AgentEndCheck | undefined;
  readonly onInvalidCall: InvalidCallPolicy;
  readonly unconfirmed: "run" | "deny";
  readonly limits: ResultLimits | undefined;
  readonly artifacts: ArtifactStore | undefined;
  readonly final: FinalCall | undefined;
  /** Exists only in types: the state and the context that the tools inject. */
  readonly needs?: (state: State, context: Context) => void;
}

const names = listOptionNames<ToolNodeOptions<unknown, unknown>>({
  tools: true,
  middleware: true,
  strategy: true,
  maxConcurrency: true,
  steering: true,
  maxCalls: true,
  timeoutMs: true,
  ends: true,
  onInvalidCall: true,
  unconfirmed: true,
  limits: true,
  artifacts: true,
  final: true,
});

/**
 * Creates a tool node. Throws `invalid_option` for limits that are not integers ≥ 1 or times that are not above 0, and `invalid_tool` for tools
 * that cannot be advertised.
 */
export function toolNode<State extends { readonly messages: readonly Message[] }, Context = unknown, Tools = unknown>(
  options: ToolNodeOptions<State, Context> & { readonly tools: Tools },
): ToolNode<State, Context, ToolNamesIn<Tools>> {
  checkOptions("toolNode", options, names);
  const {
    tools,
    middleware = [],
    strategy = "parallel",
    maxConcurrency = Number.POSITIVE_INFINITY,
    steering = "skip-remaining",
    maxCalls = Number.POSITIVE_INFINITY,
    onInvalidCall = "repair",
    unconfirmed = "run",
  } = options;
  if (tools === undefined) {
    throw new StatewrightError("invalid_tool", {
      what: "toolNode: expected `tools`, got undefined",
      next: "Pass toolNode({ tools: [tool, …] })",
    });
  }
  for (const [option, value] of Object.entries({ maxConcurrency, maxCalls }))
    if (value !== Number.POSITIVE_INFINITY) checkCount("toolNode", { [option]: value });
  checkNumber("toolNode", { timeoutMs: options.timeoutMs }, 1);
  checkChoice("toolNode", { steering }, ["skip-remaining", "finish-batch"]);
  checkStrategy(strategy);
  if (options.ends !== undefined && typeof options.ends !== "function")
    throw invalidOption({ where: "toolNode", option: "ends", expected: "a function of the state", got: options.ends });
  checkInvalidCalls(onInvalidCall);
  checkChoice("toolNode", { unconfirmed }, ["run", "deny"]);
  checkLimits("toolNode", options.limits, "invalid_option");
  checkArtifacts(options.artifacts);
  checkMiddleware(middleware);
  const registry = isRegistry(tools) ? tools : toolRegistry(tools);
  checkFinalCall(options.final);
  if (options.final !== undefined) reserveName(registry, finalCallName);
  return Object.freeze({
    kind: "tools",
    registry,
    isDynamic: registry === tools,
    initialTools: registry.tools(),
    middleware,
    strategy,
    maxConcurrency,
    steering,
    maxCalls,
    timeoutMs: options.timeoutMs,
    ends: options.ends,
    onInvalidCall,
    unconfirmed,
    limits: options.limits,
    artifacts: options.artifacts,
    final: options.final,
  });
}

function checkArtifacts(store: unknown): void {
  if (store === undefined) return;
  const isValid = ["put", "list", "read", "delete"].every(
    (part) => typeof store === "object" && store !== null && typeof Reflect.get(store, part) === "function",
  );
  if (!isValid)
    throw invalidOption({
      where: "toolNode",
      option: "artifacts",
      expected: "a store with put, list, read and delete, such as memoryArtifacts()",
      got: store,
    });
}

const invalidCalls = listOptionNames<{ readonly [Reason in InvalidCall]: unknown }>({
  unknown: true,
  not_advertised: true,
  invalid_args: true,
  cut_off: true,
  stopped: true,
  limit: true,
});

function checkInvalidCalls(policy: unknown): void {
  const isObject = typeof policy === "object" && policy !== null;
  if (isObject) checkOptions("onInvalidCall", policy, invalidCalls);
  for (const each of isObject ? Object.values(policy) : [policy])
    if (each !== "repair" && each !== "fail" && !(isObject && each === undefined))
      throw invalidOption({
        where: "toolNode",
        option: "onInvalidCall",
        expected: '"repair" or "fail", or an object with one of them for each reason',
        got: each,
      });
}

function checkStrategy(strategy: ToolStrategy): void {
  if (typeof strategy === "object" && strategy?.batch !== undefined) {
    checkOptions("toolNode: strategy", strategy, ["batch"]);
    checkCount("toolNode", { "strategy.batch": strategy.batch });
  } else if (strategy !== "parallel" && strategy !== "sequential")
    throw invalidOption({
      where: "toolNode",
      option: "strategy",
      expected: '"parallel", "sequential" or { batch: an integer ≥ 1 }',
      got: strategy,
    });
}
