/** `createAgent` for any form of a model: `Model`, AI SDK language model, or name. */
import {
  type Agent,
  type AgentState,
  type AgentOptions as AgentWithModel,
  type AnswerKeys,
  type CheckedModel,
  type CheckedTools,
  createAgent as createAgentWithModel,
  type NoState,
  type PrepareStep,
  type ToolChoiceNames,
} from "@statewright/agent";
import type { AiSdkProviderTool } from "@statewright/ai-sdk";
import type { Model, ModelFallback, ProviderTool, StateTypes, StatewrightError, ToolNamesIn } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import {
  type AnyModel,
  type AnyRegistry,
  createModelResolver,
  mapList,
  splitModels,
  toProviderTool,
} from "./any-model.ts";

/** Options of `createAgent`; every model option accepts an AI SDK language model, a `Model`, or a name. */
export interface AgentOptions<
  Types extends StateTypes,
  Context,
  ContextInput,
  Output = never,
  Tools extends string = string,
  Choices extends string = Tools,
> extends Omit<
    AgentWithModel<Types, Context, ContextInput, AnyModel, Output, Tools, Choices>,
    "model" | "providerTools"
  > {
  /** A model, or a list: the first model is called, the others are fallbacks in their order, as with `fallback`. */
  readonly model: AnyModel | readonly AnyModel[];
  /**
   * Registry for model names: providers by the name before the slash, or a registry. Default: a name is
   * `provider/model` of the installed package `@ai-sdk/<provider>`, loaded at the first request.
   */
  readonly models?: AnyRegistry;
  /**
   * Provider-defined tools, such as `anthropic.tools.webSearch_20250305()`; most of these tools run at the provider.
   */
  readonly providerTools?: readonly (ProviderTool | AiSdkProviderTool)[];
}

/**
 * Creates an agent: a graph of a model node and a tool node, with `run` and `resume` for user messages.
 *
 * ```ts
 * const assistant = createAgent({ name: "assistant", model: anthropic("claude-sonnet-4-5"), tools: [weather], store: sqliteStore("agent.db") });
 * const { status, state } = await assistant.run({ thread: "t1", input: "Is it raining in Oslo?" }).result;
 * ```
 *
 * Throws `invalid_tool`, `invalid_graph` or `invalid_option` for invalid options.
 */
export function createAgent<
  Types extends StateTypes = NoState,
  Context = unknown,
  ContextInput = unknown,
  Output = never,
  const Tools = unknown,
  Provided = unknown,
  Middlewares = unknown,
  ModelOption extends AnyModel | readonly AnyModel[] = AnyModel,
>(
  options: Omit<
    AgentOptions<
      Types,
      Context,
      ContextInput,
      Output,
      NoInfer<ToolNamesIn<Tools>>,
      NoInfer<ToolChoiceNames<Tools, Provided>>
    >,
    "tools" | "model"
  > & {
    readonly model: CheckedModel<ModelOption, NoInfer<Tools>>;
    readonly tools?: CheckedTools<AgentState<Types>["state"], NoInfer<Context>, Tools>;
    readonly providerTools?: Provided;
    readonly middleware?: Middlewares;
  },
): Agent<Types, Context, ContextInput, Output, ToolNamesIn<Tools>, AnswerKeys<Tools, Middlewares>> {
  const { model, models, fallback, prepareStep, providerTools, ...rest } = options ?? {};
  const toModel = createModelResolver(models);
  const { first, others } = splitModels(model);
  if (others !== undefined && fallback !== undefined) throw createFallbackConflictError(options.name);
  const fallbackModels = resolveFallback(toModel, others ?? fallback);
  const agentOptions: AgentWithModel<Types, Context, ContextInput, Model, Output> = {
    ...rest,
    model: toModel(first),
    ...(fallbackModels && { fallback: fallbackModels }),
    ...(prepareStep && { prepareStep: wrapPrepareStep(toModel, prepareStep) }),
    ...(providerTools && { providerTools: mapList(providerTools, toProviderTool) }),
  };
  return createAgentWithModel(agentOptions) as Agent<
    Types,
    Context,
    ContextInput,
    Output,
    ToolNamesIn<Tools>,
    AnswerKeys<Tools, Middlewares>
  >;
}

type ToModel = (model: AnyModel) => Model;

function resolveFallback(
  toModel: ToModel,
  fallback: readonly AnyModel[] | ModelFallback<AnyModel> | undefined,
): readonly Model[] | ModelFallback | undefined {
  if (fallback === undefined) return undefined;
  if (isModelList(fallback)) return fallback.map(toModel);
  return { ...fallback, models: mapList(fallback.models, toModel) };
}

function isModelList(fallback: readonly AnyModel[] | ModelFallback<AnyModel>): fallback is readonly AnyModel[] {
  return Array.isArray(fallback);
}

/** Resolves the model that `prepareStep` selects for a step, in any form. */
function wrapPrepareStep<State, Context>(
  toModel: ToModel,
  prepareStep: PrepareStep<State, Context, AnyModel>,
): PrepareStep<State, Context> {
  return async (moment) => {
    const prepared = await prepareStep(moment);
    if (prepared?.model === undefined) return prepared as Awaited<ReturnType<PrepareStep<State, Context>>>;
    return { ...prepared, model: toModel(prepared.model) };
  };
}

function createFallbackConflictError(name: string): StatewrightError {
  return invalidOption({
    where: `agent "${name}"`,
    expected: "a list of models or `fallback`",
    found: "both",
    fix: "Pass one model and its fallback, or a list of models without fallback",
  });
}
