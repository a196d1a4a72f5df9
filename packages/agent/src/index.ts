/** Statewright agents: a model and its tools as an ordinary graph. */
export {
  type Agent,
  type AgentInput,
  type AgentOptions,
  type AgentResumeOptions,
  type AgentRunOptions,
  type AgentState,
  type AgentTypes,
  createAgent,
  type NoState,
} from "./create-agent.ts";
export { type BitopEvent, bitopDialect } from "./dialects/bitop.ts";
export type { AgentEnd } from "./dialects/lifecycle.ts";
export { type PiEvent, piDialect } from "./dialects/pi.ts";
export { type YoagentEvent, yoagentDialect } from "./dialects/yoagent.ts";
export { type AllowOptions, allowTools } from "./middleware/allow-tools.ts";
export { type CacheResultsOptions, cacheResults } from "./middleware/cache-results.ts";
export { type ConfineOptions, confinePaths } from "./middleware/confine-paths.ts";
export { type ConfirmOptions, confirmTools } from "./middleware/confirm-tools.ts";
export { type DryRunOptions, dryRun } from "./middleware/dry-run.ts";
export { type GuardOptions, guardUntrusted, untrustedFrom } from "./middleware/guard-untrusted.ts";
export {
  type CallCounts,
  type CallLimits,
  callCounts,
  type LimitCallsOptions,
  limitCalls,
} from "./middleware/limit-calls.ts";
export { type LimitRateOptions, limitRate } from "./middleware/limit-rate.ts";
export { knownSecrets, type RedactOptions, redactSecrets, type SecretPattern } from "./middleware/redact-secrets.ts";
export { refuseUnclassified } from "./middleware/refuse-unclassified.ts";
export { type StopLoopsOptions, stopLoops } from "./middleware/stop-loops.ts";
