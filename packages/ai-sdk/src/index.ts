/** Any AI SDK language model (specification V4, V3 or V2) as a model of Statewright. */
export { aiModel } from "./ai-model.ts";
export { isLanguageModel, type LanguageModel } from "./language-model.ts";
export { type LoadModelOptions, loadModel } from "./load-model.ts";
