/** `createAgent` with any model: one of ours, or a language model of the AI SDK. */
import {
  type Agent,
  createAgent as createAgentWithModel,
  type NoState,
  type AgentOptions as OptionsWithModel,
} from "@statewright/agent";
import { aiModel, isLanguageModel, type LanguageModel } from "@statewright/ai-sdk";
import type { Model, StateTypes } from "@statewright/core";

/** What `createAgent` takes; `model` is any AI SDK language model or a model of ours, such as the scripted one. */
export type AgentOptions<Types extends StateTypes, Context, Given> = OptionsWithModel<
  Types,
  Context,
  Given,
  Model | LanguageModel
>;

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
export function createAgent<Types extends StateTypes = NoState, Context = unknown, Given = unknown>(
  options: AgentOptions<Types, Context, Given>,
): Agent<Types, Context, Given> {
  const model = options?.model;
  return createAgentWithModel({ ...options, model: isLanguageModel(model) ? aiModel(model) : model });
}
