/** What `verify` tells of a file. In a file of its own, so that its users need no types of the library below. */

/** Something that is not what was written. */
export interface Fault {
  /** Absent where it is the file as a whole. */
  readonly thread?: string;
  /** One sentence without its full stop. */
  readonly what: string;
}

/** What `verify` saw. */
export interface VerifyReport {
  readonly threads: number;
  readonly checkpoints: number;
  /** Bodies of artifacts. */
  readonly artifacts: number;
  /** Empty when all is what was written. */
  readonly faults: readonly Fault[];
}
