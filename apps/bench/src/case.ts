/**
 * Bench case: one kind of work, measured for Statewright, for a peer, and for the minimum that the platform allows.
 */
import type { Sample } from "./sample.ts";

/** `limit` is the same effect without any framework. The distance to the limit is the cost of a framework. */
export type Role = "ours" | "peer" | "limit";

export interface Case {
  /** Id of the budget in the project's design. */
  readonly id: string;
  readonly title: string;
  /** One unit of the work, as a noun. */
  readonly unit: string;
  /** Maximum CPU per unit, as measured on two idle cores. Only {@link Case.checks} fail a bench run. */
  readonly budget: { readonly cpuUs: number; readonly text: string };
  /**
   * Set for cases that write files. Each round then starts with an idle disk, without pending writes of another
   * contender.
   */
  readonly disk?: boolean;
  /** Units per round. */
  readonly size: number;
  /**
   * Set to run rounds without a forced collection in between, as in a long-running server. By default, garbage is
   * collected before each round, so that a round does not pay for garbage of other rounds; the collection also drops
   * the shapes and compiled code of finished runs, and the next round pays for new ones.
   */
  readonly steady?: boolean;
  /**
   * `work`: `size` is the number of units per round. `data`: a round is one unit, and `size` is the size of its data.
   * Default `work`.
   */
  readonly sizeKind?: "work" | "data";
  /**
   * Growth exponent above which the case fails for Statewright. Default: the threshold for work proportional to its
   * size.
   */
  readonly maxGrowth?: number;
  /** Distances are measured to the first contender with the role `limit`. */
  readonly contenders: readonly Contender[];
  readonly checks?: readonly Check[];
  readonly amounts?: readonly Amount[];
}

/** Ratio of two contenders that must hold in a single bench run on any machine. */
export interface Check {
  readonly subject: string;
  readonly baseline: string;
  readonly measure: "cpu" | "wall" | "bytes";
  readonly max: number;
}

/** Bytes of a unit of a contender that must hold in a single bench run: they do not depend on the machine. */
export interface Amount {
  readonly subject: string;
  readonly measure: "bytes";
  readonly max: number;
}

export interface Contender {
  readonly name: string;
  readonly role: Role;
  /** Units per round, for a contender too slow for the size of the case. Figures are per unit. */
  readonly size?: number;
  /** Sizes for the measurement of growth. */
  readonly growth?: readonly number[];
  readonly open: () => Work | Promise<Work>;
  /**
   * True for a contender that does its work in its own processes. The bench starts a process for every other
   * contender.
   */
  readonly ownProcesses?: true;
  /** Number of processes that share a round. The warm-up takes the CPU time of one process for each. Default 1. */
  readonly processes?: number;
}

/** Opened contender. */
export interface Work {
  /** Does `size` units of work. Work in another process returns its own measurement. */
  readonly run: (size: number) => undefined | Promise<Sample | undefined>;
  /** Bytes on disk after the last round, for all units of the round together. */
  readonly getBytes?: () => number | undefined;
  /** Short note on the last round. */
  readonly getNotes?: () => string;
  /** Sentence for the text below the table. */
  readonly getRemark?: () => string;
  /** Closes the contender. Returns the bytes per unit on disk, if `getBytes` is absent. */
  readonly close?: () => number | undefined | Promise<number | undefined>;
}

/** Returns the sizes 1x, 2x, 4x and 8x. */
export function listDoublings(size: number): readonly number[] {
  return [size, size * 2, size * 4, size * 8];
}
