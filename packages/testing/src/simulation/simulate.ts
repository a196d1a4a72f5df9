/**
 * Simulations: a program runs with process deaths, failing writes, competing owners, clock jumps, and late or
 * duplicate answers, in an order determined by one seed. The result must equal the result of a run without faults.
 */
import {
  fork,
  type Graph,
  getState,
  isStatewrightError,
  memoryStore,
  type OpenInterrupt,
  type RunHandle,
  type RunResult,
  recover,
  resume,
  run,
  type Store,
} from "@statewright/core";
import type { RunRow } from "@statewright/core/store";
import { type Chance, createChance } from "./chance.ts";
import { createLedger, type ExternalWorld, type Ledger } from "./external-world.ts";
import { type Fault, type FaultKind, planFaults } from "./faults.ts";
import { createInvariants, formatCheckpoint, type Invariants } from "./invariants.ts";
import { omitFailedAttempts } from "./omit-failed-attempts.ts";
import { createScheduler, type SimulatedProcess } from "./scheduler.ts";
import { createSimulatedStore, type SimulatedStore } from "./simulated-store.ts";

/** Simulated program: a graph, its input, and a function that answers its interrupts. */
export interface SimulatedProgram {
  readonly graph: Graph;
  readonly input?: object;
  /** Answers an interrupt; equal interrupts must get equal answers. */
  readonly answer?: (interrupt: OpenInterrupt, findEffect: ExternalWorld["findEffect"]) => unknown;
  /** Forks a finished run from one of its checkpoints: relative position, from 0 for the first checkpoint to 1. */
  readonly forkAt?: number;
}

/** Creates the program for each process, as at process start. All external effects must go through `outside`. */
export type ProgramFactory = (outside: ExternalWorld) => SimulatedProgram;

/** Stores of a simulation. */
export interface SimulatedStores {
  /** Opens the store for a new process; `crash` simulates the death of that process. */
  readonly open: () => { readonly store: Store; readonly crash: () => void };
  /** Returns a store for reading the current threads. */
  readonly getReader: () => Store;
  readonly dispose: () => void;
}

/** Options of `simulate`. */
export interface SimulationOptions {
  readonly seed: number;
  /** Allowed kinds of faults; all by default. */
  readonly faults?: readonly FaultKind[];
  /** Default: in memory. */
  readonly stores?: () => SimulatedStores;
  /** Report of the run without faults, for the comparison; computed when absent. */
  readonly baseline?: SimulationReport;
  /** Receives a log of the simulation, for debugging a violation. */
  readonly trace?: (line: string) => void;
}

/** Report of a simulation. */
export interface SimulationReport {
  readonly end: "done" | "cancelled" | "in doubt" | "stuck";
  readonly state: unknown;
  /** Checkpoints of each namespace: step, nodes and next tasks. */
  readonly namespaces: Readonly<Record<string, readonly string[]>>;
  /** Number of external effects by key. */
  readonly effects: ReadonlyMap<string, number>;
  readonly once: ReadonlySet<string>;
  readonly processes: number;
  readonly deaths: number;
  /** Injected faults by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly events: number;
  /** Violated invariants; each text starts with the id of the invariant. */
  readonly violations: readonly string[];
}

const allFaults: readonly FaultKind[] = [
  "kill",
  "die",
  "store",
  "outside",
  "intrude",
  "take",
  "clock",
  "drain",
  "cancel",
];

const thread = "simulated";

/** Branch of the fork. */
const forkBranch = "another";

/** Limit of processes: a finite number of faults needs fewer. */
const maxProcesses = 60;
const maxEvents = 20_000;

/** Runs a program without faults, in scheduling order. */
export function runUninterrupted(program: ProgramFactory): Promise<SimulationReport> {
  return runSimulation(program, { seed: 1 }, undefined, []);
}

/** Runs one simulation and compares it with the run without faults. */
export async function simulate(program: ProgramFactory, options: SimulationOptions): Promise<SimulationReport> {
  const { seed, faults = allFaults } = options;
  const baseline = options.baseline ?? (await runUninterrupted(program));
  if (baseline.violations.length > 0 || baseline.end !== "done") return baseline;
  const chance = createChance(seed);
  const plan = planFaults(chance, baseline.events, faults);
  const report = await runSimulation(program, options, chance, plan);
  return { ...report, violations: [...report.violations, ...listDifferences(report, baseline)] };
}

/**
 * Program instance, reused by one process after another: building a graph costs more than running it. Pending work of
 * a dead process never resolves, so that the next process is not affected.
 */
