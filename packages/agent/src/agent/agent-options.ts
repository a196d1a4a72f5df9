/** Types of the options of `createAgent`. */
import type {
  ContextDefinition,
  ModelsOption,
  OutputInput,
  OutputOptions,
  StateDefinition,
  StateTypes,
  Store,
  ToolNodeOptions,
} from "@statewright/core";
import type { AgentState } from "./agent-state.ts";
import type { AnyModelNodeOptions, ModelNodeOptions } from "./model-node-options.ts";
import type { OnFinish } from "./on-finish.ts";
import type { StopWhen } from "./stop-when.ts";

/**
 * Options of `createAgent`. `Tools` is the union of the tool names; `Choices` the union of the names allowed in
 * `toolChoice`. With a statically known tool list, other names do not compile.
 */
export interface AgentOptions<
  Types extends StateTypes,
  Context,
  ContextInput,
  Output = never,
  Tools extends string = string,
  Choices extends string = Tools,
> extends Omit<ModelNodeOptions<AgentState<Types>["state"], NoInfer<Context>, Tools, Choices>, "output" | "maxTurns">,
    ModelsOption {
  /** Name of the agent: the name of its graph in runs, events and errors. */
  readonly name: string;
  /**
   * Version of the agent; increment the version when pending threads must not continue with the changed agent. Default
   * 1.
   */
  readonly version?: number;
  /** Channels of the agent in addition to `messages`. */
  readonly state?: StateDefinition<Types>;
  /** Definition of the context that tools, hooks and instructions read. Default: none. */
  readonly context?: ContextDefinition<Context, ContextInput>;
  /** Structured output of the agent (`output` of the result): a schema, or a schema with output options. */
  readonly output?: OutputInput<Output> | OutputOptions<Output>;
  /**
   * Maximum model calls per user input, before the agent ends `by` this limit; Infinity for no limit. Default: 50, or
   * no limit for agents with a `budget` or `turnCountIs`.
   */
  readonly maxTurns?: number;
  /** Condition, or a list of conditions, that ends the agent after tool results; the first match wins. */
  readonly stopWhen?: StopWhen<AgentState<Types>["state"]>;
  /**
   * Callback after the agent has ended; not called for cancelled or failed runs. See {@link OnFinish} for the
   * guarantee after a crash.
   */
  readonly onFinish?: OnFinish<
    AgentState<Types>["state"],
    NoInfer<Context>,
    [Output] extends [never] ? undefined : NoInfer<Output> | undefined
  >;
  /** Policy for invalid tool calls. Default: an error result, so that the model repairs the call. */
  readonly onInvalidCall?: ToolNodeOptions<unknown, unknown>["onInvalidCall"];
  /** Store of the agent's threads; the options of a run override this store. */
  readonly store?: Store;
  /** Scheduling of the tool calls of a message. Default `parallel`. */
  readonly strategy?: ToolNodeOptions<unknown, unknown>["strategy"];
  /** Maximum concurrent tool calls of a message. Default: no limit. */
  readonly maxToolConcurrency?: number;
  /**
   * Time limit of a tool attempt in milliseconds, for tools without a `timeoutMs` of their own; it fires the tool's
   * signal. Default: no limit.
   */
  readonly toolTimeoutMs?: number;
  /** Maximum size of a tool result in the conversation. Default: 8 KiB per block, 50 KiB in total. */
  readonly limits?: ToolNodeOptions<unknown, unknown>["limits"];
  /** Artifact store for large tool results. Default: the store of the run. */
  readonly artifacts?: ToolNodeOptions<unknown, unknown>["artifacts"];
  /** Maximum tool calls of a message; each further call gets an error result. Default: no limit. */
  readonly maxToolCalls?: number;
  /**
   * Effect of an inbox message that arrives during tool calls on the calls not yet started. Default `skip-remaining`.
   */
  readonly steering?: ToolNodeOptions<unknown, unknown>["steering"];
  /** Number of inbox messages delivered at a time. Default `all`. */
  readonly inbox?: "one" | "all";
}

/** Untyped options of an agent, for the builder of the graph. */
export type AnyAgentOptions = AnyModelNodeOptions &
  Pick<
    AgentOptions<StateTypes, unknown, unknown>,
    | "name"
    | "version"
    | "strategy"
    | "maxToolConcurrency"
    | "toolTimeoutMs"
    | "limits"
    | "artifacts"
    | "maxToolCalls"
    | "steering"
    | "inbox"
    | "onInvalidCall"
    | keyof ModelsOption
  > & {
    readonly state?: Pick<StateDefinition, "channels">;
    readonly context?: Pick<ContextDefinition, "schema">;
    readonly stopWhen?: StopWhen<never>;
    readonly onFinish?: OnFinish<never, never, never>;
  };
