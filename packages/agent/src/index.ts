/** Statewright agents: a model and its tools as an ordinary graph. */

export { getAgentEnd } from "./agent/agent-end.ts";
export type { AgentContent, AgentInput } from "./agent/agent-input.ts";
export type { AgentOptions } from "./agent/agent-options.ts";
export type { AgentListener, AgentResult, AgentRun, AgentStream, EventSource } from "./agent/agent-run.ts";
export type { AgentState, AgentTypes, NoState, OutputOf } from "./agent/agent-state.ts";
export {
  type Agent,
  type AgentAbortOptions,
  type AgentResumeOptions,
  type AgentRunOptions,
  type AgentSteerOptions,
  type AnswerKeys,
  createAgent,
} from "./agent/create-agent.ts";
export type { LastValueChannel } from "./agent/last-value-channel.ts";
export type { ToolChoiceNames } from "./agent/model-node.ts";
export { type ModelNode, modelNode } from "./agent/model-node.ts";
export type { ModelNodeOptions } from "./agent/model-node-options.ts";
export type { AgentFinish, OnFinish } from "./agent/on-finish.ts";
export type { AgentToolChoice, PreparedStep, PrepareStep, StepInput } from "./agent/prepare-step.ts";
export * as agentRoutes from "./agent/routes.ts";
export { hasToolCall, type StopCondition, type StopInput, type StopWhen, turnCountIs } from "./agent/stop-when.ts";
export type { MemorySearch } from "./memory/find-memories.ts";
export type { Memory, MemoryNamespace } from "./memory/memory-namespace.ts";
export { type MemoryToolsOptions, memoryTools } from "./memory/memory-tools.ts";
export type { PartialOutput } from "./output/partial-output.ts";
export {
  type AgentTask,
  type AgentToolOptions,
  agentTool,
  type ConversationGraphTypes,
  type SubAgentEnd,
} from "./sub-agents/agent-tool.ts";
export {
  type HandoffFilter,
  type HandoffInfo,
  type HandoffOptions,
  handoff,
  type NoArgs,
  removeToolCalls,
} from "./sub-agents/handoff.ts";
export { type Team, type TeamMember, type TeamOptions, type TeamState, team } from "./sub-agents/team.ts";
export type { CountedTurns } from "./turns/agent-turn-kind.ts";
