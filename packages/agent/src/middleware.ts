/** Entry `@statewright/agent/middleware`: ready-made middleware of models and tools. */

export type { BudgetAnswer, BudgetInterrupt } from "./budget/budget-answer.ts";
export type { BudgetOptions, ExceededLimit } from "./budget/budget-options.ts";
export type { BudgetKind, BudgetLimits, BudgetSpent } from "./budget/budget-spent.ts";
export { type CountTokens, estimateTokens } from "./context/count-tokens.ts";
export {
  type RecalledMemories,
  type RecallMemoriesOptions,
  recalledMemories,
  recallMemories,
} from "./memory/recall-memories.ts";
export { type MemoryChanges, type NewMemory, type SaveMemoriesOptions, saveMemories } from "./memory/save-memories.ts";
export { type AllowOptions, allowTools } from "./middleware/allow-tools.ts";
export { type Budget, budget } from "./middleware/budget.ts";
export { type CacheRepliesOptions, cacheReplies, type ReplyScopeSource } from "./middleware/cache-replies.ts";
export { type CacheResultsOptions, cacheResults, type ResultScopeSource } from "./middleware/cache-results.ts";
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
export { redactPersonal } from "./middleware/redact-personal.ts";
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
export { type PersonalKind, personalKinds } from "./personal/personal-kind.ts";
export type { PersonalDetector, PersonalStrategy, RedactPersonalOptions } from "./personal/redact-options.ts";
