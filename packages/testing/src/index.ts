/** Test kit of Statewright: models, clocks, faults and crashes that implement the real contracts. */

export type { CrashFinding } from "./crash/crash-findings.ts";
export { type CrashMatrixOptions, crashMatrix } from "./crash/crash-matrix.ts";
export { type CrashProgram, type CrashProgramFactory, crashProgram } from "./crash/crash-program.ts";
export type { CrashMatrix, CrashPointFinding, CrashPointResult } from "./crash/crash-report.ts";
export type { CrashExternalWorld } from "./crash/external-world.ts";
export {
  type CrashOutcome,
  type CrashProcess,
  type CrashScript,
  killAt,
  killInSequence,
  runUntilDone,
} from "./crash/kill-at.ts";
export { crashPoint, crashPoints, logEffect, restartExitCode } from "./crash/points.ts";
export { type ExportedTest, type ExportTestOptions, exportTest } from "./export/export-test.ts";
export type { RecordedRun } from "./export/recorded-run.ts";
export { type ReplayedRun, type ReplayOptions, replayRun } from "./export/replay-run.ts";
export type { FaultPlan } from "./faults/fault-plan.ts";
export type { ClockFaults } from "./faults/faulty-clock.ts";
export type { ModelFaults } from "./faults/faulty-model.ts";
export type { PluginCommand, PluginFaults } from "./faults/faulty-plugin.ts";
export type { StoreFaults } from "./faults/faulty-store.ts";
export type { ToolFaults } from "./faults/faulty-tool.ts";
export { faults } from "./faults.ts";
export { type Chance, createChance } from "./order/chance.ts";
export { type GraphPath, listPaths, type PathsOptions } from "./paths/list-paths.ts";
export type { NodeOutcome, PathEvent } from "./paths/path-event.ts";
export type { PathTool } from "./paths/path-graph.ts";
export type { PathRunOptions } from "./paths/run-path.ts";
export { type RecordedModel, type RecordedModelOptions, recordedModel } from "./recorded-model.ts";
export type { RecordingMode } from "./recording/recording.ts";
export { type LoadedRun, type LoadReport, loadRuns } from "./run/load-runs.ts";
export { omitFailedAttempts } from "./run/omit-failed-attempts.ts";
export {
  type CallArgs,
  type CalledName,
  type CalledTool,
  call,
  failWith,
  type Script,
  type ScriptCalls,
  type ScriptedCall,
  type ScriptedDecision,
  type ScriptedEntry,
  type ScriptedFailure,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedPace,
  type ScriptedPart,
  type ScriptedReply,
  type ScriptedText,
  type ScriptedThought,
  say,
  scriptedModel,
  stall,
  think,
} from "./scripted-model.ts";
export { rejectInvalidTranscripts } from "./transcript.ts";
export { type LogLine, type VirtualClock, type VirtualClockOptions, virtualClock } from "./virtual-clock.ts";
