/**
 * Simulations: a program lives through deaths of its process, failing writes, second owners, jumps of the clock, late and
 * double answers, in an order that one seed decides, until it is done. It must come to the same end as without them.
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
  type RunRow,
  recover,
  resume,
  run,
  type Store,
} from "@statewright/core";
import { type Chance, chanceOf } from "./chance.ts";
import { createLedger, type Ledger, type Outside } from "./external-world.ts";
import { type Fault, type FaultKind, planFaults } from "./faults.ts";
import { checkpointText, createWitness, type Witness } from "./invariants.ts";
import { withoutLost } from "./omit-failed-attempts.ts";
import { createScheduler, type SimulatedProcess } from "./scheduler.ts";
import { type SimulatedStore, simulatedStore } from "./simulated-store.ts";

/** What is simulated: a graph, its input, and the person who answers its questions. */
export interface SimulatedProgram {
  readonly graph: Graph;
  readonly input?: object;
  /** What a person answers; the same question must get the same answer. */
  readonly answer?: (question: OpenInterrupt, happened: Outside["happened"]) => unknown;
  /** When the run is done, go another way from one of its checkpoints: its place among them, from 0 for the first to 1. */
  readonly forkAt?: number;
}

/** Makes the program anew for each process, as a start of the process would. All that it does outside goes through `outside`. */
export type ProgramOf = (outside: Outside) => SimulatedProgram;

/** Where the threads of a simulation are kept. */
export interface SimulatedStores {
  /** The store as a new process opens it; `crash` is its sudden death. */
  readonly open: () => { readonly store: Store; readonly crash: () => void };
  /** A store to look at the threads with, as they are now. */
  readonly look: () => Store;
  readonly dispose: () => void;
}

/** What `simulate` takes. */
export interface SimulationOptions {
  readonly seed: number;
  /** What may go wrong; all of it by default. */
  readonly faults?: readonly FaultKind[];
  /** Default: in memory. */
  readonly stores?: () => SimulatedStores;
  /** The uninterrupted run to compare with, where it is known; made otherwise. */
  readonly whole?: Story;
  /** Is told what happens, for a person who looks for the cause of a violation. */
  readonly trace?: (line: string) => void;
}

/** What became of a thread. */
export interface Story {
  readonly end: "done" | "cancelled" | "in doubt" | "stuck";
  readonly state: unknown;
  /** The checkpoints of each line: step, nodes and what runs next. */
  readonly lines: Readonly<Record<string, readonly string[]>>;
  /** How often each key was used outside. */
  readonly effects: ReadonlyMap<string, number>;
  readonly once: ReadonlySet<string>;
  readonly lives: number;
  readonly deaths: number;
  /** Faults that came to pass, by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly events: number;
  /** What must never be; each begins with the id of its invariant. */
  readonly violations: readonly string[];
}

