/** Types of the options of model nodes. */
import type {
  AnyModel,
  Middleware,
  ModelFallback,
  ModelRetryPolicy,
  ModelSettings,
  ModelTimeouts,
  OutputInput,
  OutputOptions,
  ProviderTool,
  Tool,
  ToolRegistry,
} from "@statewright/core";
import type { AiSdkProviderTool } from "@statewright/core/adapter";
import type { AgentToolChoice, PrepareStep } from "./prepare-step.ts";

/** Options of `modelNode`, equal to the options of `createAgent` with the same names. */
export interface ModelNodeOptions<
  State = unknown,
  Context = unknown,
  Tools extends string = string,
  Choices extends string = Tools,
> {
  /** A model, or a list: the first model is called, the others are fallbacks in their order, as with `fallback`. */
  readonly model: AnyModel | readonly AnyModel[];
  /** System prompt: a text, or a function of state and context. */
  readonly instructions?: string | ((state: State, context: Context) => string);
  /** Tools, or a tool registry; changes of a registry take effect with the next model request. */
  readonly tools?: readonly Tool<State, Context>[] | ToolRegistry<State, Context>;
  /** Names of the tools shown to the model: a fixed list, or a function called in each turn. Default: all tools. */
  readonly allowedTools?: readonly Tools[] | ((state: State, context: Context) => readonly Tools[]);
  /** Tools defined by the model provider, such as its web search; the provider runs most of them itself. */
  readonly providerTools?: readonly (ProviderTool | AiSdkProviderTool)[];
  /**
   * Tool choice of the model: `auto`, `none`, `required`, or a specific tool. Default: `auto`. A forced choice holds for
   * the first request after a user message; `{ tool: name, every: true }` and `{ choice: "required", every: true }` force
   * each request.
   */
  readonly toolChoice?: AgentToolChoice<Choices>;
  /** Middleware, the first outermost. Default: none. */
  readonly middleware?: readonly Middleware<Context, State>[];
  /** Settings of every model request. */
  readonly settings?: ModelSettings;
  /**
   * Retry policy inside the model call; hooks and interrupts do not repeat. Default: 3 attempts for retryable
   * failures.
   */
  readonly retry?: ModelRetryPolicy;
  /** Timeouts: to the first token, between two deltas, and of the whole call. Default: no limit. */
  readonly timeouts?: ModelTimeouts;
  /** Models called in order after a permanent failure of the previous model. */
  readonly fallback?: readonly AnyModel[] | ModelFallback;
  /** Customizes each model request. */
  readonly prepareStep?: PrepareStep<State, Context, Tools, Choices>;
  /** Structured output of the agent: a schema, or a schema with output options. */
  readonly output?: OutputInput<unknown> | OutputOptions<unknown>;
  /** Maximum model calls per user input, before the agent ends `by` this limit. Default: no limit. */
  readonly maxTurns?: number;
}

/** Options of a model node without the types of state and context. */
export type AnyModelNodeOptions = Pick<
  ModelNodeOptions,
  "model" | "providerTools" | "toolChoice" | "settings" | "retry" | "timeouts" | "fallback" | "output" | "maxTurns"
> & {
  readonly instructions?: string | ((state: never, context: never) => string);
  readonly tools?: readonly Tool<never, never>[] | ToolRegistry<never, never>;
  readonly allowedTools?: readonly string[] | ((state: never, context: never) => readonly string[]);
  readonly middleware?: readonly Middleware<never, never>[];
  readonly prepareStep?: PrepareStep<never, never>;
};
