/** Written checkpoints and sequence numbers of a simulated thread. */
import type { CheckpointRow, Commit, StoredEvent } from "@statewright/core/store";

/** Adds a violation of a rule. */
export type AddViolation = (rule: string, fact: string) => void;

/** Serializes a checkpoint for comparison. */
export function formatCheckpoint(row: object, deltas: readonly object[]): string {
  return JSON.stringify([
    Object.entries(row).sort(compareKeys),
    deltas.map((delta) => JSON.stringify(Object.entries(delta).sort(compareKeys))).sort(),
  ]);
}

function compareKeys([a]: [string, unknown], [b]: [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Checkpoints and sequence numbers, as written. */
export class CheckpointLog {
  readonly #addViolation: AddViolation;
  readonly #seqs = new Set<number>();
  readonly #checkpoints = new Map<number, string>();
  /** Step of the last checkpoint of each namespace. */
  readonly #heads = new Map<string, number>();
  /** Counted steps by branch and run. */
  readonly #stepCounts = new Map<string, number>();
  #lastSeq = 0;

  constructor(addViolation: AddViolation) {
    this.#addViolation = addViolation;
  }

  /** Serialized checkpoints by id. */
  get checkpoints(): ReadonlyMap<number, string> {
    return this.#checkpoints;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Returns true if an event with this sequence number is durable. */
  hasSeq(seq: number): boolean {
    return this.#seqs.has(seq);
  }

  /** Returns the step of the last checkpoint of a namespace. */
  getHeadStep(namespace: string | undefined): number | undefined {
    return namespace === undefined ? undefined : this.#heads.get(namespace);
  }

  recordCommit({ checkpoint, branch, events = [], seq }: Commit): void {
    if (checkpoint !== undefined) {
      const { row, deltas } = checkpoint;
      this.#recordSeq(row.seq);
      if (this.#checkpoints.has(row.id)) this.#addViolation("I5", `the checkpoint ${row.id} was written twice`);
      this.#recordCheckpoint(branch, row, deltas);
      this.#checkStepCount(branch, row);
    }
    for (const event of events) this.#recordSeq(event.seq);
    this.#lastSeq = Math.max(this.#lastSeq, seq);
  }

  /** Records the checkpoints written by a fork. */
  recordFork(events: readonly StoredEvent[]): void {
    for (const event of events) {
      if (!("checkpoint" in event)) continue;
      const { deltas, ...row } = event.checkpoint;
      this.#recordSeq(row.seq);
      this.#recordCheckpoint(row.branch, row, deltas);
      this.#lastSeq = Math.max(this.#lastSeq, row.seq);
    }
  }

  #recordSeq(seq: number): void {
    if (this.#seqs.has(seq)) this.#addViolation("I4", `two events have the sequence number ${seq}`);
    this.#seqs.add(seq);
  }

  #recordCheckpoint(branch: string, row: CheckpointRow, deltas: readonly object[]): void {
    this.#checkpoints.set(row.id, formatCheckpoint(row, deltas));
    this.#heads.set(branch, row.step);
  }

  #checkStepCount(branch: string, row: CheckpointRow): void {
    const { steps = 0 } = JSON.parse(row.control) as { readonly steps?: number };
    const counter = `${branch} ${row.run}`;
    const previous = this.#stepCounts.get(counter) ?? 0;
    if (!branch.includes("/") && steps < previous)
      this.#addViolation("I10", `the run counts ${steps} steps after ${previous}`);
    this.#stepCounts.set(counter, steps);
  }
}