interface ProgramSlot {
  readonly program: SimulatedProgram;
  holder: SimulatedProcess | undefined;
  outside: ExternalWorld | undefined;
}

const slotsByProgram: WeakMap<ProgramFactory, ProgramSlot[]> = new WeakMap();

function getSlots(factory: ProgramFactory): ProgramSlot[] {
  const known = slotsByProgram.get(factory);
  if (known !== undefined) return known;
  const slots: ProgramSlot[] = [];
  slotsByProgram.set(factory, slots);
  return slots;
}

function createSlot(factory: ProgramFactory): ProgramSlot {
  let slot: ProgramSlot | undefined;
  const getExternalWorld = (): ExternalWorld => {
    if (slot?.outside === undefined)
      throw new Error("a program used its external world before a process ran the program");
    return slot.outside;
  };
  const program = factory({
    performEffect: (key, work, options) => getExternalWorld().performEffect(key, work, options),
    findEffect: (key) => getExternalWorld().findEffect(key),
  });
  slot = { program, holder: undefined, outside: undefined };
  return slot;
}

/** Process of the simulation with its program. */
interface ProgramProcess {
  readonly process: SimulatedProcess;
  readonly simulated: SimulatedStore;
  readonly program: SimulatedProgram;
  readonly kill: () => void;
}

/** Active run of a process. */
interface ActiveRun {
  readonly owner: ProgramProcess;
  handle: RunHandle<unknown> | undefined;
  end: { readonly result: RunResult<unknown> } | { readonly error: unknown } | undefined;
}

