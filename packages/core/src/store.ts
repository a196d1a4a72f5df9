/** Entry `@statewright/core/store`: codecs, caches, relays and artifacts in memory, and rows, rules and types for authors of stores. */

export type { ChannelRows } from "./checkpoint/channel-rows.ts";
export type {
  CheckpointRow,
  CheckpointSource,
  Control,
  DeferredTask,
  DeltaRow,
  RunRow,
  StopKind,
  Task,
} from "./checkpoint/checkpoint.ts";
export { type ClaimableKind, type ClaimablePage, getClaimableKind } from "./checkpoint/claimable.ts";
export type { ClaimedRows } from "./checkpoint/claimed-rows.ts";
export * as delayedRunRules from "./checkpoint/delayed-run.ts";
export type { EventRow } from "./checkpoint/event.ts";
export type {
  ArtifactExport,
  CheckpointExport,
  GraphVersion,
  NamespaceExport,
  OutlineExport,
  PrunedDelta,
  PrunedRange,
  ThreadExport,
} from "./checkpoint/export/thread-export.ts";
export type {
  ConversationMessageKind,
  InboxMessage,
  InboxMessageKind,
  InboxMessageWrite,
} from "./checkpoint/inbox-message.ts";
export {
  attemptDisplaced,
  attemptStopped,
  type EffectAttempt,
  type EffectRow,
  type EffectState,
  type EffectUsage,
  type InterruptRow,
  type OpenInterruptRow,
  processDied,
} from "./checkpoint/journal.ts";
export { memoryArtifacts } from "./checkpoint/memory/memory-thread.ts";
export type {
  OutboxChange,
  OutboxClaim,
  OutboxFilter,
  OutboxOutcome,
  OutboxRow,
  OutboxState,
  OutboxSubscription,
  OutboxSweep,
  OutboxWrite,
  OverduePage,
  StoreOutbox,
  ThreadOutboxWrite,
} from "./checkpoint/outbox.ts";
export * as outboxRules from "./checkpoint/outbox.ts";
export type { ClaimMode, PreviousOwner } from "./checkpoint/previous-owner.ts";
export * as requestRules from "./checkpoint/request-rules.ts";
export * as retentionRules from "./checkpoint/retention.ts";
export * as storeRules from "./checkpoint/rules.ts";
export * as claimRules from "./checkpoint/run-claims.ts";
export type {
  HintKind,
  HintListener,
  InputCounts,
  RunRequest,
  RunRequestKind,
  RunRequestOutcome,
  RunRequestWrite,
  WatchOptions,
} from "./checkpoint/run-request.ts";
export {
  type FiredSlot,
  type MissedSlots,
  type ScheduleFilter,
  type ScheduleRow,
  setFiredRun,
} from "./checkpoint/schedule.ts";
export type {
  BranchWrite,
  CheckpointWithDeltas,
  CheckpointWrite,
  Claim,
  ClaimedRun,
  ClaimingGraph,
  ClaimRequest,
  Commit,
  ListedRunRow,
  MetadataFilter,
  NamespaceJournal,
  OpenInterruptFilter,
  Ownership,
  PruneWrite,
  QueuedThread,
  QueueWrite,
  RunClaimRequest,
  RunCountFilter,
  RunCounts,
  RunFilter,
  Schedules,
  ScheduleWrite,
  StatusCounts,
  Store,
  StoredEvent,
  StoreReads,
  ThreadCountFilter,
  ThreadCounts,
  ThreadFilter,
  ThreadPatch,
  ThreadRow,
  ThreadWrite,
  TimerClaimRequest,
} from "./checkpoint/store.ts";
export type {
  ChangeRow,
  EffectSummaryRow,
  NamespaceSummary,
  SuperstepPage,
  SuperstepRow,
  TimelineEntry,
} from "./checkpoint/superstep.ts";
export type { ThreadDetails } from "./checkpoint/thread-rules.ts";
export * as threadRules from "./checkpoint/thread-rules.ts";
export { listGraphVersions } from "./checkpoint/thread-rules.ts";
export {
  type TimerChange,
  type TimerFilter,
  type TimerKind,
  type TimerRow,
  timerKinds,
  toStartTimerId,
} from "./checkpoint/timer.ts";
export type { Fault, VerifyReport } from "./checkpoint/verify-report.ts";
export { type CacheEntry, memoryCache, type NodeCache } from "./define/node-cache.ts";
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
export { memoryRelay } from "./run/events/relay-publisher.ts";
export type { ClassCodec } from "./state/class-codec.ts";
export { type Codec, type CodecOptions, createCodec, plainCodec } from "./state/codec.ts";
export { applyDelta, type Delta, type Patch } from "./state/delta.ts";
export type {
  ArtifactFilter,
  ArtifactRow,
  ArtifactStore,
  ArtifactWrite,
  ByteRange,
  StoredArtifacts,
} from "./tool/artifacts/artifact.ts";
export type { ArtifactBodies } from "./tool/artifacts/artifact-bodies.ts";
