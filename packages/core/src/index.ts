/** Statewright core: define, compile, run, resume and inspect agents as graphs. */

export { toBase64 } from "./base/base64.ts";
export type { EffectClass, EffectKind } from "./base/effect.ts";
export {
  type ErrorCode,
  type ErrorKind,
  type ErrorParts,
  type ErrorPlace,
  type ErrorRecord,
  errorCodes,
  isStatewrightError,
  StatewrightError,
} from "./base/errors.ts";
export { escapeControlChars } from "./base/escape-control-chars.ts";
export { checkId, createId, fingerprint } from "./base/ids.ts";
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
export { checkOptions, listOptionNames } from "./base/options.ts";
export type { RetryPolicy } from "./base/retry.ts";
export {
  createGuardSchema,
  type Schema,
  type SchemaInput,
  type SchemaIssue,
  type SchemaOutput,
} from "./base/schema.ts";
export type { Clock, Schedule } from "./base/time.ts";
export { type Log, type LogLevel, type Random, systemWorld, type World } from "./base/world.ts";
export type {
  CheckpointRow,
  CheckpointSource,
  Control,
  DeferredTask,
  DeltaRow,
  RunRow,
  RunStatus,
  StopKind,
  Task,
} from "./checkpoint/checkpoint.ts";
export { type ClaimableKind, type ClaimablePage, getClaimableKind } from "./checkpoint/claimable.ts";
export type { EventRow } from "./checkpoint/event.ts";
export type {
  ArtifactExport,
  CheckpointExport,
  GraphVersion,
  NamespaceExport,
  PrunedDelta,
  PrunedRange,
  ThreadExport,
} from "./checkpoint/export/thread-export.ts";
export type { InboxMessage, InboxMessageKind, InboxMessageWrite } from "./checkpoint/inbox-message.ts";
export type { EffectRow, EffectState, InterruptRow, OpenInterruptRow } from "./checkpoint/journal.ts";
export { memoryArtifacts } from "./checkpoint/memory/memory-artifacts.ts";
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "./checkpoint/memory/memory-store.ts";
export * as retentionRules from "./checkpoint/retention.ts";
export * as storeRules from "./checkpoint/rules.ts";
export type {
  BranchWrite,
  ChannelRows,
  CheckpointWithDeltas,
  CheckpointWrite,
  Claim,
  ClaimRequest,
  Commit,
  MetadataFilter,
  NamespaceJournal,
  OpenInterruptFilter,
  PruneWrite,
  QueueWrite,
  RunFilter,
  Store,
  StoredEvent,
  ThreadFilter,
  ThreadRow,
} from "./checkpoint/store.ts";
export type { TimerChange, TimerKind, TimerRow } from "./checkpoint/timer.ts";
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
export type { Graph, GraphDefaults, GraphMachine, GraphOptions } from "./compile/graph.ts";
export { toMachineJson } from "./compile/machine-json.ts";
export { toMermaid } from "./compile/mermaid.ts";
export { defineMigration, type MigratedState, type Migration, type MigrationOptions } from "./compile/migration.ts";
export { describeGraph } from "./compile/outline.ts";
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
  graphToolOptionNames,
} from "./define/graph-tool.ts";
export {
  type AgentEndCheck,
  type AgentTurn,
  type AttemptPolicy,
  type CachePolicy,
  type ErrorHandler,
  type FailureRuntime,
  type InputNode,
  type InputNodePolicy,
  inputNode,
  type ModelCall,
  type NodeClaims,
  type NodePolicy,
  type NodeReturn,
  type NodeRuntime,
  type StepOptions,
  type StepRuntime,
  type TurnLimit,
} from "./define/node.ts";
export { type CacheEntry, memoryCache, type NodeCache } from "./define/node-cache.ts";
export type { Outline, OutlineEdge, OutlineNode } from "./define/outline.ts";
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
export {
  applyMachineEvents,
  type ExploredPath,
  explorePaths,
  type PathExploration,
} from "./inspect/check/explore-paths.ts";
export type { GraphReport, GraphRule, GraphViolation } from "./inspect/check/report.ts";
export { getHistory, type HistoryEntry, type HistoryOptions } from "./inspect/get-history.ts";
export {
  type ClosedInterrupt,
  getState,
  listRuns,
  listThreads,
  type StateOptions,
  type ThreadState,
} from "./inspect/get-state.ts";
export { type ListInterruptsOptions, listInterrupts, type WaitingInterrupt } from "./inspect/list-interrupts.ts";
export {
  copyThread,
  deleteThread,
  exportThread,
  type ImportOptions,
  importThread,
} from "./inspect/move-thread.ts";
export { type PruneOptions, type PruneReport, pruneThread } from "./inspect/prune-thread.ts";
export { type StreamEventsOptions, streamEvents } from "./inspect/stream-events.ts";
export { longTerm } from "./long-term/inject-long-term.ts";
export { type LongTermStore, type LongTermStoreOptions, longTermStore } from "./long-term/long-term-store.ts";
export type {
  LongTermChange,
  LongTermLocation,
  LongTermQuery,
  LongTermReader,
  LongTermRow,
  LongTermRows,
  LongTermTouch,
  LongTermWord,
  RefreshResult,
} from "./long-term/rows.ts";
export * as longTermRules from "./long-term/rules.ts";
export type { Embed, LongTermVectors } from "./long-term/vectors.ts";
export {
  checkCallPolicy,
  checkDuplicatePolicy,
  type ModelCallPolicy,
  type ModelFallback,
  type ModelRetryPolicy,
  type ModelTimeouts,
} from "./model/call-policy.ts";
export type * from "./model/message.ts";
export type { FailedAttempt } from "./model/message.ts";
export { getBlockText, getMessageText, listToolCalls } from "./model/message.ts";
export type {
  Model,
  ModelCallOptions,
  ModelDelta,
  ModelFailure,
  ModelOutput,
  ModelReply,
  ModelRequest,
  ModelTool,
  ProviderTool,
  ReasoningEffort,
  ToolChoice,
} from "./model/model.ts";
export { isModel } from "./model/model.ts";
export {
  getModelFailureKind,
  type ModelFailureKind,
  modelFailureKinds,
  toModelFailureKind,
} from "./model/model-failure.ts";
export { type CheckRunsOptions, checkRuns, type RunCheck } from "./resume/check-runs.ts";
export { type ConversationTypes, type EditOptions, editMessage } from "./resume/edit-message.ts";
export { type Engine, type EngineOptions, engine } from "./resume/engine.ts";
export { type ForkOptions, fork } from "./resume/fork.ts";
export { type RecoverOptions, recover } from "./resume/recover.ts";
export { resume } from "./resume/resume.ts";
export type { ServingOptions } from "./resume/serving.ts";
export { type SteerOptions, steer } from "./resume/steer.ts";
export { type NodeUpdate, type UpdateOptions, updateState } from "./resume/update-state.ts";
export type { EventView } from "./run/events/events.ts";
export type { InspectedActor, Inspector } from "./run/events/inspection.ts";
export type { OpenInterrupt, RunEvent, RunEventBody, Transition, TransitionRecord } from "./run/events/run-event.ts";
export type { GuardResult } from "./run/kernel/kernel.ts";
export type { Incompatibility } from "./run/migration/compatibility.ts";
export { run } from "./run/run.ts";
export type { InboxInput } from "./run/session/inbox-input.ts";
export type {
  Answers,
  BreakpointOption,
  CommonOptions,
  EventsOptions,
  OnBusy,
  OnPriorEffect,
  ResumeOptions,
  RunHandle,
  RunOptions,
  RunResult,
  StartOptions,
} from "./run/session/options.ts";
export type { TextOptions } from "./run/session/text-stream.ts";
export {
  type Channel,
  ephemeral,
  list,
  messages,
  type Overwrite,
  overwrite,
  record,
  reduce,
  untracked,
} from "./state/channel.ts";
export { type ClassCodec, type Codec, type CodecOptions, createCodec, plainCodec } from "./state/codec.ts";
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
export { applyDelta, type Delta, type Patch } from "./state/delta.ts";
export { type JsonSchemaInput, type JsonSchemaValidator, jsonSchemaInput } from "./tool/arguments/json-schema.ts";
export {
  type ArtifactFilter,
  type ArtifactRow,
  type ArtifactStore,
  type ArtifactWrite,
  type ByteRange,
  computeArtifactKey,
  getArtifactHandle,
  type StoredArtifacts,
} from "./tool/artifacts/artifact.ts";
export type { ArtifactPage, ToolArtifacts } from "./tool/artifacts/artifact-access.ts";
export type { ArtifactDraft, ArtifactRef } from "./tool/artifacts/artifact-draft.ts";
export type { ResultLimits } from "./tool/artifacts/artifact-limits.ts";
export { type ReadArtifactOptions, readArtifact } from "./tool/artifacts/read-artifact.ts";
export type { RedactionPolicy } from "./tool/artifacts/redaction-policy.ts";
export { type ClientFailure, clientAnswer } from "./tool/definition/client-tool.ts";
export { describeTool, type ToolDescription } from "./tool/definition/describe-tool.ts";
export { type FinalCall, finalCall, finalCallName } from "./tool/definition/final-call.ts";
export { lintTool, type ToolWarning, type ToolWarningCode } from "./tool/definition/lint-tool.ts";
export { toJsonSchema, toModelTool } from "./tool/definition/model-tool.ts";
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
  type ToolSpecParts,
  toolSpec,
} from "./tool/definition/tool.ts";
export {
  isToolError,
  ToolError,
  type ToolErrorDisposition,
  type ToolErrorKind,
  type ToolErrorOptions,
  type ToolErrorPolicy,
} from "./tool/definition/tool-error.ts";
export { type ToolNames, toSnakeCase } from "./tool/definition/tool-name.ts";
export {
  type BarePiTool,
  type FromPiToolOptions,
  fromPiTool,
  type PiTool,
  type PiToolResult,
  type StaticOf,
} from "./tool/from-pi-tool.ts";
export { custom, runIdentity } from "./tool/inject.ts";
export {
  type ApprovalAnswer,
  type ApprovalVerdict,
  approval,
  type InDoubtAnswer,
  type NodeInDoubtAnswer,
} from "./tool/policy/approval.ts";
export type { AnswerInput, AnswerOf, InterruptDeclaration, InterruptShape } from "./tool/policy/interrupt.ts";
export type { Ledger, OpenLedger } from "./tool/policy/ledger.ts";
export {
  type AgentEnding,
  type AskOptions,
  type AuxiliaryCall,
  abort,
  allow,
  asksAboutCalls,
  type BeforeToolDecision,
  defineMiddleware,
  deny,
  type EndingRuntime,
  type HookInterrupt,
  interruptFor,
  type Middleware,
  type MiddlewareRuntime,
  type ModelHookRuntime,
  modify,
  type OutgoingRequest,
  type RequestEndListener,
  respond,
  type WritingRuntime,
} from "./tool/policy/middleware.ts";
export { env, type SecretValue, secret } from "./tool/policy/secret.ts";
export { isRegistry, type ToolRegistry, type ToolRegistryOptions, toolRegistry } from "./tool/registry.ts";
export type { ToolOutput, ToolResult, ToolReturn } from "./tool/result.ts";
