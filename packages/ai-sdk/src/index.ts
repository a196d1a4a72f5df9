/** Adapts AI SDK language models (specification V4, V3 or V2) to `Model`. */
export type { LanguageModel, ModelProvider } from "@statewright/core";
export { type AiSdkProviderTool, isLanguageModel, providerTool } from "@statewright/core/adapter";
export { type AiModelOptions, aiModel } from "./ai-model.ts";
export { aiSdkModels } from "./ai-sdk-models.ts";
export { type LoadModelOptions, loadModel, namedModel } from "./load-model.ts";
export { isModelRegistry, type ModelRegistry, modelRegistry } from "./model-registry.ts";
export { listProviderCalls, listSources, type ProviderCall, type ReplySource } from "./provider-results.ts";
