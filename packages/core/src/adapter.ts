/** Entry `@statewright/core/adapter`: adapters of models, tools, orchestrators and formats to Statewright. */

export { toBase64 } from "./base/base64.ts";
export { createSecret } from "./base/create-secret.ts";
export { type ErrorParts, errorCodes, replaceErrorText } from "./base/errors.ts";
export { escapeControlChars } from "./base/escape-control-chars.ts";
export { checkId, createId, fingerprint } from "./base/ids.ts";
export { type InvalidOption, invalidOption, type OptionErrorCode } from "./base/invalid-option.ts";
export {
  checkChoice,
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkOptions,
  checkStrings,
  checkTime,
  listOptionNames,
  requireAny,
} from "./base/options.ts";
export { packageVersion } from "./base/package-version.ts";
export { createPatternRedactor } from "./base/redaction/redact-patterns.ts";
export { createGuardSchema } from "./base/schema.ts";
export { createSha256, type Sha256 } from "./base/sha256.ts";
export { systemWorld } from "./base/world.ts";
export { toBranchPrefix } from "./checkpoint/thread-rules.ts";
export { isDurableMachine } from "./compile/durable-machine.ts";
export { functionKind } from "./compile/kinds/function.ts";
export { nodeKind } from "./compile/kinds/kinds.ts";
export { getGraphShape } from "./compile/plan.ts";
export type { CallerContext, ContextMapping, NodeEngine, NodeKind, NodeTask } from "./define/graph.ts";
export { graphToolOptionNames } from "./define/graph-tool.ts";
export { findInnerGraph } from "./define/inner-graph.ts";
export {
  applyMachineEvents,
  type ExploredPath,
  explorePaths,
  type PathExploration,
} from "./inspect/check/explore-paths.ts";
export type { StopSignal } from "./inspect/follow-thread.ts";
export { type LoadedState, loadState } from "./inspect/get-state.ts";
export { loadStates, type StatesPage } from "./inspect/load-states.ts";
export { openEvents } from "./inspect/stream-events.ts";
export { watchThreadChanges } from "./inspect/thread-changes.ts";
export {
  checkCallPolicy,
  checkDuplicatePolicy,
  checkKnownModels,
  resolveFallback,
  splitModels,
} from "./model/call-policy.ts";
export { isLanguageModel } from "./model/language-model.ts";
export { getBlockText } from "./model/message.ts";
export { maxFileBytes, toFileBlocks } from "./model/message-files.ts";
export { isModel, settingNames } from "./model/model.ts";
export { getModelFailureKind, modelFailureKinds, toModelFailureKind } from "./model/model-failure.ts";
export { checkModels, copyModelsOption, isAnyModel, withDefaultModels } from "./model/model-source.ts";
export { type Prices, parsePrices, sumTokens } from "./model/prices.ts";
export { type AiSdkProviderTool, isAiSdkProviderTool, providerTool } from "./model/provider-tool.ts";
export { sumTokenCounts } from "./model/sum-token-counts.ts";
export { deliver } from "./resume/deliver.ts";
export type {
  DeliveredMessages,
  DeliveredRun,
  DeliveredWork,
  Delivery,
  DeliveryBase,
  DeliveryLimits,
  DeliveryResult,
} from "./resume/delivery/delivery.ts";
export { forkEditedMessage } from "./resume/edit-message.ts";
export { getEngineOptions, getEngineState, guardSchedules } from "./resume/engine.ts";
export { listScheduleSlots, type ScheduleSlotsOptions } from "./resume/schedules/list-schedule-slots.ts";
export { toRunSchedule } from "./resume/schedules/run-schedule.ts";
export type { ScheduleGuard } from "./resume/schedules/schedule-guard.ts";
export { isDurable, mergeQueuedEvents } from "./run/events/event-queue.ts";
export { isInView } from "./run/events/events.ts";
export type { OpenWork } from "./run/events/open-message.ts";
export { createOpenWork, type OpenWorkFold } from "./run/events/open-work.ts";
export { getStoreRelay } from "./run/events/relay-publisher.ts";
export { digestArgs } from "./run/journal/args-digest.ts";
export type { GuardResult } from "./run/kernel/kernel.ts";
export { mapResult } from "./run/launch.ts";
export { type ActiveRunFilter, listActiveRuns } from "./run/session/thread-registry.ts";
export { type JsonSchemaInput, type JsonSchemaValidator, jsonSchemaInput } from "./tool/arguments/json-schema.ts";
export { measureSchema, type SchemaCost } from "./tool/arguments/schema-cost.ts";
export { computeArtifactKey, getArtifactHandle } from "./tool/artifacts/artifact.ts";
export {
  type AnswerFormat,
  chooseOutputStrategy,
  formatRepairRequest,
  parseAnswer,
  parseAnswerFormat,
} from "./tool/definition/answer-format.ts";
export { type FinalCall, finalCall, finalCallName } from "./tool/definition/final-call.ts";
export { toJsonSchema, toModelTool } from "./tool/definition/model-tool.ts";
export { isStatelessTool, type ToolSpecParts, toolSpec } from "./tool/definition/tool.ts";
export { toSnakeCase } from "./tool/definition/tool-name.ts";
export {
  type BarePiTool,
  type FromPiToolOptions,
  fromPiTool,
  type PiTool,
  type PiToolResult,
  type StaticOf,
} from "./tool/from-pi-tool.ts";
export { canRequestApproval } from "./tool/policy/middleware.ts";
export { isRegistry } from "./tool/registry.ts";