async function runSimulation(
  factory: ProgramFactory,
  { seed, stores = createMemoryStores, trace = ignore }: SimulationOptions,
  chance: Chance | undefined,
  planned: ReturnType<typeof planFaults>,
): Promise<SimulationReport> {
  const scheduler = createScheduler(chance, seed);
  const invariants = createInvariants(
    thread,
    () => deathCount + (injectedFaults.take ?? 0) + (injectedFaults.store ?? 0) + (injectedFaults.cancel ?? 0) > 0,
    () => (injectedFaults.store ?? 0) + (injectedFaults.cancel ?? 0) + (injectedFaults.outside ?? 0) > 0,
  );
  const ledger = createLedger();
  const threadStores = stores();
  const slots = getSlots(factory);
  const usedSlots: ProgramSlot[] = [];
  const pendingFaults = [...planned];
  const injectedFaults: Partial<Record<FaultKind, number>> = {};
  let processCount = 0;
  let deathCount = 0;
  let pendingCallFailures = 0;
  let activeRuns: ActiveRun[] = [];
  let branch = "main";

  function spawnProcess(): ProgramProcess {
    processCount += 1;
    const process = scheduler.spawn();
    const owner = threadStores.open();
    const kill = (): void => {
      if (!process.isAlive()) return;
      trace(`process ${process.id} dies`);
      process.kill();
      owner.crash();
    };
    const simulated = createSimulatedStore(
      owner.store,
      process,
      invariants,
      () => {
        deathCount += 1;
        kill();
      },
      trace,
    );
    const slot = usedSlots.find((each) => !each.holder?.isAlive()) ?? takeSlot();
    slot.holder = process;
    slot.outside = ledger.connect(process, {
      onStart: (key, effect) => {
        trace(`process ${process.id} calls ${key}`);
        invariants.onCallStart(process, key, effect);
      },
      onReturn: (key) => invariants.onCallReturn(process, key),
      shouldFail: () => pendingCallFailures > 0 && pendingCallFailures-- > 0,
      isCutOff: () => invariants.wasCutOff(process),
    });
    return { process, simulated, program: slot.program, kill };
  }

  function takeSlot(): ProgramSlot {
    const slot = slots.pop() ?? createSlot(factory);
    usedSlots.push(slot);
    return slot;
  }

  /** Starts or resumes the thread in this process, as application code does at startup. */
  function startRun(life: ProgramProcess, isLate = false): ActiveRun {
    const activeRun: ActiveRun = { owner: life, handle: undefined, end: undefined };
    const { process, simulated, program } = life;
    const { graph } = program;
    const { store } = simulated;
    const { world } = process;
    const watchHandle = (handle: RunHandle<unknown>): Promise<RunResult<unknown>> => {
      activeRun.handle = handle;
      handle.on(invariants.createListener(process));
      return handle.result;
    };
    const startOrResume = async (): Promise<RunResult<unknown> | undefined> => {
      if (branch === forkBranch && (await store.head(thread, forkBranch)) === undefined)
        await forkThread(store, program);
      if ((await store.head(thread)) === undefined)
        return watchHandle(
          run(graph, {
            thread,
            store,
            world,
            key: "the-only-one",
            ...(program.input === undefined ? {} : { input: program.input }),
          }),
        );
      const [row] = await findNewestRun(store, branch);
      if (row?.status === "crashed" && chance?.flip(0.3) === true) {
        const handles = await recover({ store, graphs: [graph], world });
        const results = await Promise.all(handles.map((handle) => watchHandle(handle)));
        return results[0];
      }
      const answers = isLate ? createLateAnswers() : await createAnswers(store, program);
      trace(`process ${process.id} resumes ${JSON.stringify(answers)}`);
      const result = await watchHandle(
        resume(graph, { thread, branch, store, world, answers, onPriorEffect: "reuse" }),
      );
      const durableAnswers = new Set(invariants.listAnswered(branch));
      const missingAnswers = Object.keys(answers).filter((id) => !durableAnswers.has(id));
      if (missingAnswers.length > 0 && result.status !== "paused")
        invariants.addViolation(
          "I8",
          `the answers to ${missingAnswers.join(" and ")} were accepted, and are not durable`,
        );
      if (isLate && Object.keys(answers).length > 0) invariants.addViolation("I1", "a late answer was accepted");
      return result;
    };
    startOrResume().then(
      (result) => {
        trace(`process ${process.id} ends: ${result?.status}`);
        activeRun.end = { result: result as RunResult<unknown> };
      },
      (error: unknown) => {
        trace(`process ${process.id} fails: ${String(error)}`);
        activeRun.end = { error };
      },
    );
    activeRuns.push(activeRun);
    return activeRun;
  }

  /** Answers all open interrupts, or some of them. */
  async function createAnswers(store: Store, { graph, answer }: SimulatedProgram): Promise<Record<string, unknown>> {
    const { interrupts } = await getState(graph, { store, thread, branch });
    const interruptsToAnswer = interrupts.filter(() => chance === undefined || chance.flip(0.8));
    return Object.fromEntries(
      interruptsToAnswer.map((interrupt) => [interrupt.id, answer?.(interrupt, ledger.findEffect)]),
    );
  }

  /** Late answers: different answers to interrupts that are already answered. */
  function createLateAnswers(): Record<string, unknown> {
    const answered = invariants.listAnswered(branch);
    return answered.length === 0 || chance === undefined ? {} : { [chance.pick(answered)]: { late: true } };
  }

  function isFinished({ owner, end }: ActiveRun): boolean {
    return end !== undefined || !owner.process.isAlive();
  }

  function injectFault(fault: Fault): void {
    const livingRuns = activeRuns.filter((work) => !isFinished(work));
    const target = chance === undefined || livingRuns.length === 0 ? undefined : chance.pick(livingRuns);
    if (target === undefined) return;
    trace(`fault ${JSON.stringify(fault)} at ${scheduler.countTicks()}`);
    injectedFaults[fault.kind] = (injectedFaults[fault.kind] ?? 0) + 1;
    switch (fault.kind) {
      case "kill":
        deathCount += 1;
        target.owner.kill();
        return;
      case "die":
        target.owner.simulated.faults.push(fault.when === "before" ? "die before" : "die after");
        return;
      case "store":
        for (let remaining = fault.times; remaining > 0; remaining--) target.owner.simulated.faults.push(fault.error);
        return;
      case "outside":
        pendingCallFailures += 1;
        return;
      case "intrude":
        startRun(spawnProcess(), chance?.flip(0.5));
        return;
      case "take":
        takeThread();
        startRun(spawnProcess());
        return;
      case "clock":
        scheduler.jumpWallClock(fault.ms);
        return;
      case "drain":
        target.handle?.drain("the simulation drains");
        return;
      case "cancel":
        target.handle?.cancel("the simulation cancels");
    }
  }

  function takeThread(): void {
    const previousOwner = invariants.takeThread();
    const holder = activeRuns.find(({ owner }) => owner.process === previousOwner?.owner);
    if (previousOwner === undefined || holder === undefined) return;
    holder.owner.simulated.commitDirectly({
      thread,
      branch,
      epoch: previousOwner.epoch,
      seq: invariants.getLastSeq(),
      release: true,
    });
  }

  function injectDueFaults(tick: number): void {
    if (tick > maxEvents) return;
    for (let next = pendingFaults[0]; next !== undefined && next.at <= tick; next = pendingFaults[0]) {
      pendingFaults.shift();
      injectFault(next.fault);
    }
  }

  /** Returns true for an error that the injected faults may cause. */
  function isExcused(error: unknown, work: ActiveRun): boolean {
    const text = String(error);
    const hasCompetitors = (injectedFaults.intrude ?? 0) + (injectedFaults.take ?? 0) > 0;
    const storeFailed = injectedFaults.store !== undefined;
    if (/the other side is/.test(text)) return true;
    if (!isStatewrightError(error)) return false;
    switch (error.code) {
      case "already_answered":
      case "unknown_interrupt":
        return hasCompetitors || storeFailed || injectedFaults.clock !== undefined;
      case "thread_busy":
      case "thread_exists":
      case "unknown_thread":
      case "unknown_checkpoint":
        return hasCompetitors || storeFailed;
      case "fenced":
        return invariants.wasCutOff(work.owner.process);
      case "store_full":
      case "store_locked":
      case "store_failed":
        return storeFailed;
      default:
        return false;
    }
  }

  function isInDoubt(error: unknown): boolean {
    if (!isStatewrightError(error)) return false;
    if (error.code === "node_failed" && error.cause instanceof AggregateError)
      return error.cause.errors.some(isInDoubt);
    // A tool call and a node raise an interrupt when in doubt; a step cannot.
    return error.code === "effect_in_doubt" && /: step /.test(error.message);
  }

  try {
    let survivor: ProgramProcess | undefined;
    for (;;) {
      const [row] = await findNewestRun(threadStores.getReader(), branch);
      if (row?.status === "done" && branch === "main" && (usedSlots[0] ?? takeSlot()).program.forkAt !== undefined) {
        branch = forkBranch;
        continue;
      }
      if (row?.status === "done" || row?.status === "cancelled") {
        if (row.status === "cancelled" && injectedFaults.cancel === undefined)
          invariants.addViolation("I6", "the run was cancelled without a request");
        return await createReport(row.status);
      }
      if (processCount > maxProcesses || scheduler.countTicks() > maxEvents) {
        invariants.addViolation(
          "I6",
          `after ${processCount} processes and ${scheduler.countTicks()} events the run is still ${row?.status ?? "not started"}`,
        );
        return await createReport("stuck");
      }
      const life: ProgramProcess = survivor?.process.isAlive() === true ? survivor : spawnProcess();
      survivor = undefined;
      const main = startRun(life);
      const outcome = await scheduler.runUntil(
        () => activeRuns.every(isFinished) || scheduler.countTicks() > maxEvents,
        injectDueFaults,
      );
      if (outcome === "idle" && !activeRuns.every(isFinished)) {
        invariants.addViolation("I6", "a run is active, and no event is possible");
        return await createReport("stuck");
      }
      for (const work of activeRuns) {
        const { end } = work;
        if (end === undefined || !("error" in end)) continue;
        if (isInDoubt(end.error)) {
          if (deathCount === 0 && injectedFaults.take === undefined && injectedFaults.store === undefined)
            invariants.addViolation("I2", `no process died, and an effect is in doubt: ${String(end.error)}`);
          return await createReport("in doubt");
        }
        if (!isExcused(end.error, work)) invariants.addViolation("I6", `a run failed: ${describeError(end.error)}`);
      }
      if (invariants.violations.length > 0) return await createReport("stuck");
      const survives = main.end !== undefined && "result" in main.end && (chance === undefined || chance.flip(0.5));
      for (const { owner } of activeRuns) if (!survives || owner !== life) owner.kill();
      if (survives) survivor = life;
      activeRuns = [];
    }
  } finally {
    for (const { holder } of usedSlots) holder?.kill();
    slots.push(...usedSlots);
    threadStores.dispose();
  }

  async function createReport(end: SimulationReport["end"]): Promise<SimulationReport> {
    const { graph } = (usedSlots[0] ?? takeSlot()).program;
    const reader = threadStores.getReader();
    const written = await readNamespaces(reader, invariants);
    const known = (await reader.head(thread)) !== undefined;
    const { state } = known ? await getState(graph, { store: reader, thread, branch }) : { state: undefined };
    return {
      end,
      state,
      namespaces: written,
      effects: countEffects(ledger),
      once: new Set(ledger.effects.filter(({ effect }) => effect === "once").map(({ key }) => key)),
      processes: processCount,
      deaths: deathCount,
      faults: injectedFaults,
      events: scheduler.countTicks(),
      violations: invariants.violations,
    };
  }
}

