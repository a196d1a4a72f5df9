/** Execution of one simulation: a thread, its processes one after another, and the faults injected into them. */
import { getState, isStatewrightError } from "@statewright/core";
import type { Chance } from "@statewright/testing";
import { ActiveRun, type AnswerKind, findNewestRun, type ProgramProcess, requestReason } from "./active-run.ts";
import { createLedger, type ExternalWorld, type Ledger } from "./external-world.ts";
import type { Fault, FaultKind, PlannedFault } from "./faults.ts";
import { Invariants } from "./invariants/invariants.ts";
import { ProgramSlots } from "./program-slots.ts";
import { readNamespaces } from "./read-namespaces.ts";
import { describeError, isExcused } from "./run-errors.ts";
import { Scheduler } from "./scheduler.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { forkBranch, type ProgramFactory, simulatedThread } from "./simulated-program.ts";
import { createSimulatedStore } from "./simulated-store.ts";
import { createMemoryStores, type SimulatedStores } from "./simulated-stores.ts";
import type { SimulationReport } from "./simulation-report.ts";

/** Limit of processes: a finite number of faults needs fewer. */
const maxProcesses = 60;
const maxEvents = 20_000;

/** Program, faults and stores of one simulation. */
export interface SimulationSetup {
  readonly factory: ProgramFactory;
  readonly seed: number;
  /** Source of decisions; undefined runs all work in scheduling order. */
  readonly chance: Chance | undefined;
  /** Faults in the order of their injection. */
  readonly plannedFaults: readonly PlannedFault[];
  /** Default: in memory. */
  readonly stores?: (() => SimulatedStores) | undefined;
  readonly trace?: ((line: string) => void) | undefined;
}

type SimulationEnd = SimulationReport["end"];

/** Simulation of a program on one thread. `run` may be called once. */
export class Simulation {
  readonly #chance: Chance | undefined;
  readonly #trace: (line: string) => void;
  readonly #scheduler: Scheduler;
  readonly #stores: SimulatedStores;
  readonly #slots: ProgramSlots;
  readonly #ledger: Ledger = createLedger();
  readonly #invariants: Invariants;
  readonly #pendingFaults: PlannedFault[];
  readonly #injectedFaults: Partial<Record<FaultKind, number>> = {};
  #branch = "main";
  #processCount = 0;
  #deathCount = 0;
  /** Number of next external calls that fail. */
  #pendingCallFailures = 0;
  #activeRuns: ActiveRun[] = [];
  /** Living process that resumes the thread next; undefined starts a new process. */
  #survivor: ProgramProcess | undefined;

