/** Entry `statewright/middleware`: ready-made middleware; options that take a model also take a model name. */

export * from "@statewright/agent/middleware";
export { type ModelFallbackOptions, modelFallback } from "./model-fallback.ts";
export {
  type SaveMemoriesOptions,
  type SelectToolsOptions,
  type SummariseOptions,
  saveMemories,
  selectToolsByModel,
  summarise,
} from "./model-middleware.ts";
