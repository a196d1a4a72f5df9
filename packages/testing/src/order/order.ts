import type { TestRun } from "../run/test-run.ts";

/** Order of completion of concurrent work; pass it to `testRun` as `order`. */
export interface Order {
  /** Blocks a node body, a step, a model or a tool until the order releases the work. Work of a dead process is never released. */
  readonly gate: (point: string, isAlive: () => boolean) => Promise<void>;
  /** Releases the next waiting work; returns false when nothing waits. */
  readonly release: () => boolean;
  /** Registers the run of this order, for the failure message. */
  readonly watch: (run: TestRun) => void;
}
