/**
 * Entry `@statewright/core/inspect`: reads, changes, exports and deletes threads of a store without their graphs, and
 * draws and describes graphs and tools. Readers that first programs use are in the main entry too.
 */

export type { ChangeRow, EffectSummaryRow } from "./checkpoint/superstep.ts";
export { toMachineJson } from "./compile/machine-json.ts";
export { toMermaid } from "./compile/mermaid.ts";
export { describeGraph } from "./compile/outline.ts";
export type { Outline, OutlineEdge, OutlineNode } from "./define/outline.ts";
export { type CheckAnswerOptions, type CheckedAnswer, checkAnswer } from "./inspect/check-answer.ts";
export {
  type CreateThreadOptions,
  createThread,
  type UpdateThreadOptions,
  updateThread,
} from "./inspect/create-thread.ts";
export { getHistory, type HistoryEntry, type HistoryOptions } from "./inspect/get-history.ts";
export { getSavedOutline, type SavedOutline, type SavedOutlineOptions } from "./inspect/get-saved-outline.ts";
export {
  type ClosedInterrupt,
  getState,
  type StateOptions,
  type ThreadState,
} from "./inspect/get-state.ts";
export { type ListInterruptsOptions, listInterrupts, type WaitingInterrupt } from "./inspect/list-interrupts.ts";
export {
  type ListedNotification,
  type ListNotificationsOptions,
  listNotifications,
  type RetryNotificationOptions,
  retryNotification,
  stopNotifications,
} from "./inspect/list-notifications.ts";
export {
  countRuns,
  countThreads,
  getRun,
  type ListedRun,
  type ListedThread,
  type ListRunsOptions,
  type ListThreadsOptions,
  listRuns,
  listThreads,
  type WithCursor,
} from "./inspect/list-threads.ts";
export {
  copyThread,
  deleteThread,
  type ExportOptions,
  exportThread,
  type ImportOptions,
  importThread,
  type StreamExportOptions,
  streamThreadExport,
} from "./inspect/move-thread.ts";
export { type PruneOptions, type PruneReport, pruneThread } from "./inspect/prune-thread.ts";
export { type BlameEntry, type BlameOptions, blame } from "./inspect/read/blame.ts";
export {
  type AnswerDifference,
  type BranchComparison,
  type BranchEffectRow,
  type CompareBranchesOptions,
  compareBranches,
} from "./inspect/read/compare-branches.ts";
export type { CutPart } from "./inspect/read/cut-value.ts";
export { type DiffStatesOptions, diffStates } from "./inspect/read/diff-states.ts";
export type { ValueAuthor } from "./inspect/read/find-author.ts";
export type { CheckpointPlace } from "./inspect/read/find-checkpoint.ts";
export {
  type BranchSummary,
  getBranchTree,
  listNamespaces,
  type NamespaceInfo,
} from "./inspect/read/get-branch-tree.ts";
export { type GetStateAtOptions, getStateAt, type StateAt } from "./inspect/read/get-state-at.ts";
export {
  type GetSuperstepOptions,
  getSuperstep,
  type SuperstepDetail,
  type SuperstepEffect,
} from "./inspect/read/get-superstep.ts";
export { type GetUsageOptions, getUsage, type ThreadUsage, type UsageSum } from "./inspect/read/get-usage.ts";
export { type ListSuperstepsOptions, listSupersteps } from "./inspect/read/list-supersteps.ts";
export { type ForkPreview, type PreviewForkOptions, previewFork } from "./inspect/read/preview-fork.ts";
export {
  type EffectCounts,
  isSuperstep,
  type SuperstepSummary,
  type TimelineEvent,
  type TimelineRow,
} from "./inspect/read/superstep-summary.ts";
export type { ReadOptions } from "./inspect/read/thread-reader.ts";
export {
  type MessageMatch,
  type SearchThreadsOptions,
  searchThreads,
  type ThreadMatch,
  type ThreadSearch,
} from "./inspect/search-threads.ts";
export { type StreamEventsOptions, streamEvents } from "./inspect/stream-events.ts";
export { streamMessageText } from "./inspect/stream-message-text.ts";
export { toPublicEvent, toPublicState } from "./inspect/to-public-state.ts";
export { type WatchStoreOptions, watchStore } from "./inspect/watch-store.ts";
export { estimateCost } from "./model/prices.ts";
export type { GuardResult } from "./run/kernel/kernel.ts";
export type { DurableEventBody } from "./run/session/durable-event.ts";
export { applyJsonPatch, type JsonPatchOp } from "./state/json-patch.ts";
export { createLenientCodec, type ForeignValue } from "./state/lenient-codec.ts";
export { describeTool, type ToolDescription } from "./tool/definition/describe-tool.ts";
export { lintTool, type ToolWarning, type ToolWarningCode } from "./tool/definition/lint-tool.ts";
