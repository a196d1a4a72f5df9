/** Test kit for vitest: test runs, and matchers for transitions. */
import { trackPendingWork } from "./pending-work.ts";
import { addCrashMatcher } from "./vitest/crash-matcher.ts";
import { addMatchers } from "./vitest/matchers.ts";
import { recordCoverage } from "./vitest/record-coverage.ts";

// Installed at import, so that child processes started before the first run, such as a plugin for all tests of a
// file, are tracked.
trackPendingWork();
addMatchers();
addCrashMatcher();
recordCoverage();

// biome-ignore-start lint/performance/noBarrelFile: the entry of the package for vitest
export {
  type NodeTest,
  type NodeTestOptions,
  nodeTest,
  type ToolTest,
  type ToolTestOptions,
  toolTest,
} from "./node/part-tests.ts";
export type { StateName } from "./node/state-names.ts";
export { type EveryOrderOptions, everyOrder, type OrderReport } from "./order/every-order.ts";
export type { Order } from "./order/order.ts";
export { testRun } from "./run/create-test-run.ts";
export type { StartingPoint } from "./run/start-checkpoint.ts";
export type { GraphFactory, Testable, TestInput, TestOptions, TestRunOptions } from "./run/test-options.ts";
export type { SendOptions, SentEvent, SentMessage, Target, TestRun, TestRunOf, TestStatus } from "./run/test-run.ts";
export type { Trace, TracedCall, TracedEffect, TraceEntry } from "./trace/trace.ts";
export { traceText } from "./trace/trace-text.ts";
export type { CrashMatchers } from "./vitest/crash-matcher.ts";
export type { BodyName } from "./vitest/effects.ts";
export { type StatewrightMatchers, traceSerializer } from "./vitest/matchers.ts";
export type { ResumeIdenticallyOptions } from "./vitest/resumes.ts";
export type { CalledToolsOptions, CallMode, ExpectedCall } from "./vitest/tool-calls.ts";
// biome-ignore-end lint/performance/noBarrelFile: the entry of the package for vitest
