/** Result of `verify`. Separate file, so that its users do not need the types of better-sqlite3. */

/** Damage found in the file. */
export interface Fault {
  /** Damaged thread; undefined for damage outside of threads. */
  readonly thread?: string;
  /** One sentence without its full stop. */
  readonly what: string;
}

/** Result of `verify`. */
export interface VerifyReport {
  readonly threads: number;
  readonly checkpoints: number;
  /** Number of artifact bodies. */
  readonly artifacts: number;
  /** Empty for an undamaged file. */
  readonly faults: readonly Fault[];
}
