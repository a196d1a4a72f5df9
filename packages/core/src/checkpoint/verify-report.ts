/** Damage found in a store. */
export interface Fault {
  /** Damaged thread; undefined for damage outside of threads. */
  readonly thread?: string;
  /** A sentence without its full stop. */
  readonly what: string;
}

/** Result of `verify`. */
export interface VerifyReport {
  readonly threads: number;
  readonly checkpoints: number;
  /** Number of artifact bodies. */
  readonly artifacts: number;
  /** Empty for an undamaged store. */
  readonly faults: readonly Fault[];
}
