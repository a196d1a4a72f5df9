/** Entry `@statewright/core/inspect`: reads threads, graphs and tools, and moves threads between stores. */

export { toMachineJson } from "./compile/machine-json.ts";
export { toMermaid } from "./compile/mermaid.ts";
export { describeGraph } from "./compile/outline.ts";
export type { Outline, OutlineEdge, OutlineNode } from "./define/outline.ts";
export {
  type CreateThreadOptions,
  createThread,
  type UpdateThreadOptions,
  updateThread,
} from "./inspect/create-thread.ts";
export { getHistory, type HistoryEntry, type HistoryOptions } from "./inspect/get-history.ts";
export {
  type ClosedInterrupt,
  getState,
  type StateOptions,
  type ThreadState,
} from "./inspect/get-state.ts";
export { type ListInterruptsOptions, listInterrupts, type WaitingInterrupt } from "./inspect/list-interrupts.ts";
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
  type ExportOptions,
  exportThread,
  type ImportOptions,
  importThread,
  streamThreadExport,
} from "./inspect/move-thread.ts";
export { type StreamEventsOptions, streamEvents } from "./inspect/stream-events.ts";
export { describeTool, type ToolDescription } from "./tool/definition/describe-tool.ts";
export { lintTool, type ToolWarning, type ToolWarningCode } from "./tool/definition/lint-tool.ts";
