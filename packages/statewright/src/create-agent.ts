/** `createAgent` with any model: one of ours, a language model of the AI SDK, or the name of one. */
import {
  type Agent,
  type AgentOptions as AgentWithModel,
  type ChoicesOf,
  createAgent as createAgentWithModel,
  type KeysOf,
  type NoState,
  type PrepareStep,
} from "@statewright/agent";
import type { AiSdkProviderTool } from "@statewright/ai-sdk";
import {
  type Model,
  type ModelFallback,
  type ProviderTool,
  type StateTypes,
  StatewrightError,
  type ToolNamesIn,
} from "@statewright/core";
import { type AnyModel, type AnyRegistry, eachOf, firstAndOthers, modelsFrom, toProviderTool } from "./any-model.ts";

/** What `createAgent` takes; wherever a model stands, any AI SDK language model may stand, a model of ours, or a name. */
export interface AgentOptions<
  Types extends StateTypes,
  Context,
  Given,
  Output = never,
  Tools extends string = string,
  Choices extends string = Tools,
> extends Omit<AgentWithModel<Types, Context, Given, AnyModel, Output, Tools, Choices>, "model" | "providerTools"> {
  /** A model, or several: the first is asked, and the others stand in for it in their order, as with `fallback`. */
  readonly model: AnyModel | readonly AnyModel[];
  /**
   * Where names of models are looked up: providers under the names before the slash, or a registry. Without it a name is
   * `provider/model` of the installed package `@ai-sdk/<provider>`, which is loaded at the first request.
   */
  readonly models?: AnyRegistry;
  /** Tools that the model's provider defines, such as `anthropic.tools.webSearch_20250305()`: most of them it runs itself. */
  readonly providerTools?: readonly (ProviderTool | AiSdkProviderTool)[];
}

/**
 * Create an agent: a graph of a model node and a tool node, with `run` and `resume` that take a person's words.
 *
 * ```ts
 * const assistant = createAgent({ name: "assistant", model: anthropic("claude-sonnet-4-5"), tools: [weather], store: sqliteStore("agent.db") });
 * const { status, state } = await assistant.run({ thread: "t1", input: "Is it raining in Oslo?" }).result;
 * ```
 *
 * Throws `invalid_tool`, `invalid_graph` or `invalid_option` for what cannot be meant.
 */
export function createAgent<
  Types extends StateTypes = NoState,
  Context = unknown,
  Given = unknown,
  Output = never,
  Tools = unknown,
  Provided = unknown,
  Around = unknown,
>(
  options: AgentOptions<
    Types,
    Context,
    Given,
    Output,
    NoInfer<ToolNamesIn<Tools>>,
    NoInfer<ChoicesOf<Tools, Provided>>
  > & {
    readonly tools?: Tools;
    readonly providerTools?: Provided;
    readonly middleware?: Around;
  },
): Agent<Types, Context, Given, Output, ToolNamesIn<Tools>, KeysOf<Tools, Around>> {
  const { model, models, fallback, prepareStep, providerTools, ...rest } = options ?? {};
  const toModel = modelsFrom(models);
  const { first, others } = firstAndOthers(model);
  if (others !== undefined && fallback !== undefined) throw twoFallbacks(options.name);
  const standIns = fallbackWith(toModel, others ?? fallback);
  const made: AgentWithModel<Types, Context, Given, Model, Output> = {
    ...rest,
    model: toModel(first),
    ...(standIns && { fallback: standIns }),
    ...(prepareStep && { prepareStep: preparingWith(toModel, prepareStep) }),
    ...(providerTools && { providerTools: eachOf(providerTools, toProviderTool) }),
  };
  return createAgentWithModel(made) as Agent<Types, Context, Given, Output, ToolNamesIn<Tools>, KeysOf<Tools, Around>>;
}

type ToModel = (given: AnyModel) => Model;

function fallbackWith(
  toModel: ToModel,
  fallback: readonly AnyModel[] | ModelFallback<AnyModel> | undefined,
): readonly Model[] | ModelFallback | undefined {
  if (fallback === undefined) return undefined;
  if (isList(fallback)) return fallback.map(toModel);
  return { ...fallback, models: eachOf(fallback.models, toModel) };
}

function isList(fallback: readonly AnyModel[] | ModelFallback<AnyModel>): fallback is readonly AnyModel[] {
  return Array.isArray(fallback);
}

/** A step may be asked of another model, which may be named like all others. */
function preparingWith<State, Context>(
  toModel: ToModel,
  prepareStep: PrepareStep<State, Context, AnyModel>,
): PrepareStep<State, Context> {
  return async (moment) => {
    const prepared = await prepareStep(moment);
    if (prepared?.model === undefined) return prepared as Awaited<ReturnType<PrepareStep<State, Context>>>;
    return { ...prepared, model: toModel(prepared.model) };
  };
}

function twoFallbacks(name: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the agent "${name}" has a list of models and a fallback`,
    next: "Give one model and its fallback, or a list alone",
  });
}
