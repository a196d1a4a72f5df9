import type { Case } from "./case.ts";
import type { Leaks } from "./leaks.ts";
import type { Load } from "./load/load.ts";
import type { Measurement } from "./measure.ts";
import type { RetainedHeap } from "./retained-heap.ts";

/** Measurements of one case, with the facts of the case that a report shows. */
export interface CaseReport {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly budget: Case["budget"];
  readonly checks: NonNullable<Case["checks"]>;
  readonly amounts?: NonNullable<Case["amounts"]>;
  readonly maxGrowth?: number;
  readonly contenders: readonly Measurement[];
}

/** Measurements of a bench run and their environment. */
export interface Report {
  readonly date: string;
  readonly command: string;
  readonly machine: string;
  readonly versions: string;
  readonly peers: readonly string[];
  readonly cases: readonly CaseReport[];
  readonly leaks: Leaks | undefined;
  readonly retainedHeap: RetainedHeap | undefined;
  readonly load: Load | undefined;
}
