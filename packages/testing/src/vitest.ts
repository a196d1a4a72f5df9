/** The test kit inside vitest: runs in the hands of a test, and matchers that look at transitions. */
import { addMatchers } from "./vitest/matchers.ts";

addMatchers();

// biome-ignore-start lint/performance/noBarrelFile: the entry of the package for vitest
export {
  type NodeTest,
  type NodeTestOptions,
  nodeTest,
  type ToolTest,
  type ToolTestOptions,
  toolTest,
} from "./kit/part-tests.ts";
export type { StartingPoint } from "./kit/start-at.ts";
export type { StateName } from "./kit/state-names.ts";
export {
  type Target,
  type Testable,
  type TestInput,
  type TestOptions,
  type TestRun,
  type TestRunOptions,
  type TestStatus,
  testRun,
} from "./kit/test-run.ts";
export type { Trace, TracedCall, TraceEntry } from "./kit/trace.ts";
export type { ExpectedCall, StatewrightMatchers } from "./vitest/matchers.ts";
// biome-ignore-end lint/performance/noBarrelFile: the entry of the package for vitest