const everyFault: readonly FaultKind[] = [
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

/** The branch of a fork. */
const another = "another";

/** A finite number of faults cannot need more. */
const mostLives = 60;
const mostEvents = 20_000;

/** The run without faults, everything in the order of asking. */
export function uninterrupted(program: ProgramOf): Promise<Story> {
  return live(program, { seed: 1 }, undefined, []);
}

/** Live through one simulation and compare it with the uninterrupted run. */
export async function simulate(program: ProgramOf, options: SimulationOptions): Promise<Story> {
  const { seed, faults = everyFault } = options;
  const whole = options.whole ?? (await uninterrupted(program));
  if (whole.violations.length > 0 || whole.end !== "done") return whole;
  const chance = chanceOf(seed);
  const plan = planFaults(chance, whole.events, faults);
  const story = await live(program, options, chance, plan);
  return { ...story, violations: [...story.violations, ...differences(story, whole)] };
}

/**
 * A program made once and used by one process after the other: to make a graph costs more than to run it. What a dead
 * process has under way never comes to an end, so nothing of it reaches the world of the next.
 */
interface Slot {
  readonly program: SimulatedProgram;
  holder: SimulatedProcess | undefined;
  outside: Outside | undefined;
}

const slotsByProgram: WeakMap<ProgramOf, Slot[]> = new WeakMap();

function slotsOf(make: ProgramOf): Slot[] {
  const known = slotsByProgram.get(make);
  if (known !== undefined) return known;
  const slots: Slot[] = [];
  slotsByProgram.set(make, slots);
  return slots;
}

function slotOf(make: ProgramOf): Slot {
  let slot: Slot | undefined;
  const bound = (): Outside => {
    if (slot?.outside === undefined) throw new Error("a program used its outside before a process ran it");
    return slot.outside;
  };
  const program = make({
    act: (key, work, options) => bound().act(key, work, options),
    happened: (key) => bound().happened(key),
  });
  slot = { program, holder: undefined, outside: undefined };
  return slot;
}

/** One process of the simulation, and what it runs. */
interface Life {
  readonly process: SimulatedProcess;
  readonly saved: SimulatedStore;
  readonly program: SimulatedProgram;
  readonly die: () => void;
}

/** A run that a process has in hand. */
interface AtWork {
  readonly life: Life;
  handle: RunHandle<unknown> | undefined;
  end: { readonly result: RunResult<unknown> } | { readonly error: unknown } | undefined;
}

async function live(
  make: ProgramOf,
  { seed, stores = inMemory, trace = silent }: SimulationOptions,
  chance: Chance | undefined,
  planned: ReturnType<typeof planFaults>,
): Promise<Story> {
  const scheduler = createScheduler(chance, seed);
  const witness = createWitness(
    thread,
    () => deaths + (happenedFaults.take ?? 0) + (happenedFaults.store ?? 0) + (happenedFaults.cancel ?? 0) > 0,
    () => (happenedFaults.store ?? 0) + (happenedFaults.cancel ?? 0) + (happenedFaults.outside ?? 0) > 0,
  );
  const ledger = createLedger();
  const threads = stores();
  const slots = slotsOf(make);
  const taken: Slot[] = [];
  const waiting = [...planned];
  const happenedFaults: Partial<Record<FaultKind, number>> = {};
  let lives = 0;
  let deaths = 0;
  let failing = 0;
  let atWork: AtWork[] = [];
  let branch = "main";

  function spawn(): Life {
    lives += 1;
    const process = scheduler.spawn();
    const owner = threads.open();
    const die = (): void => {
      if (!process.alive()) return;
      trace(`process ${process.id} dies`);
      process.kill();
      owner.crash();
    };
    const saved = simulatedStore(
      owner.store,
      process,
      witness,
      () => {
        deaths += 1;
        die();
      },
      trace,
    );
    const slot = taken.find((each) => !each.holder?.alive()) ?? newSlot();
    slot.holder = process;
    slot.outside = ledger.reach(process, {
      began: (key, effect) => {
        trace(`process ${process.id} calls ${key}`);
        witness.began(process, key, effect);
      },
      returned: (key) => witness.returned(process, key),
      fails: () => failing > 0 && failing-- > 0,
      isCutOff: () => witness.wasCutOff(process),
    });
    return { process, saved, program: slot.program, die };
  }

  function newSlot(): Slot {
    const slot = slots.pop() ?? slotOf(make);
    taken.push(slot);
    return slot;
  }

  /** Go on with the thread in this process, as its code would after a start. */
  function begin(life: Life, late = false): AtWork {
    const work: AtWork = { life, handle: undefined, end: undefined };
    const { process, saved, program } = life;
    const { graph } = program;
    const { store } = saved;
    const { world } = process;
    const held = (handle: RunHandle<unknown>): Promise<RunResult<unknown>> => {
      work.handle = handle;
      handle.on(witness.reader(process));
      return handle.result;
    };
    const go = async (): Promise<RunResult<unknown> | undefined> => {
      if (branch === another && (await store.head(thread, another)) === undefined) await forkAway(store, program);
      if ((await store.head(thread)) === undefined)
        return held(
          run(graph, {
            thread,
            store,
            world,
            key: "the-only-one",
            ...(program.input === undefined ? {} : { input: program.input }),
          }),
        );
      const [row] = await newestRun(store, branch);
      if (row?.status === "crashed" && chance?.share(0.3) === true) {
        const handles = await recover({ store, graphs: [graph], world });
        const results = await Promise.all(handles.map((handle) => held(handle)));
        return results[0];
      }
      const answers = late ? lateAnswers() : await answersNow(store, program);
      trace(`process ${process.id} resumes ${JSON.stringify(answers)}`);
      const result = await held(resume(graph, { thread, branch, store, world, answers, onceElsewhere: "reuse" }));
      const given = new Set(witness.answered(branch));
      const lost = Object.keys(answers).filter((id) => !given.has(id));
      if (lost.length > 0 && result.status !== "paused")
        witness.violated("I8", `the answers to ${lost.join(" and ")} were taken, and are not durable`);
      if (late && Object.keys(answers).length > 0) witness.violated("I1", "an answer was taken that came too late");
      return result;
    };
    go().then(
      (result) => {
        trace(`process ${process.id} ends: ${result?.status}`);
        work.end = { result: result as RunResult<unknown> };
      },
      (error: unknown) => {
        trace(`process ${process.id} fails: ${String(error)}`);
        work.end = { error };
      },
    );
    atWork.push(work);
    return work;
  }

  /** Answers to what is asked now, or to a part of it. */
  async function answersNow(store: Store, { graph, answer }: SimulatedProgram): Promise<Record<string, unknown>> {
    const { interrupts } = await getState(graph, { store, thread, branch });
    const asked = interrupts.filter(() => chance === undefined || chance.share(0.8));
    return Object.fromEntries(asked.map((question) => [question.id, answer?.(question, ledger.happened)]));
  }

  /** Other answers to questions that have theirs. */
  function lateAnswers(): Record<string, unknown> {
    const answered = witness.answered(branch);
    return answered.length === 0 || chance === undefined ? {} : { [chance.of(answered)]: { late: true } };
  }

  function isOver({ life, end }: AtWork): boolean {
    return end !== undefined || !life.process.alive();
  }

  function pass(fault: Fault): void {
    const living = atWork.filter((work) => !isOver(work));
    const one = chance === undefined || living.length === 0 ? undefined : chance.of(living);
    if (one === undefined) return;
    trace(`fault ${JSON.stringify(fault)} at ${scheduler.ticks()}`);
    happenedFaults[fault.kind] = (happenedFaults[fault.kind] ?? 0) + 1;
    switch (fault.kind) {
      case "kill":
        deaths += 1;
        one.life.die();
        return;
      case "die":
        one.life.saved.faults.push(fault.when === "before" ? "die before" : "die after");
        return;
      case "store":
        for (let left = fault.times; left > 0; left--) one.life.saved.faults.push(fault.error);
        return;
      case "outside":
        failing += 1;
        return;
      case "intrude":
        begin(spawn(), chance?.share(0.5));
        return;
      case "take":
        take();
        begin(spawn());
        return;
      case "clock":
        scheduler.jump(fault.ms);
        return;
      case "drain":
        one.handle?.drain("the simulation drains");
        return;
      case "cancel":
        one.handle?.cancel("the simulation cancels");
    }
  }

  function take(): void {
    const found = witness.taken();
    const holder = atWork.find(({ life }) => life.process === found?.owner);
    if (found === undefined || holder === undefined) return;
    holder.life.saved.letGo({ thread, branch, epoch: found.epoch, seq: witness.lastSeq(), release: true });
  }

  function beforeEach(tick: number): void {
    if (tick > mostEvents) return;
    for (let next = waiting[0]; next !== undefined && next.at <= tick; next = waiting[0]) {
      waiting.shift();
      pass(next.fault);
    }
  }

  /** Whether a failure is what the faults so far may lead to. */
  function isExcused(error: unknown, work: AtWork): boolean {
    const text = String(error);
    const crowded = (happenedFaults.intrude ?? 0) + (happenedFaults.take ?? 0) > 0;
    const storeFailed = happenedFaults.store !== undefined;
    if (/the other side is/.test(text)) return true;
    if (!isStatewrightError(error)) return false;
    switch (error.code) {
      case "already_answered":
      case "unknown_interrupt":
        return crowded || storeFailed || happenedFaults.clock !== undefined;
      case "thread_busy":
      case "thread_exists":
      case "unknown_thread":
      case "unknown_checkpoint":
        return crowded || storeFailed;
      case "fenced":
        return witness.wasCutOff(work.life.process);
      case "store_full":
      case "store_locked":
      case "store_failed":
        return storeFailed;
      default:
        return false;
    }
  }

  function isDoubt(error: unknown): boolean {
    if (!isStatewrightError(error)) return false;
    if (error.code === "node_failed" && error.cause instanceof AggregateError) return error.cause.errors.some(isDoubt);
    // A call and a node ask; a step cannot.
    return error.code === "effect_in_doubt" && /: step /.test(error.message);
  }

  try {
    let kept: Life | undefined;
    for (;;) {
      const [row] = await newestRun(threads.look(), branch);
      if (row?.status === "done" && branch === "main" && (taken[0] ?? newSlot()).program.forkAt !== undefined) {
        branch = another;
        continue;
      }
      if (row?.status === "done" || row?.status === "cancelled") {
        if (row.status === "cancelled" && happenedFaults.cancel === undefined)
          witness.violated("I6", "the run was cancelled, and nobody asked for it");
        return await storyOf(row.status);
      }
      if (lives > mostLives || scheduler.ticks() > mostEvents) {
        witness.violated(
          "I6",
          `after ${lives} lives and ${scheduler.ticks()} events it is still ${row?.status ?? "not begun"}`,
        );
        return await storyOf("stuck");
      }
      const life: Life = kept?.process.alive() === true ? kept : spawn();
      kept = undefined;
      const main = begin(life);
      const how = await scheduler.until(() => atWork.every(isOver) || scheduler.ticks() > mostEvents, beforeEach);
      if (how === "idle" && !atWork.every(isOver)) {
        witness.violated("I6", "a run is at work, and nothing is left that could happen");
        return await storyOf("stuck");
      }
      for (const work of atWork) {
        const { end } = work;
        if (end === undefined || !("error" in end)) continue;
        if (isDoubt(end.error)) {
          if (deaths === 0 && happenedFaults.take === undefined && happenedFaults.store === undefined)
            witness.violated("I2", `nothing died, and an effect is in doubt: ${String(end.error)}`);
          return await storyOf("in doubt");
        }
        if (!isExcused(end.error, work)) witness.violated("I6", `a run failed: ${describe(end.error)}`);
      }
      if (witness.violations.length > 0) return await storyOf("stuck");
      const goesOn = main.end !== undefined && "result" in main.end && (chance === undefined || chance.share(0.5));
      for (const { life: over } of atWork) if (!goesOn || over !== life) over.die();
      if (goesOn) kept = life;
      atWork = [];
    }
  } finally {
    for (const { holder } of taken) holder?.kill();
    slots.push(...taken);
    threads.dispose();
  }

  async function storyOf(end: Story["end"]): Promise<Story> {
    const { graph } = (taken[0] ?? newSlot()).program;
    const looking = threads.look();
    const written = await readLines(looking, witness);
    const known = (await looking.head(thread)) !== undefined;
    const { state } = known ? await getState(graph, { store: looking, thread, branch }) : { state: undefined };
    return {
      end,
      state,
      lines: written,
      effects: counted(ledger),
      once: new Set(ledger.effects.filter(({ effect }) => effect === "once").map(({ key }) => key)),
      lives,
      deaths,
      faults: happenedFaults,
      events: scheduler.ticks(),
      violations: witness.violations,
    };
  }
}

/** The newest run of a branch, in a list. */
async function newestRun(store: Store, branch: string): Promise<readonly RunRow[]> {
  if ((await store.head(thread, branch)) === undefined) return [];
  return (await store.runs({ thread })).filter((run) => run.branch === branch);
}

async function forkAway(store: Store, { graph, forkAt = 0 }: SimulatedProgram): Promise<void> {
  const line = (await store.history(thread, { branch: "main", limit: 1_000 })).toReversed();
  // The last checkpoint has nothing to go on with.
  const from = line[Math.floor(forkAt * (line.length - 1))];
  if (from !== undefined) await fork(graph, { store, thread, at: from.id, name: another });
}

/** The checkpoints of each line, which must be as they were written, under numbers without a gap. */
async function readLines(store: Store, witness: Witness): Promise<Record<string, string[]>> {
  const lines: Record<string, string[]> = {};
  let next = 1;
  let found = 0;
  if ((await store.head(thread)) === undefined) return lines;
  for (let page = await store.events(thread, { after: 0, limit: 100 }); page.length > 0; ) {
    for (const event of page) {
      const seq = "checkpoint" in event ? event.checkpoint.seq : event.fact.seq;
      if (seq !== next) witness.violated("I4", `the durable event ${seq} stands where ${next} is due`);
      next = seq + 1;
      if (!("checkpoint" in event)) continue;
      found += 1;
      const { deltas, ...row } = event.checkpoint;
      if (witness.checkpoints.get(row.id) !== checkpointText(row, deltas))
        witness.violated("I5", `the checkpoint ${row.id} reads otherwise than it was written`);
      const { caller: _, ...control } = JSON.parse(row.control) as { readonly caller?: unknown };
      const line = lines[row.branch] ?? [];
      lines[row.branch] = line;
      line.push(`${row.step} ${row.source} ${row.nodes.join(" ")} ${JSON.stringify(control)}`);
    }
    page = await store.events(thread, { after: next - 1, limit: 100 });
  }
  if (found !== witness.checkpoints.size) witness.violated("I5", "a checkpoint is gone");
  return lines;
}

function counted({ effects }: Ledger): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { key } of effects) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** What the faults have changed, and must not. */
function differences(story: Story, whole: Story): readonly string[] {
  const wrong: string[] = [];
  for (const [key, times] of story.effects)
    if (story.once.has(key) && times > 1) wrong.push(`I2 ${key} happened ${times} times`);
  // A cancel answers what it cuts short, also where the run goes on in the end.
  if (story.end !== "done" || story.faults.cancel !== undefined) return wrong;
  for (const key of whole.effects.keys()) if (!story.effects.has(key)) wrong.push(`I2 ${key} never happened`);
  for (const key of story.effects.keys())
    if (!whole.effects.has(key)) wrong.push(`I3 ${key} happened, and does not without faults`);
  if (JSON.stringify(withoutLost(story.state)) !== JSON.stringify(withoutLost(whole.state)))
    wrong.push(`I3 the state is ${JSON.stringify(story.state)} and without faults ${JSON.stringify(whole.state)}`);
  for (const line of new Set([...Object.keys(story.lines), ...Object.keys(whole.lines)])) {
    const [mine = [], theirs = []] = [story.lines[line], whole.lines[line]];
    const at = theirs.findIndex((text, index) => text !== mine[index]);
    if (at < 0 && mine.length === theirs.length) continue;
    const place = at < 0 ? theirs.length : at;
    wrong.push(`I3 checkpoint ${place} of ${line} is ${mine[place]} and without faults ${theirs[place]}`);
  }
  return wrong;
}

function describe(error: unknown): string {
  return error instanceof Error && error.cause !== undefined && !isStatewrightError(error)
    ? `${error} (${String(error.cause)})`
    : String(error);
}

function inMemory(): SimulatedStores {
  const first = memoryStore();
  return {
    look: () => first,
    open: () => {
      const store = first.peer();
      return { store, crash: () => store.crash() };
    },
    dispose: silent,
  };
}

function silent(): void {
  // Nobody looks.
}
