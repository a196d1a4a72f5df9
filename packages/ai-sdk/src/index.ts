/** Adapts AI SDK language models (specification V4, V3 or V2) to `Model`. */
export { type AiModelOptions, aiModel } from "./ai-model.ts";
export { isLanguageModel, type LanguageModel } from "./language-model.ts";
export { type LoadModelOptions, loadModel, namedModel } from "./load-model.ts";
export { isModelRegistry, type ModelProvider, type ModelRegistry, modelRegistry } from "./model-registry.ts";
export { listProviderCalls, listSources, type ProviderCall, type ReplySource } from "./provider-results.ts";
export { type AiSdkProviderTool, providerTool } from "./provider-tool.ts";
