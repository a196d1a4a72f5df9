/** The test kit of Statewright: models, clocks, faults and crashes that are real implementations of the contracts. */

export type { CrashFinding } from "./crash/crash-findings.ts";
export { type CrashMatrixOptions, crashMatrix } from "./crash/crash-matrix.ts";
export { type CrashProgram, type CrashProgramOf, crashProgram } from "./crash/crash-program.ts";
export type { CrashedAt, CrashFindingAt, CrashMatrix } from "./crash/crash-report.ts";
export type { CrashOutside } from "./crash/external-world.ts";
export {
  type CrashOutcome,
  type CrashScript,
  killAt,
  killInTurn,
  type ProcessLife,
  untilDone,
} from "./crash/kill-at.ts";
export { anotherLife, crashPoint, crashPoints, logEffect } from "./crash/points.ts";
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
export { type GraphPath, type PathsOptions, pathsOf } from "./paths/list-paths.ts";
export type { NodeOutcome, PathEvent } from "./paths/path-event.ts";
export type { PathRunOptions, PathTool } from "./paths/run-path.ts";
export { type RecordedModel, type RecordedModelOptions, recordedModel } from "./recorded-model.ts";
export type { RecordingMode } from "./recording/recording.ts";
export { type LoadedRun, type LoadReport, loadRuns } from "./run/load-runs.ts";
export {
  type CallsOf,
  call,
  failWith,
  type Script,
  type ScriptedCall,
  type ScriptedDecision,
  type ScriptedEntry,
  type ScriptedFailure,
  type ScriptedModel,
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
export { type Chance, chanceOf } from "./simulation/chance.ts";
export type { ActOptions, Outside } from "./simulation/external-world.ts";
export type { FaultKind } from "./simulation/faults.ts";
export { withoutLost } from "./simulation/omit-failed-attempts.ts";
export {
  type ProgramOf,
  type SimulatedProgram,
  type SimulatedStores,
  type SimulationOptions,
  type Story,
  simulate,
  uninterrupted,
} from "./simulation/simulate.ts";
export { modelThatRefusesBadTranscripts } from "./transcript.ts";
export { type LogLine, type VirtualClock, type VirtualClockOptions, virtualClock } from "./virtual-clock.ts";
