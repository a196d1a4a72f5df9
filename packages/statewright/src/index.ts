/** Statewright: agents as graphs, compiled to XState machines, saved step by step to SQLite. */

export type {
  Agent,
  AgentInput,
  AgentResumeOptions,
  AgentRunOptions,
  AgentState,
  AgentTypes,
  NoState,
} from "@statewright/agent";
export { isLanguageModel, type LanguageModel, loadModel } from "@statewright/ai-sdk";
export * from "@statewright/core";
export {
  type BackupOptions,
  type Encryption,
  type EncryptionKey,
  encryptStore,
  type Fault,
  type SqliteStore,
  type SqliteStoreOptions,
  sqliteStore,
  type VerifyReport,
} from "@statewright/sqlite";
export { type AgentOptions, createAgent } from "./create-agent.ts";
