/** Statewright agents: a model and its tools as an ordinary graph. */

export type { AgentListener, EventSource } from "./agent/active-runs.ts";
export { getAgentEnd } from "./agent/agent-end.ts";
export {
  type AgentFile,
  type FileData,
  maxFileBytes,
  type NamedFile,
  type UploadedFile,
} from "./agent/agent-files.ts";
export type { AgentContent, AgentInput } from "./agent/agent-input.ts";
export type { AgentOptions } from "./agent/agent-options.ts";
export { afterAnswer, afterModel, afterTools } from "./agent/agent-routes.ts";
export type { AgentResult, AgentRun, AgentStream } from "./agent/agent-run.ts";
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
export { type ModelNode, type ModelNodeOptions, modelNode } from "./agent/model-node.ts";
export type { AgentFinish, OnFinish } from "./agent/on-finish.ts";
export type { ModelSettings, PreparedStep, PrepareStep, StepInput } from "./agent/prepare-step.ts";
export { hasToolCall, type StopCondition, type StopInput, type StopWhen, turnCountIs } from "./agent/stop-when.ts";
export type { BudgetAnswer, BudgetInterrupt } from "./budget/budget-answer.ts";
export type { BudgetOptions } from "./budget/budget-options.ts";
export type { BudgetKind, BudgetLimits, BudgetSpent } from "./budget/budget-spent.ts";
export { estimateCost, type ModelPrice, type PricesInput, type PriceTable } from "./budget/prices.ts";
export { type CountTokens, estimateTokens } from "./context/count-tokens.ts";
export { type BitopEvent, bitopDialect } from "./dialects/bitop.ts";
export type { AgentStop } from "./dialects/lifecycle.ts";
export { type PiEvent, piDialect } from "./dialects/pi.ts";
export { type YoagentEvent, yoagentDialect } from "./dialects/yoagent.ts";
export type { MemorySearch } from "./memory/find-memories.ts";
export type { Memory, MemoryNamespace } from "./memory/memory-namespace.ts";
export { type MemoryToolsOptions, memoryTools } from "./memory/memory-tools.ts";
export {
  type RecalledMemories,
  type RecallMemoriesOptions,
  recalledMemories,
  recallMemories,
} from "./memory/recall-memories.ts";
export {
  type MemoryChanges,
  type NewMemory,
  type SaveMemoriesOptions,
  saveMemories,
} from "./memory/save-memories.ts";
export { type AllowOptions, allowTools } from "./middleware/allow-tools.ts";
export { type Budget, budget } from "./middleware/budget.ts";
export { type CacheRepliesOptions, cacheReplies } from "./middleware/cache-replies.ts";
export { type CacheResultsOptions, cacheResults } from "./middleware/cache-results.ts";
export { type ClearToolResultsOptions, clearToolResults } from "./middleware/clear-tool-results.ts";
export { type ConfineOptions, confinePaths } from "./middleware/confine-paths.ts";
export { type ConfirmOptions, confirmTools } from "./middleware/confirm-tools.ts";
export { type DryRunOptions, dryRun } from "./middleware/dry-run.ts";
export { type GuardOptions, guardUntrusted, untrustedFrom } from "./middleware/guard-untrusted.ts";
export {
  type GuardedInput,
  type InputGuardrailOptions,
  inputGuardrail,
  type Refusal,
  refusedInput,
} from "./middleware/input-guardrail.ts";
export {
  type CallCounts,
  type CallCountUpdate,
  type CallLimits,
  callCounts,
  type LimitCallsOptions,
  limitCalls,
} from "./middleware/limit-calls.ts";
export { type LimitModelRateOptions, limitModelRate } from "./middleware/limit-model-rate.ts";
export { type LimitRateOptions, limitRate } from "./middleware/limit-rate.ts";
export { type LogCallsOptions, logCalls } from "./middleware/log-calls.ts";
export { modelFallback } from "./middleware/model-fallback.ts";
export { modelRetry } from "./middleware/model-retry.ts";
export { modelTimeouts } from "./middleware/model-timeouts.ts";
export {
  type GuardedOutput,
  type OutputGuardrailOptions,
  outputGuardrail,
  type RetryVerdict,
} from "./middleware/output-guardrail.ts";
export { type PromptCacheOptions, promptCache } from "./middleware/prompt-cache.ts";
export {
  type PersonalDetector,
  type PersonalStrategy,
  type RedactPersonalOptions,
  redactPersonal,
} from "./middleware/redact-personal.ts";
export { knownSecrets, type RedactOptions, redactSecrets, type SecretPattern } from "./middleware/redact-secrets.ts";
export { refuseUnclassified } from "./middleware/refuse-unclassified.ts";
export {
  type SelectedTools,
  type SelectToolsOptions,
  selectedTools,
  selectToolsByModel,
} from "./middleware/select-tools-by-model.ts";
export { type StopLoopsOptions, stopLoops } from "./middleware/stop-loops.ts";
export {
  type ConversationSummary,
  conversationSummary,
  type SummariseOptions,
  summarise,
} from "./middleware/summarise.ts";
export { type TrimMessagesOptions, trimMessages } from "./middleware/trim-messages.ts";
export type { OutputOptions } from "./output/agent-output.ts";
export type { PartialOutput } from "./output/partial-output.ts";
export { type PersonalKind, personalKinds } from "./personal/find-personal.ts";
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
export { sumUsage } from "./sub-agents/sum-usage.ts";
export { type Team, type TeamMember, type TeamOptions, type TeamState, team } from "./sub-agents/team.ts";
export {
  genAiConventions,
  type SpanAttributes,
  type SpanStart,
  type Traceable,
  type TracedSpan,
  type Tracer,
  traceRun,
} from "./trace/trace-run.ts";
export { agentTurns, agentTurnsInput, type CountedTurns } from "./turns/agent-turns.ts";
