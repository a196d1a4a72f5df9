/** The test kit of Statewright: models, clocks, faults and crashes that are real implementations of the contracts. */

export { type CrashOutcome, type CrashScript, killAt, killInTurn, type ProcessLife, untilDone } from "./crash/lives.ts";
export { anotherLife, crashPoint, crashPoints, logEffect } from "./crash/points.ts";
export { type FaultPlan, faults, type ModelFaults, type StoreFaults, type ToolFaults } from "./faults.ts";
export { type LoadedRun, type LoadReport, loadRuns } from "./kit/load-runs.ts";
export { type RecordedModel, type RecordedModelOptions, recordedModel } from "./recorded-model.ts";
export type { RecordingMode } from "./recording/recording.ts";
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
export type { FaultKind } from "./simulation/faults.ts";
export type { ActOptions, Outside } from "./simulation/outside.ts";
export {
  type ProgramOf,
  type SimulatedProgram,
  type SimulatedStores,
  type SimulationOptions,
  type Story,
  simulate,
  uninterrupted,
} from "./simulation/simulate.ts";
export { withoutLost } from "./simulation/without-lost.ts";
export { modelThatRefusesBadTranscripts } from "./transcript.ts";
export { type LogLine, type VirtualClock, type VirtualClockOptions, virtualClock } from "./virtual-clock.ts";