  constructor(setup: SimulationSetup) {
    const { factory, seed, chance, plannedFaults, stores = createMemoryStores, trace = ignoreLine } = setup;
    this.#chance = chance;
    this.#trace = trace;
    this.#scheduler = new Scheduler(chance, seed);
    this.#stores = stores();
    this.#slots = new ProgramSlots(factory);
    this.#pendingFaults = [...plannedFaults];
    this.#invariants = new Invariants({
      thread: simulatedThread,
      canBeInDoubt: () => this.#deathCount + this.#countFaults("take", "store", "cancel") > 0,
      canLoseResults: () => this.#countFaults("store", "cancel", "external") > 0,
    });
  }

  /** Runs processes until the program ends. */
  async run(): Promise<SimulationReport> {
    try {
      for (;;) {
        const end = (await this.#findEnd()) ?? (await this.#runProcesses());
        if (end !== undefined) return await this.#createReport(end);
      }
    } finally {
      this.#slots.release();
      await this.#stores.dispose();
    }
  }

  /** Returns the end of the program, if the run has ended or exceeds a limit. Moves on to the fork after `main`. */
  async #findEnd(): Promise<SimulationEnd | undefined> {
    let status = await this.#readStatus();
    if (status === "done" && this.#branch === "main" && this.#slots.getProgram().forkAt !== undefined) {
      this.#branch = forkBranch;
      status = await this.#readStatus();
    }
    if (status === "cancelled" && this.#injectedFaults.cancel === undefined)
      this.#invariants.addViolation("I6", "the run was cancelled without a request");
    if (status === "done" || status === "cancelled") return status;
    const ticks = this.#scheduler.ticks;
    if (this.#processCount <= maxProcesses && ticks <= maxEvents) return undefined;
    this.#invariants.addViolation(
      "I6",
      `after ${this.#processCount} processes and ${ticks} events the run is still ${status ?? "not started"}`,
    );
    return "stuck";
  }

  async #readStatus() {
    return (await findNewestRun(this.#stores.getReader(), this.#branch))?.status;
  }

  /** Runs one process, and the processes that faults add, until all their runs have finished. */
  async #runProcesses(): Promise<SimulationEnd | undefined> {
    const owner = this.#survivor?.process.isAlive() === true ? this.#survivor : this.#spawnProcess();
    const main = this.#startRun(owner, "open");
    const outcome = await this.#scheduler.runUntil(
      () => this.#areRunsFinished() || this.#scheduler.ticks > maxEvents,
      (tick) => this.#injectDueFaults(tick),
    );
    if (outcome === "idle" && !this.#areRunsFinished()) {
      this.#invariants.addViolation("I6", "a run is active, and no event is possible");
      return "stuck";
    }
    for (const run of this.#activeRuns) this.#checkError(run);
    if (this.#invariants.violations.length > 0) return "stuck";
    this.#endProcesses(main);
    return undefined;
  }

  #areRunsFinished(): boolean {
    return this.#activeRuns.every((run) => run.isFinished());
  }

  /** Adds a violation for a failed run, unless the injected faults may cause its error. */
  #checkError({ owner, end }: ActiveRun): void {
    if (end === undefined || !("error" in end)) return;
    const { error } = end;
    const faults = this.#injectedFaults;
    if (!isExcused(error, { faults, isCutOff: this.#invariants.wasCutOff(owner.process) }))
      this.#invariants.addViolation("I6", `a run failed: ${describeError(error)}`);
  }

  /** Kills the processes; the process of a successful main run may survive. */
  #endProcesses(main: ActiveRun): void {
    const survives =
      main.end !== undefined && "result" in main.end && (this.#chance === undefined || this.#chance.flip(0.5));
    for (const { owner } of this.#activeRuns) if (!survives || owner !== main.owner) owner.kill();
    this.#survivor = survives ? main.owner : undefined;
    this.#activeRuns = [];
  }

  #spawnProcess(): ProgramProcess {
    this.#processCount += 1;
    const process = this.#scheduler.spawn();
    const opened = this.#stores.open();
    const kill = (): void => {
      if (!process.isAlive()) return;
      this.#trace(`process ${process.id} dies`);
      process.kill();
      opened.crash();
    };
    const simulated = createSimulatedStore({
      owner: opened.store,
      process,
      invariants: this.#invariants,
      kill: () => {
        this.#deathCount += 1;
        kill();
      },
      trace: this.#trace,
    });
    return { process, simulated, program: this.#slots.assign(process, this.#connectExternalWorld(process)), kill };
  }

  #connectExternalWorld(process: SimulatedProcess): ExternalWorld {
    return this.#ledger.connect(process, {
      onStart: (key, effect) => {
        this.#trace(`process ${process.id} calls ${key}`);
        this.#invariants.onCallStart(process, key, effect);
      },
      onReturn: (key) => this.#invariants.onCallReturn(process, key),
      shouldFail: () => this.#pendingCallFailures > 0 && this.#pendingCallFailures-- > 0,
      isCutOff: () => this.#invariants.wasCutOff(process),
    });
  }

  #startRun(owner: ProgramProcess, answers: AnswerKind): ActiveRun {
    const run = new ActiveRun(owner, {
      branch: this.#branch,
      chance: this.#chance,
      invariants: this.#invariants,
      findEffect: this.#ledger.findEffect,
      trace: this.#trace,
    });
    run.start(answers);
    this.#activeRuns.push(run);
    return run;
  }

  #countFaults(...kinds: readonly FaultKind[]): number {
    return kinds.reduce((sum, kind) => sum + (this.#injectedFaults[kind] ?? 0), 0);
  }

  #injectDueFaults(tick: number): void {
    if (tick > maxEvents) return;
    for (let next = this.#pendingFaults[0]; next !== undefined && next.at <= tick; next = this.#pendingFaults[0]) {
      this.#pendingFaults.shift();
      const livingRuns = this.#activeRuns.filter((run) => !run.isFinished());
      if (this.#chance === undefined || livingRuns.length === 0) continue;
      this.#injectFault(next.fault, this.#chance.pick(livingRuns));
    }
  }

  #injectFault(fault: Fault, { owner, handle }: ActiveRun): void {
    this.#trace(`fault ${JSON.stringify(fault)} at ${this.#scheduler.ticks}`);
    this.#injectedFaults[fault.kind] = this.#countFaults(fault.kind) + 1;
    switch (fault.kind) {
      case "kill":
        this.#deathCount += 1;
        owner.kill();
        return;
      case "die":
        owner.simulated.faults.push(fault.when === "before" ? "die before" : "die after");
        return;
      case "store":
        for (let remaining = fault.times; remaining > 0; remaining--) owner.simulated.faults.push(fault.error);
        return;
      case "external":
        this.#pendingCallFailures += 1;
        return;
      case "intrude": {
        const intruder = this.#spawnProcess();
        this.#startRun(intruder, this.#chance?.flip(0.5) === true ? "late" : "open");
        return;
      }
      case "take":
        this.#takeThread();
        this.#startRun(this.#spawnProcess(), "open");
        return;
      case "clock":
        this.#scheduler.jumpWallClock(fault.ms);
        return;
      case "drain":
        if (this.#isEven()) handle?.drain("the simulation drains");
        else this.#request("pause");
        return;
      case "cancel":
        if (this.#isEven()) handle?.cancel("the simulation cancels");
        else this.#request("cancel");
    }
  }

  /** Half of the drains and cancels are requests of another process. */
  #isEven(): boolean {
    return this.#scheduler.ticks % 2 === 0;
  }

  /** Adds a request of the run of the branch; before the first commit there is none. */
  #request(kind: "cancel" | "pause"): void {
    const reason = `${requestReason} a ${kind}`;
    const id = `request-${this.#scheduler.ticks}`;
    const write = { thread: simulatedThread, branch: this.#branch, id, kind, reason, at: this.#scheduler.ticks };
    this.#stores
      .getReader()
      .request(write)
      .catch((error: unknown) => {
        const codes = ["unknown_thread", "unknown_branch", "unknown_run"] as const;
        if (codes.some((code) => isStatewrightError(error, code))) return;
        this.#invariants.addViolation("I6", `a request was refused: ${describeError(error)}`);
      });
  }

  /** Releases the thread of its living owner without the knowledge of the owner. */
  #takeThread(): void {
    const previousOwner = this.#invariants.takeThread();
    const holder = this.#activeRuns.find(({ owner }) => owner.process === previousOwner?.process);
    if (previousOwner === undefined || holder === undefined) return;
    holder.owner.simulated.commitDirectly({
      thread: simulatedThread,
      branch: this.#branch,
      epoch: previousOwner.epoch,
      seq: this.#invariants.lastSeq,
      release: true,
    });
  }

  async #createReport(end: SimulationEnd): Promise<SimulationReport> {
    const { graph } = this.#slots.getProgram();
    const store = this.#stores.getReader();
    const namespaces = await readNamespaces(store, this.#invariants);
    const isKnown = (await store.head(simulatedThread)) !== undefined;
    const saved = isKnown ? await getState(graph, { store, thread: simulatedThread, branch: this.#branch }) : undefined;
    const { effects } = this.#ledger;
    return {
      end,
      state: saved?.state,
      namespaces,
      effects: countEffects(this.#ledger),
      once: new Set(effects.filter(({ effect }) => effect === "once").map(({ key }) => key)),
      processes: this.#processCount,
      deaths: this.#deathCount,
      faults: this.#injectedFaults,
      events: this.#scheduler.ticks,
      violations: this.#invariants.violations,
    };
  }
}

function countEffects({ effects }: Ledger): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of effects) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

function ignoreLine(): void {
  // Default trace: discards the log.
}
