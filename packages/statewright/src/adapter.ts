/** Entry `statewright/adapter`: helpers for adapters of models, tools and formats, and event formats of other frameworks. */

export * from "@statewright/agent/dialects";
export { listProviderCalls, listSources } from "@statewright/ai-sdk";
export * from "@statewright/core/adapter";
