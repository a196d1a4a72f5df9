/** Run of a simulated process. */
import { fork, getState, type RunHandle, type RunResult, recover, resume, run, type Store } from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import type { Chance } from "@statewright/testing";
import type { ExternalWorld } from "./external-world.ts";
import type { Invariants } from "./invariants/invariants.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { forkBranch, type SimulatedProgram, simulatedThread } from "./simulated-program.ts";
import type { SimulatedStore } from "./simulated-store.ts";

/** Process of the simulation with its store and its program. */
export interface ProgramProcess {
  readonly process: SimulatedProcess;
  readonly simulated: SimulatedStore;
  readonly program: SimulatedProgram;
  readonly kill: () => void;
}

/** Answers with which a process resumes: to open interrupts, or different answers to answered interrupts. */
export type AnswerKind = "open" | "late";

/** Parts of the simulation that a run needs. */
export interface RunContext {
  readonly branch: string;
  readonly chance: Chance | undefined;
  readonly invariants: Invariants;
  readonly findEffect: ExternalWorld["findEffect"];
  readonly trace: (line: string) => void;
}

/** Beginning of the reason of a request from another process. */
export const requestReason = "the simulation requests";

/** End of a run: the result, or the error of its promise. */
type RunEnd = { readonly result: RunResult<unknown> | undefined } | { readonly error: unknown };

/** Run that a process starts or resumes, as application code does at startup. */
export class ActiveRun {
  readonly owner: ProgramProcess;
  readonly #context: RunContext;
  #handle: RunHandle<unknown> | undefined;
  #end: RunEnd | undefined;

  constructor(owner: ProgramProcess, context: RunContext) {
    this.owner = owner;
    this.#context = context;
  }

  /** Handle of the run; undefined before the run has started. */
  get handle(): RunHandle<unknown> | undefined {
    return this.#handle;
  }

  /** End of the run; undefined while the run is active, and for a dead process. */
  get end(): RunEnd | undefined {
    return this.#end;
  }

  isFinished(): boolean {
    return this.#end !== undefined || !this.owner.process.isAlive();
  }

  /** Starts the thread, or resumes the thread with answers. Does not wait for the end. */
  start(answers: AnswerKind): void {
    const { process } = this.owner;
    const { trace } = this.#context;
    this.#startOrResume(answers).then(
      (result) => {
        trace(`process ${process.id} ends: ${result?.status}`);
        this.#end = { result };
      },
      (error: unknown) => {
        trace(`process ${process.id} fails: ${String(error)}`);
        this.#end = { error };
      },
    );
  }

  async #startOrResume(answers: AnswerKind): Promise<RunResult<unknown> | undefined> {
    const { program, simulated, process } = this.owner;
    const { graph, input } = program;
    const { store } = simulated;
    const { world } = process;
    const { branch, chance } = this.#context;
    const thread = simulatedThread;
    if (branch === forkBranch && (await store.head(thread, forkBranch)) === undefined) await forkThread(store, program);
    if ((await store.head(thread)) === undefined)
      return this.#watch(
        run(graph, { thread, store, world, key: "the-only-one", ...(input === undefined ? {} : { input }) }),
      );
    const row = await findNewestRun(store, branch);
    if (row?.status === "crashed" && chance?.flip(0.3) === true) {
      const handles = await recover({ store, graphs: [graph], world });
      const results = await Promise.all(handles.map((handle) => this.#watch(handle)));
      return results[0];
    }
    return this.#resume(answers);
  }

  async #resume(kind: AnswerKind): Promise<RunResult<unknown>> {
    const { program, simulated, process } = this.owner;
    const { branch, invariants, trace } = this.#context;
    const { store } = simulated;
    const { world } = process;
    const answers = kind === "late" ? this.#createLateAnswers() : await this.#createAnswers(store);
    trace(`process ${process.id} resumes ${JSON.stringify(answers)}`);
    const thread = simulatedThread;
    const result = await this.#watch(
      resume(program.graph, { thread, branch, store, world, answers, onPriorEffect: "reuse" }),
    );
    const durableAnswers = new Set(invariants.listAnswered(branch));
    const missingAnswers = Object.keys(answers).filter((id) => !durableAnswers.has(id));
    // A request that another process posted before ends the run, or pauses it, in place of the answers.
    const isRequested = result.status === "cancelled" && result.reason.startsWith(requestReason);
    if (missingAnswers.length > 0 && result.status !== "paused" && !isRequested)
      invariants.addViolation(
        "I8",
        `the answers to ${missingAnswers.join(" and ")} were accepted, and are not durable`,
      );
    if (kind === "late" && Object.keys(answers).length > 0) invariants.addViolation("I1", "a late answer was accepted");
    return result;
  }

  #watch(handle: RunHandle<unknown>): Promise<RunResult<unknown>> {
    this.#handle = handle;
    handle.on(this.#context.invariants.createListener(this.owner.process));
    return handle.result;
  }

  /** Answers all open interrupts, or some of them. */
  async #createAnswers(store: Store): Promise<Record<string, unknown>> {
    const { graph, answer } = this.owner.program;
    const { branch, chance, findEffect } = this.#context;
    const { interrupts } = await getState(graph, { store, thread: simulatedThread, branch });
    const interruptsToAnswer = interrupts.filter(() => chance === undefined || chance.flip(0.8));
    return Object.fromEntries(interruptsToAnswer.map((interrupt) => [interrupt.id, answer?.(interrupt, findEffect)]));
  }

  /** Late answers: different answers to interrupts that are already answered. */
  #createLateAnswers(): Record<string, unknown> {
    const { branch, chance, invariants } = this.#context;
    const answered = invariants.listAnswered(branch);
    return answered.length === 0 || chance === undefined ? {} : { [chance.pick(answered)]: { late: true } };
  }
}

/** Returns the newest run of a branch. */
export async function findNewestRun(store: Store, branch: string): Promise<RunRow | undefined> {
  if ((await store.head(simulatedThread, branch)) === undefined) return undefined;
  return (await store.runs({ thread: simulatedThread })).find((row) => row.branch === branch);
}

async function forkThread(store: Store, { graph, forkAt = 0 }: SimulatedProgram): Promise<void> {
  const checkpoints = (await store.history(simulatedThread, { branch: "main", limit: 1_000 })).toReversed();
  // The last checkpoint has no next task.
  const from = checkpoints[Math.floor(forkAt * (checkpoints.length - 1))];
  if (from !== undefined) await fork(graph, { store, thread: simulatedThread, at: from.id, name: forkBranch });
}
