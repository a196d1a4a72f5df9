/** Statewright: agents as graphs, compiled to XState machines, saved step by step to SQLite. */
export { isLanguageModel, type LanguageModel, loadModel } from "@statewright/ai-sdk";
export type {
  Agent,
  AgentInput,
  AgentResumeOptions,
  AgentRunOptions,
  AgentState,
  AgentTypes,
  NoState,
} from "@statewright/agent";
export * from "@statewright/core";
export { sqliteStore, type SqliteStoreOptions } from "@statewright/sqlite";
export { type AgentOptions, createAgent } from "./create-agent.ts";