/** Returns the newest run of a branch, as a list. */
async function findNewestRun(store: Store, branch: string): Promise<readonly RunRow[]> {
  if ((await store.head(thread, branch)) === undefined) return [];
  return (await store.runs({ thread })).filter((run) => run.branch === branch);
}

async function forkThread(store: Store, { graph, forkAt = 0 }: SimulatedProgram): Promise<void> {
  const checkpoints = (await store.history(thread, { branch: "main", limit: 1_000 })).toReversed();
  // The last checkpoint has no next task.
  const from = checkpoints[Math.floor(forkAt * (checkpoints.length - 1))];
  if (from !== undefined) await fork(graph, { store, thread, at: from.id, name: forkBranch });
}

/**
 * Reads the checkpoints of each namespace; checks that they equal the written rows and that sequence numbers have no
 * gap.
 */
async function readNamespaces(store: Store, invariants: Invariants): Promise<Record<string, string[]>> {
  const namespaces: Record<string, string[]> = {};
  let next = 1;
  let found = 0;
  if ((await store.head(thread)) === undefined) return namespaces;
  for (let page = await store.events(thread, { after: 0, limit: 100 }); page.length > 0; ) {
    for (const event of page) {
      const seq = "checkpoint" in event ? event.checkpoint.seq : event.fact.seq;
      if (seq !== next) invariants.addViolation("I4", `expected the durable event ${next}, got ${seq}`);
      next = seq + 1;
      if (!("checkpoint" in event)) continue;
      found += 1;
      const { deltas, ...row } = event.checkpoint;
      if (invariants.checkpoints.get(row.id) !== formatCheckpoint(row, deltas))
        invariants.addViolation("I5", `the checkpoint ${row.id} differs from its written row`);
      const { caller: _, ...control } = JSON.parse(row.control) as { readonly caller?: unknown };
      const namespace = namespaces[row.branch] ?? [];
      namespaces[row.branch] = namespace;
      namespace.push(`${row.step} ${row.source} ${row.nodes.join(" ")} ${JSON.stringify(control)}`);
    }
    page = await store.events(thread, { after: next - 1, limit: 100 });
  }
  if (found !== invariants.checkpoints.size) invariants.addViolation("I5", "a checkpoint is missing");
  return namespaces;
}

