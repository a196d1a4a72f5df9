/** The tool node: answers every call of the last assistant message, in call order. */

import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Message } from "../model/message.ts";
import type { ArtifactStore } from "../tool/artifacts/artifact.ts";
import { checkLimits, type ResultLimits } from "../tool/artifacts/artifact-limits.ts";
import { checkFinalCall, type FinalCall, finalCallName } from "../tool/definition/final-call.ts";
import type { Tool } from "../tool/definition/tool.ts";
import { checkMiddleware, type Middleware } from "../tool/policy/middleware.ts";
import { isRegistry, keepFree, type ToolRegistry, toolRegistry } from "../tool/registry.ts";
import type { AgentEnds } from "./node.ts";

/** How the calls of one message share time: all at once, one by one, or in groups. */
export type ToolStrategy = "parallel" | "sequential" | { readonly batch: number };

/**
 * Why a call cannot be run: there is no such tool, the model was not shown it, its arguments do not fit, or its message was
 * cut off.
 */
export type InvalidCall = "unknown" | "not_advertised" | "invalid_args" | "cut_off" | "limit";

/** What becomes of calls that cannot be run: of all alike, or by reason. A reason that is not named is repaired. */
export type InvalidCallPolicy = "repair" | "fail" | { readonly [Reason in InvalidCall]?: "repair" | "fail" };

/** What `toolNode` takes. */
export interface ToolNodeOptions<State, Context> {
  /** Tools, or a registry of them: what is changed in it counts from the next request to a model on. */
  readonly tools: readonly Tool<State, Context>[] | ToolRegistry<State, Context>;
  readonly middleware?: readonly Middleware<Context, State>[];
  readonly strategy?: ToolStrategy;
  /** How many calls may run at the same time; no limit when absent. */
  readonly maxConcurrency?: number;
  /**
   * What a message that somebody sends to the run does to the calls that have not begun: they are skipped, each with an answer
   * that says so (default), or they all run. Tools may say otherwise (`execution.onSteer`).
   */
  readonly steering?: "skip-remaining" | "finish-batch";
  /** How many calls of one message may run; those after them are refused, each with an answer. No limit when absent. */
  readonly maxCalls?: number;
  /** Tells how an agent ends with these answers, so that `afterAgent` hooks are called. */
  readonly ends?: AgentEnds;
  /** What becomes of a call that cannot be run: answered so that the model mends it (default), or the run fails. */
  readonly onInvalidCall?: InvalidCallPolicy;
  /**
   * What becomes of a call of a tool that says `confirm: "always"`, where no middleware around it could ask a person: it runs
   * (default), since a graph of your own may ask in another way, or it is denied.
   */
  readonly unconfirmed?: "run" | "deny";
  /** How much of a result the model sees, of tools that do not say so themselves. */
  readonly limits?: ResultLimits;
  /** Where large results are kept, instead of in the store of the run: files, an object store. What it fails on is cut, and the call goes on. */
  readonly artifacts?: ArtifactStore;
  /** The call by which the model gives the output of its agent, and so ends it. */
  readonly final?: FinalCall;
}

/** The names in a list of tools; any name where the list does not say them, as of a registry. */
export type ToolNamesIn<Tools> = Tools extends readonly (infer Each)[]
  ? Each extends { readonly name: infer Name extends string }
    ? Name
    : string
  : string;

/** A node that answers tool calls; `State` must have the channel `messages`. */
export interface ToolNode<State = unknown, Context = unknown, Names extends string = string> {
  readonly kind: "tools";
  /** Exists only for the compiler: what its tools are called. */
  readonly names?: Names;
  readonly registry: ToolRegistry<State, Context>;
  /** Tools may come later: it was given a registry, not a list. */
  readonly grows: boolean;
  /** The tools of the registry when the node was made. */
  readonly defined: ReadonlyMap<string, Tool<State, Context>>;
  readonly middleware: readonly Middleware<Context, State>[];
  readonly strategy: ToolStrategy;
  readonly maxConcurrency: number;
  readonly steering: "skip-remaining" | "finish-batch";
  readonly maxCalls: number;
  readonly ends: AgentEnds | undefined;
  readonly onInvalidCall: InvalidCallPolicy;
  readonly unconfirmed: "run" | "deny";
  readonly limits: ResultLimits | undefined;
  readonly artifacts: ArtifactStore | undefined;
  readonly final: FinalCall | undefined;
  readonly needs?: (state: State, context: Context) => void;
}

const names = optionNames<ToolNodeOptions<unknown, unknown>>({
  tools: true,
  middleware: true,
  strategy: true,
  maxConcurrency: true,
  steering: true,
  maxCalls: true,
  ends: true,
  onInvalidCall: true,
  unconfirmed: true,
  limits: true,
  artifacts: true,
  final: true,
});

/** Make a tool node. Throws `invalid_option` for limits that are not whole numbers from 1, `invalid_tool` for tools that cannot be shown. */
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
      what: "the tools of toolNode are undefined",
      next: "Give toolNode({ tools: [tool, …] })",
    });
  }
  for (const [name, value] of Object.entries({ maxConcurrency, maxCalls }))
    if (value !== Number.POSITIVE_INFINITY) checkCount(name, value);
  if (steering !== "skip-remaining" && steering !== "finish-batch")
    throw unfit("steering", steering, '"skip-remaining" or "finish-batch"');
  if (typeof strategy === "object" && strategy !== null) checkCount("strategy.batch", strategy.batch);
  else if (strategy !== "parallel" && strategy !== "sequential")
    throw unfit("strategy", strategy, '"parallel", "sequential" or { batch: a whole number from 1 }');
  if (options.ends !== undefined && typeof options.ends !== "function")
    throw unfit("ends", options.ends, "a function of the state");
  checkInvalidCalls(onInvalidCall);
  if (unconfirmed !== "run" && unconfirmed !== "deny") throw unfit("unconfirmed", unconfirmed, '"run" or "deny"');
  checkLimits("toolNode", options.limits, "invalid_option");
  checkArtifacts(options.artifacts);
  checkMiddleware(middleware);
  const registry = isRegistry(tools) ? tools : toolRegistry(tools);
  checkFinalCall(options.final);
  if (options.final !== undefined) keepFree(registry, finalCallName);
  return Object.freeze({
    kind: "tools",
    registry,
    grows: registry === tools,
    defined: registry.tools(),
    middleware,
    strategy,
    maxConcurrency,
    steering,
    maxCalls,
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
  const fits = ["put", "list", "read", "delete"].every(
    (part) => typeof store === "object" && store !== null && typeof Reflect.get(store, part) === "function",
  );
  if (!fits) throw unfit("artifacts", store, "a store with put, list, read and delete, such as memoryArtifacts()");
}

const invalidCalls = optionNames<{ readonly [Reason in InvalidCall]: unknown }>({
  unknown: true,
  not_advertised: true,
  invalid_args: true,
  cut_off: true,
  limit: true,
});

function checkInvalidCalls(policy: unknown): void {
  const isObject = typeof policy === "object" && policy !== null;
  if (isObject) checkOptions("onInvalidCall", policy, invalidCalls);
  for (const each of isObject ? Object.values(policy) : [policy])
    if (each !== "repair" && each !== "fail" && !(isObject && each === undefined))
      throw unfit("onInvalidCall", each, '"repair" or "fail", or one of them for each reason');
}

function checkCount(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw unfit(name, value, "a whole number from 1");
}

function unfit(name: string, value: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `${name} is ${describeValue(value)}`, next: `Give ${wanted}` });
}
