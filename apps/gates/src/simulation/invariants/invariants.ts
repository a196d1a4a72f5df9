/** Invariants of a simulation, checked at every durable write, every emitted event and every external call. */
import type { EffectClass, RunEvent } from "@statewright/core";
import type { Commit, RunRow, StoredEvent } from "@statewright/core/store";
import type { SimulatedProcess } from "../simulated-process.ts";
import { AnswerLog } from "./answer-log.ts";
import { CheckpointLog } from "./checkpoint-log.ts";
import { EffectLog } from "./effect-log.ts";
import { createEventListener } from "./event-listener.ts";

/** Thread, and the consequences that the injected faults allow. */
export interface InvariantsOptions {
  readonly thread: string;
  /** Returns true if an effect may be in doubt. */
  readonly canBeInDoubt: () => boolean;
  /** Returns true if a process may release the thread without recorded results. */
  readonly canLoseResults: () => boolean;
}

/** Owner of the thread: the process with the current claim. */
interface ThreadOwner {
  readonly process: SimulatedProcess;
  readonly epoch: number;
}

/** Checker of one thread: receives what the processes write, emit and call. */
export class Invariants {
  readonly #canLoseResults: () => boolean;
  readonly #violations: string[] = [];
  readonly #checkpoints: CheckpointLog;
  readonly #effects: EffectLog;
  readonly #answers: AnswerLog;
  readonly #attempts = new Map<string, { readonly attempt: number; readonly epoch: number }>();
  readonly #cutOff = new Set<SimulatedProcess>();
  #owner: ThreadOwner | undefined;

  constructor({ thread, canBeInDoubt, canLoseResults }: InvariantsOptions) {
    this.#canLoseResults = canLoseResults;
    this.#checkpoints = new CheckpointLog(this.addViolation);
    this.#effects = new EffectLog(thread, this.#checkpoints, this.addViolation);
    this.#answers = new AnswerLog(canBeInDoubt, this.addViolation);
  }

  get violations(): readonly string[] {
    return this.#violations;
  }

  readonly addViolation = (rule: string, fact: string): void => {
    this.#violations.push(`${rule} ${fact}`);
  };

  /** Checkpoints as written, by id. */
  get checkpoints(): ReadonlyMap<number, string> {
    return this.#checkpoints.checkpoints;
  }

  get lastSeq(): number {
    return this.#checkpoints.lastSeq;
  }

  /** Number of external calls whose result has reached a process. */
  get finishedCallCount(): number {
    return this.#effects.finishedCallCount;
  }

  /** Lists the ids of interrupts with a durable answer. */
  listAnswered(branch: string): readonly string[] {
    return this.#answers.list(branch);
  }

  /** Returns true if another process has taken the thread from a living process. */
  wasCutOff(process: SimulatedProcess): boolean {
    return this.#cutOff.has(process);
  }

  onClaim(process: SimulatedProcess, epoch: number): void {
    if (this.#owner?.process.isAlive() === true)
      this.addViolation("I9", "a thread with a living owner was claimed by another process");
    this.#owner = { process, epoch };
  }

  /** Takes the thread from its living owner, as when a lease expires. */
  takeThread(): ThreadOwner | undefined {
    const owner = this.#owner;
    if (owner?.process.isAlive() !== true) return undefined;
    this.#cutOff.add(owner.process);
    this.#owner = undefined;
    return owner;
  }

  /** Called for a durable write; `finishedCalls` is the number of finished external calls at the request. */
  onCommit(process: SimulatedProcess, commit: Commit, finishedCalls: number): void {
    if (this.#owner?.process !== process || this.#owner.epoch !== commit.epoch)
      this.addViolation(
        "I9",
        `a write under the epoch ${commit.epoch} came from a process that does not own the thread`,
      );
    this.#checkpoints.recordCommit(commit);
    this.#effects.recordCommit(commit);
    this.#answers.recordCommit(commit);
    if (commit.run !== undefined) this.#checkAttempt(commit.run, commit);
    if (commit.release !== true) return;
    this.#owner = undefined;
    if (!this.#canLoseResults()) this.#effects.checkRecorded(process, finishedCalls);
  }

  /** Called for the checkpoints written by a fork. */
  onFork(events: readonly StoredEvent[]): void {
    this.#checkpoints.recordFork(events);
  }

  /** Called before an external call. */
  onCallStart(process: SimulatedProcess, key: string, effect: EffectClass): void {
    if (this.#cutOff.has(process) && effect !== "once") return;
    this.#effects.checkStart(key, effect);
  }

  /** Called when an external call has returned to a process. */
  onCallReturn(process: SimulatedProcess, key: string): void {
    this.#effects.recordReturn(process, key);
  }

  /** Creates an event listener for a run of a process. */
  createListener(process: SimulatedProcess): (event: RunEvent) => void {
    const listener = createEventListener({
      checkpoints: this.#checkpoints,
      effects: this.#effects,
      addViolation: this.addViolation,
    });
    return (event) => {
      if (process.isAlive()) listener(event);
    };
  }

  /** Each owner that continues a run counts an attempt; one that only handles a request continues nothing. */
  #checkAttempt({ id, attempt }: Pick<RunRow, "id" | "attempt">, { epoch, handledRequests }: Commit): void {
    const before = this.#attempts.get(id);
    const isResumed = before !== undefined && before.epoch !== epoch && handledRequests === undefined;
    if (before !== undefined && attempt < before.attempt + (isResumed ? 1 : 0))
      this.addViolation("I10", `the run ${id} has attempt ${attempt} after ${before.attempt}`);
    this.#attempts.set(id, { attempt, epoch });
  }
}