function countEffects({ effects }: Ledger): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of effects) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Lists forbidden differences to the run without faults. */
function listDifferences(report: SimulationReport, baseline: SimulationReport): readonly string[] {
  const violations: string[] = [];
  for (const [key, times] of report.effects)
    if (report.once.has(key) && times > 1) violations.push(`I2 ${key} happened ${times} times`);
  // A cancel answers pending tool calls, also if the run finishes in the end.
  if (report.end !== "done" || report.faults.cancel !== undefined) return violations;
  for (const key of baseline.effects.keys()) if (!report.effects.has(key)) violations.push(`I2 ${key} never happened`);
  for (const key of report.effects.keys())
    if (!baseline.effects.has(key)) violations.push(`I3 ${key} happened, but not in the run without faults`);
  if (JSON.stringify(omitFailedAttempts(report.state)) !== JSON.stringify(omitFailedAttempts(baseline.state)))
    violations.push(
      `I3 the state is ${JSON.stringify(report.state)} and without faults ${JSON.stringify(baseline.state)}`,
    );
  for (const namespace of new Set([...Object.keys(report.namespaces), ...Object.keys(baseline.namespaces)])) {
    const [actual = [], expected = []] = [report.namespaces[namespace], baseline.namespaces[namespace]];
    const deviation = expected.findIndex((text, index) => text !== actual[index]);
    if (deviation < 0 && actual.length === expected.length) continue;
    const index = deviation < 0 ? expected.length : deviation;
    violations.push(`I3 checkpoint ${index} of ${namespace} is ${actual[index]} and without faults ${expected[index]}`);
  }
  return violations;
}

function describeError(error: unknown): string {
  return error instanceof Error && error.cause !== undefined && !isStatewrightError(error)
    ? `${error} (${String(error.cause)})`
    : String(error);
}

function createMemoryStores(): SimulatedStores {
  const first = memoryStore();
  return {
    getReader: () => first,
    open: () => {
      const store = first.peer();
      return { store, crash: () => store.crash() };
    },
    dispose: ignore,
  };
}

function ignore(): void {
  // Default trace: discards the log.
}
