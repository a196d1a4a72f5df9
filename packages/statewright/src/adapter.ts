/** Entry `statewright/adapter`: adapters of models, tools, orchestrators and formats, and event formats of other frameworks. */

export * from "@statewright/agent/dialects";
export {
  type AiModelOptions,
  aiModel,
  aiSdkModels,
  listProviderCalls,
  listSources,
  loadModel,
  type ModelRegistry,
  modelRegistry,
  type ProviderCall,
  type ReplySource,
} from "@statewright/ai-sdk";
export * from "@statewright/core/adapter";
