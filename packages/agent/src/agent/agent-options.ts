/** What `createAgent` takes. */
import type {
  ContextDefinition,
  Model,
  OutputInput,
  StateDefinition,
  StateTypes,
  Store,
  ToolNodeOptions,
} from "@statewright/core";
import type { OutputOptions } from "../output/agent-output.ts";
import type { AgentState } from "./agent-state.ts";
import type { AnyModelNodeOptions, ModelNodeOptions } from "./model-node.ts";
import type { OnFinish } from "./on-finish.ts";
import type { StopWhen } from "./stop-when.ts";

/**
 * What `createAgent` takes. `Tools` are the names of its tools, `Choices` those that its model may have to call: where a list
 * of tools says them, any other does not compile.
 */
export interface AgentOptions<
  Types extends StateTypes,
  Context,
  Given,
  AnyModel = Model,
  Output = never,
  Tools extends string = string,
  Choices extends string = Tools,
> extends Omit<
    ModelNodeOptions<AgentState<Types>["state"], NoInfer<Context>, AnyModel, Tools, Choices>,
    "output" | "maxTurns"
  > {
  readonly name: string;
  /** Count up when a change of the agent must not be taken for the old one. Default 1. */
  readonly version?: number;
  /** Channels of the agent's own, beside `messages`. */
  readonly state?: StateDefinition<Types>;
  readonly context?: ContextDefinition<Context, Given>;
  /** What the agent gives as `output` of its result: a schema, or a schema and how the model is asked for it. */
  readonly output?: OutputInput<Output> | OutputOptions<Output>;
  /**
   * How often the model is asked between two words of people, before the agent ends `by` this; Infinity for no limit. Default:
   * 50, and none where the agent has a `budget` or `turnCountIs`.
   */
  readonly maxTurns?: number;
  /** Ends the agent when calls have been answered: a condition, or several of which any does. */
  readonly stopWhen?: StopWhen<AgentState<Types>["state"]>;
  /** Told when the agent ends by itself; see {@link OnFinish} for what holds after a crash. */
  readonly onFinish?: OnFinish<
    AgentState<Types>["state"],
    NoInfer<Context>,
    [Output] extends [never] ? undefined : NoInfer<Output> | undefined
  >;
  /** What becomes of calls that cannot be run. Default: answered, so that the model mends them. */
  readonly onInvalidCall?: ToolNodeOptions<unknown, unknown>["onInvalidCall"];
  /** Where its threads are kept; runs may give another. */
  readonly store?: Store;
  /** How the calls of one message share time. Default `parallel`. */
  readonly strategy?: ToolNodeOptions<unknown, unknown>["strategy"];
  /** How many calls of one message may run at the same time. Default: no limit. */
  readonly maxToolConcurrency?: number;
  /** How much of a tool's result the model sees. Default: 8 KiB of one block, 50 KiB in all. */
  readonly limits?: ToolNodeOptions<unknown, unknown>["limits"];
  /** Where large results are kept, instead of in the store of the run. */
  readonly artifacts?: ToolNodeOptions<unknown, unknown>["artifacts"];
  /** How many calls of one message may run; those after them are refused, each with an answer. Default: no limit. */
  readonly maxToolCalls?: number;
  /** What a message that comes while tools are at work does to calls that have not begun. Default `skip-remaining`. */
  readonly steering?: ToolNodeOptions<unknown, unknown>["steering"];
  /** How many of the messages that wait for a run are taken in at a time. Default `all`. */
  readonly inbox?: "one" | "all";
}

/** An agent's options without their types: what its graph is built from. */
export type AnyAgentOptions = AnyModelNodeOptions &
  Pick<
    AgentOptions<StateTypes, unknown, unknown>,
    | "name"
    | "version"
    | "strategy"
    | "maxToolConcurrency"
    | "limits"
    | "artifacts"
    | "maxToolCalls"
    | "steering"
    | "inbox"
    | "onInvalidCall"
  > & {
    readonly state?: Pick<StateDefinition, "channels">;
    readonly context?: Pick<ContextDefinition, "schema">;
    readonly stopWhen?: StopWhen<never>;
    readonly onFinish?: OnFinish<never, never, never>;
  };
