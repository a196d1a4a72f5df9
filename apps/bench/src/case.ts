/** A case: one kind of work, done by us, by a peer, and by the bare minimum that the platform allows. */
import type { Sample } from "./measure.ts";

/** `limit` is the same effect without any framework: the distance to it is what a framework costs. */
export type Role = "ours" | "peer" | "limit";

export interface Case {
  /** The number of the budget in the project's design. */
  readonly id: string;
  readonly title: string;
  /** What one unit of the work is. */
  readonly unit: string;
  /** Most CPU for one unit, as seen on two quiet cores; what binds is {@link Case.checks}. */
  readonly budget: { readonly cpuUs: number; readonly text: string };
  /** Files are written: each round begins with a quiet disk, so that nobody waits for what another left to be written. */
  readonly disk?: boolean;
  /** Units in a round. */
  readonly size: number;
  /**
   * Rounds begin as the round before left the process, as in one that serves. Otherwise a collection is forced before each, so
   * that nobody pays for what another left; with it go shapes and compiled code of a run that is over, and come again.
   */
  readonly steady?: boolean;
  /** `data`: a round is one unit, and `size` is that of the data that it works on. Default `work`: so many units a round. */
  readonly sizeOf?: "work" | "data";
  /** The exponent above which the growth of ours fails, where it is another than for work that grows with its size. */
  readonly steepest?: number;
  /** The first limit is the one that distances are measured to. */
  readonly contenders: readonly Contender[];
  readonly checks?: readonly Check[];
}

/** A ratio that must hold in one run of the bench, whatever the machine. */
export interface Check {
  readonly of: string;
  readonly to: string;
  readonly measure: "cpu" | "wall" | "bytes";
  readonly atMost: number;
}

export interface Contender {
  readonly name: string;
  readonly role: Role;
  /** Units in a round where the case's would take too long; figures are by unit. */
  readonly size?: number;
  /** Sizes at which growth is measured. */
  readonly growth?: readonly number[];
  readonly open: () => Work | Promise<Work>;
  /** Its work is done by processes of its own; the others get one. */
  readonly elsewhere?: true;
}

/** A contender, ready. */
export interface Work {
  /** Do `size` units; work in another process measures itself. */
  readonly run: (size: number) => undefined | Promise<Sample | undefined>;
  /** Bytes that the last round left on disk, all units together. */
  readonly bytes?: () => number | undefined;
  /** What else there is to say of the last round, in a few words. */
  readonly notes?: () => string;
  /** A sentence that stands under the table. */
  readonly remark?: () => string;
  /** End, and say how many bytes one unit left on disk, where `bytes` does not. */
  readonly close?: () => number | undefined | Promise<number | undefined>;
}

/** Sizes of 1x, 2x, 4x and 8x. */
export function doublings(size: number): readonly number[] {
  return [size, size * 2, size * 4, size * 8];
}
