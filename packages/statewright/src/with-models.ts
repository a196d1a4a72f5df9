/**
 * The functions that find models, with the AI SDK as the source of language models and of model names. Each function
 * is that of its package; its documentation is there.
 */
import { createAgent as createCoreAgent, team as createCoreTeam } from "@statewright/agent";
import { aiSdkModels } from "@statewright/ai-sdk";
import {
  engine as createCoreEngine,
  defineGraph as defineCoreGraph,
  recover as recoverCore,
  resume as resumeCore,
  run as runCore,
} from "@statewright/core";
import { withDefaultModels } from "@statewright/core/adapter";

/**
 * Creates an agent: a graph of a model node and a tool node, with `run` and `resume` for user messages. Every model
 * option takes a language model of the AI SDK, a `Model`, or a name.
 *
 * ```ts
 * const assistant = createAgent({ name: "assistant", model: anthropic("claude-sonnet-4-5"), tools: [weather], store: sqliteStore("agent.db") });
 * const { status, state } = await assistant.run({ thread: "t1", input: "Is it raining in Oslo?" }).result;
 * ```
 *
 * Throws `invalid_tool`, `invalid_graph` or `invalid_option` for invalid options.
 */
export const createAgent: typeof createCoreAgent = withDefaultModels(createCoreAgent, { source: aiSdkModels, at: 0 });

/** Creates a team of agents: `team` of `@statewright/agent`, with models of the AI SDK. */
export const team: typeof createCoreTeam = withDefaultModels(createCoreTeam, { source: aiSdkModels, at: 0 });

/** Defines a graph: `defineGraph` of `@statewright/core`, with models of the AI SDK. */
export const defineGraph: typeof defineCoreGraph = withDefaultModels(defineCoreGraph, { source: aiSdkModels, at: 0 });

/** Runs a graph: `run` of `@statewright/core`, with models of the AI SDK. */
export const run: typeof runCore = withDefaultModels(runCore, { source: aiSdkModels, at: 1 });

/** Continues a thread: `resume` of `@statewright/core`, with models of the AI SDK. */
export const resume: typeof resumeCore = withDefaultModels(resumeCore, { source: aiSdkModels, at: 1 });

/** Creates a process that serves threads: `engine` of `@statewright/core`, with models of the AI SDK. */
export const engine: typeof createCoreEngine = withDefaultModels(createCoreEngine, { source: aiSdkModels, at: 0 });

/** Recovers crashed runs: `recover` of `@statewright/core`, with models of the AI SDK. */
export const recover: typeof recoverCore = withDefaultModels(recoverCore, { source: aiSdkModels, at: 0 });
