/** Statewright core: define, compile, run, resume and inspect agents as graphs. */

export type { EffectClass, EffectKind } from "./base/effect.ts";
export {
  type ErrorCode,
  type ErrorKind,
  type ErrorPlace,
  type ErrorRecord,
  isStatewrightError,
  StatewrightError,
} from "./base/errors.ts";
export type { Injection, InjectionKind, InjectionSource, RunIdentity, SecretSource } from "./base/injection.ts";
export type { DeepReadonly, Json, JsonObject } from "./base/json.ts";
export type {
  LongTerm,
  LongTermCondition,
  LongTermFilter,
  LongTermItem,
  LongTermNamespaces,
  LongTermPage,
  LongTermPut,
  LongTermScalar,
  LongTermSearch,
  OpenLongTerm,
} from "./base/long-term.ts";
export type { RetryPolicy } from "./base/retry.ts";
export type { Schema, SchemaInput, SchemaIssue, SchemaOutput } from "./base/schema.ts";
export type { Clock, Schedule } from "./base/time.ts";
export type { Log, LogLevel, Random, World } from "./base/world.ts";
export type { RunStatus } from "./checkpoint/checkpoint.ts";
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./checkpoint/memory/memory-store.ts";
export type {
  Notification,
  NotificationBase,
  NotificationError,
  NotificationInterrupt,
  NotificationKind,
} from "./checkpoint/notification.ts";
export type { FiredSlot, MissedSlots } from "./checkpoint/schedule.ts";
export type { Store } from "./checkpoint/store.ts";
export type { GraphWithoutEdges, GraphWithoutNodes } from "./compile/define-graph.ts";
export { defineGraph, type GraphTypesWithNodes, type GraphTypesWithoutNodes } from "./compile/define-graph.ts";
export {
  type ActorEffects,
  type ActorNames,
  type DurableMachineOptions,
  durableMachine,
  type MachineState,
  type MachineTypes,
} from "./compile/durable-machine.ts";
export type { Graph, GraphDefaults, GraphMachine, GraphOptions, GraphTypesOf, ToolDefaults } from "./compile/graph.ts";
export { defineMigration, type MigratedState, type Migration, type MigrationOptions } from "./compile/migration.ts";
export type { AgentEndCheck, AgentTurn, TurnLimit } from "./define/agent-turn.ts";
export { edit, type Goto, goto, type Recipe, type Send, send } from "./define/command.ts";
export type { ContextOf, ContextShape, GivenContext } from "./define/context.ts";
export { type ContextDefinition, defineContext } from "./define/context.ts";
export {
  type CommandTargets,
  commandTargets,
  END,
  type FanOut,
  fanOut,
  type Join,
  join,
  type Route,
  route,
  START,
} from "./define/edge.ts";
export type { GraphDefinition, GraphTypes, SubgraphPersistence, SubgraphRecord } from "./define/graph.ts";
export {
  type FinishedGraphCall,
  type GraphCall,
  type GraphOrFactory,
  type GraphToolOptions,
  graphTool,
} from "./define/graph-tool.ts";
export type { ModelCall } from "./define/model-call.ts";
export { type ModelRoute, type ModelRouteOptions, modelRoute } from "./define/model-route.ts";
export {
  type AttemptPolicy,
  type CachePolicy,
  type CacheScopeSource,
  type ErrorHandler,
  type FailureRuntime,
  type InputNode,
  type InputNodePolicy,
  inputNode,
  type NodeClaims,
  type NodePolicy,
  type NodeReturn,
  type NodeRuntime,
  type StepOptions,
  type StepRuntime,
} from "./define/node.ts";
export type { GraphProblem } from "./define/problem.ts";
export { type SubgraphBody, type SubgraphOptions, subgraph } from "./define/subgraph.ts";
export {
  type InvalidCall,
  type InvalidCallPolicy,
  type ToolNamesIn,
  type ToolNode,
  type ToolNodeOptions,
  type ToolStrategy,
  toolNode,
} from "./define/tool-node.ts";
export { type CheckOptions, checkGraph } from "./inspect/check/check-graph.ts";
export type { GraphReport, GraphRule, GraphViolation } from "./inspect/check/report.ts";
export { getHistory, type HistoryEntry, type HistoryOptions } from "./inspect/get-history.ts";
export {
  type ClosedInterrupt,
  getState,
  type StateOptions,
  type ThreadState,
} from "./inspect/get-state.ts";
export { type ListInterruptsOptions, listInterrupts, type WaitingInterrupt } from "./inspect/list-interrupts.ts";
export type { WithCursor } from "./inspect/list-threads.ts";
export { type StreamEventsOptions, streamEvents } from "./inspect/stream-events.ts";
export { type LongTermStore, type LongTermStoreOptions, longTermStore } from "./long-term/long-term-store.ts";
export type { Embed, LongTermVectors } from "./long-term/vectors.ts";
export type { ModelCallPolicy, ModelFallback, ModelRetryPolicy, ModelTimeouts } from "./model/call-policy.ts";
export type { LanguageModel } from "./model/language-model.ts";
export type * from "./model/message.ts";
export type { FailedAttempt } from "./model/message.ts";
export { getMessageText, listToolCalls } from "./model/message.ts";
export type { FileData, MessageFile, NamedFile, UploadedFile } from "./model/message-files.ts";
export type {
  Model,
  ModelCallOptions,
  ModelDelta,
  ModelFailure,
  ModelOutput,
  ModelReply,
  ModelRequest,
  ModelSettings,
  ModelTool,
  ProviderTool,
  ReasoningEffort,
  ToolChoice,
} from "./model/model.ts";
export type { ModelFailureKind } from "./model/model-failure.ts";
export type {
  AnyModel,
  ModelNames,
  ModelProvider,
  ModelSource,
  Models,
  ModelsOption,
} from "./model/model-source.ts";
export {
  type AssistantMessageOptions,
  assistantMessage,
  type NewMessageOptions,
  type SystemMessageOptions,
  systemMessage,
  type ToolMessageInput,
  toolMessage,
  type UserContent,
  userMessage,
} from "./model/new-message.ts";
export type { ModelPrice, PricesInput, PriceTable } from "./model/prices.ts";
export type { ActError, ActProgress, ActReport, BulkOptions } from "./resume/acts/act.ts";
export * as bulk from "./resume/acts/bulk.ts";
export type { CancelRunsOptions } from "./resume/acts/cancel-runs.ts";
export type { ActThreadFilter, DeleteThreadsOptions } from "./resume/acts/delete-threads.ts";
export type { ResumeRunsOptions } from "./resume/acts/resume-runs.ts";
export type { ActRunFilter } from "./resume/acts/run-list.ts";
export { type SubmittedAnswers, submitAnswers } from "./resume/answers/submit-answers.ts";
export { type CancelRunOptions, cancelRun } from "./resume/cancel-run.ts";
export { type CheckRunsOptions, checkRuns, type RunCheck } from "./resume/check-runs.ts";
export { type ConversationTypes, type EditOptions, editMessage } from "./resume/edit-message.ts";
export { type Engine, type EngineOptions, engine } from "./resume/engine.ts";
export { type ForkOptions, fork } from "./resume/fork.ts";
export type { Notify, NotifyOptions } from "./resume/notifications/notify-options.ts";
export { type PauseRunOptions, pauseRun } from "./resume/pause-run.ts";
export { type RecoverOptions, recover } from "./resume/recover.ts";
export type { RequestedRunResult, RequestRunOptions } from "./resume/request-run.ts";
export { resume } from "./resume/resume.ts";
export type { RunSchedule } from "./resume/schedules/run-schedule.ts";
export {
  type ScheduleCalendar,
  type ScheduleOptions,
  type ScheduleThread,
  schedule,
} from "./resume/schedules/schedule.ts";
export type { ListSchedulesOptions, ScheduleCallOptions } from "./resume/schedules/schedules.ts";
export * as schedules from "./resume/schedules/schedules.ts";
export type { ServingOptions } from "./resume/serving.ts";
export { type SteerOptions, steer } from "./resume/steer.ts";
export { type NodeUpdate, type UpdateOptions, updateState } from "./resume/update-state.ts";
export type { EventOverflow } from "./run/events/event-queue.ts";
export type { EventView } from "./run/events/events.ts";
export type { InspectedActor, Inspector } from "./run/events/inspection.ts";
export type { OpenCallArgs, OpenMessage, OpenToolCall, OpenWork, RetriedMessage } from "./run/events/open-message.ts";
export type { Relay, RelayFrame, RelayGap, RelaySnapshot } from "./run/events/relay.ts";
export type { OpenInterrupt, RunEvent, RunEventBody, Transition, TransitionRecord } from "./run/events/run-event.ts";
export type { Incompatibility } from "./run/migration/compatibility.ts";
export { run } from "./run/run.ts";
export type { InboxInput } from "./run/session/inbox/inbox-input.ts";
export type {
  Answers,
  BranchName,
  BreakpointOption,
  CommonOptions,
  DeliveredEvent,
  EventsOptions,
  OnBusy,
  OnKeyReused,
  OnPriorEffect,
  OpenInterruptOf,
  ResumeOptions,
  RunHandle,
  RunOf,
  RunOptions,
  RunResult,
  StartOptions,
  SubmitAnswersOptions,
  SubmitOptions,
} from "./run/session/options/options.ts";
export type { TextOptions } from "./run/session/text-stream.ts";
export { type SubmittedRun, submit } from "./run/submit.ts";
export { type Channel, type ChannelKind, type Overwrite, overwrite } from "./state/channel.ts";
export * as channel from "./state/channels.ts";
export type { StateShape, TypesOfShape } from "./state/definition.ts";
export {
  type DefinedState,
  defineState,
  type InputOf,
  type StateDefinition,
  type StateOf,
  type StateTypes,
  type UpdateOf,
} from "./state/definition.ts";
export type { ArtifactPage, ToolArtifacts } from "./tool/artifacts/artifact-access.ts";
export type { ArtifactDraft, ArtifactRef } from "./tool/artifacts/artifact-draft.ts";
export type { ResultLimits } from "./tool/artifacts/artifact-limits.ts";
export { type ReadArtifactOptions, readArtifact } from "./tool/artifacts/read-artifact.ts";
export type { RedactionPolicy } from "./tool/artifacts/redaction-policy.ts";
export type { OutputOptions, OutputStrategy } from "./tool/definition/answer-format.ts";
export { type ClientFailure, clientAnswer } from "./tool/definition/client-tool.ts";
export type { Generate, Generated, GenerateRequest } from "./tool/definition/generate.ts";
export { type OutputInput, type OutputSchema, outputSchema, type ReadOutput } from "./tool/definition/output-schema.ts";
export type { ContextNeeds, InjectedOf, InjectMap, StateNeeds } from "./tool/definition/tool.ts";
export {
  type ArgsOf,
  type DefinedTool,
  defineTool,
  type Tool,
  type ToolCall,
  type ToolDefinition,
  type ToolExecution,
  type ToolInput,
  type ToolResultData,
  type ToolRetryOn,
  type ToolRuntime,
  type ToolSafety,
  type ToolSpec,
} from "./tool/definition/tool.ts";
export {
  isToolError,
  ToolError,
  type ToolErrorDisposition,
  type ToolErrorKind,
  type ToolErrorOptions,
  type ToolErrorPolicy,
} from "./tool/definition/tool-error.ts";
export type { ToolNames } from "./tool/definition/tool-name.ts";
export * as inject from "./tool/inject.ts";
export {
  type ApprovalAnswer,
  type ApprovalVerdict,
  approval,
  type InDoubtAnswer,
  type NodeInDoubtAnswer,
  type StepInDoubtAnswer,
} from "./tool/policy/approval.ts";
export * as decide from "./tool/policy/decide.ts";
export type { AnswerInput, AnswerOf, InterruptDeclaration, InterruptShape } from "./tool/policy/interrupt.ts";
export type { Ledger, OpenLedger } from "./tool/policy/ledger.ts";
export {
  type AgentEnding,
  type AskOptions,
  type AuxiliaryCall,
  type BeforeToolDecision,
  type BeforeToolHook,
  defineMiddleware,
  type EndingRuntime,
  type HookInterrupt,
  type Middleware,
  type MiddlewareRuntime,
  type ModelHookRuntime,
  type OutgoingRequest,
  type RequestEndListener,
  type WritingRuntime,
} from "./tool/policy/middleware.ts";
export { env, type SecretValue } from "./tool/policy/secret.ts";
export { type ToolRegistry, type ToolRegistryOptions, toolRegistry } from "./tool/registry.ts";
export type { ToolOutput, ToolResult, ToolReturn } from "./tool/result.ts";
