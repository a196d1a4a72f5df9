/** Subject: the machine of a plan as a durable machine, with events from two processes and crashes. */
import {
  getState,
  isStatewrightError,
  listInterrupts,
  type RunEvent,
  type Store,
  streamEvents,
} from "@statewright/core";
import { type Control, plainCodec } from "@statewright/core/store";
import { type Chance, createChance } from "@statewright/testing";
import { Agenda } from "./agenda.ts";
import { type Life, type LifeParts, startLife, type WriteDecision } from "./life.ts";
import { createMachineStores, type StoreKind } from "./machine-stores.ts";
import {
  findService,
  getDurationMs,
  type MachinePlan,
  type SentEvent,
  type ServiceInput,
  type TrailContext,
} from "./random-machine.ts";
import { addValue, getCallId, type MachineEnd, type TimedEvent } from "./run-live.ts";

/** What happened in a simulation, for the shares that the gate demands. */
export interface MachineFacts {
  readonly crashes: number;
  readonly doubts: number;
  /** An event was delivered while a promise was running. */
  readonly hasEventAtWork: boolean;
  /** The processes crashed with a recorded result and a waiting event in the store. */
  readonly crashedBetween: boolean;
}

/** Result of the subject. */
export interface DurableResult extends MachineEnd, MachineFacts {
  readonly events: readonly TimedEvent[];
  readonly endTimes: ReadonlyMap<string, number>;
  readonly until: number;
  readonly violations: readonly string[];
}

const thread = "t";

/** Time after the last event in which queued events are read and started work ends. */
const restMs = 2_300;

/** Runs a plan as a durable machine. */
export async function runDurable(
  plan: MachinePlan,
  seed: number,
  kind: Exclude<StoreKind, "killed">,
): Promise<DurableResult> {
  const stores = createMachineStores(kind);
  const simulation = new Simulation(plan, stores, createChance(seed + 0x5eed));
  try {
    return await simulation.run();
  } finally {
    simulation.crash();
    await stores.dispose();
  }
}

/** Event that is not sent yet; `at` is a time of the agenda. */
type PendingSend = SentEvent;

/** State of a simulation at a crash, as JSON: the next process continues from it. */
export interface SavedSimulation {
  readonly now: number;
  readonly pendingSends: readonly PendingSend[];
  readonly endTimes: readonly (readonly [string, number])[];
  readonly changedEnds: readonly (readonly [string, number])[];
  readonly happened: readonly string[];
  readonly refusals: readonly TimedEvent[];
  readonly violations: readonly string[];
  readonly facts: MachineFacts;
  readonly writes: number;
  readonly sent: number;
}

/** Simulation of a durable machine, its services, its senders and its crashes. */
export class Simulation {
  readonly #agenda = new Agenda();
  readonly #startedAt = this.#agenda.now;
  readonly #isContinued: boolean;
  readonly #plan: MachinePlan;
  readonly #chance: Chance;
  readonly #parts: LifeParts;
  readonly #endTimes = new Map<string, number>();
  readonly #changedEnds = new Map<string, number>();
  /** Calls that a person reports as happened: a crash lost their results. */
  readonly #happened = new Set<string>();
  /** Ids of the calls that run in the current processes. */
  readonly #running = new Set<string>();
  readonly #pendingSends = new Set<PendingSend>();
  readonly #refusals: TimedEvent[] = [];
  readonly #violations: string[] = [];
  readonly #facts = { crashes: 0, doubts: 0, hasEventAtWork: false, crashedBetween: false };
  #life: Life;
  #writes = 0;
  #sent = 0;
  #isContinuing = false;
  #held: { readonly release: () => void; readonly until: number } | undefined;

  constructor(plan: MachinePlan, stores: LifeParts["stores"], chance: Chance, saved?: SavedSimulation) {
    this.#plan = plan;
    this.#chance = chance;
    this.#isContinued = saved !== undefined;
    if (saved !== undefined) this.#restore(saved);
    else for (const event of plan.sent) this.#schedule({ ...event, at: this.#agenda.now + event.at });
    const call: LifeParts["call"] = (input, signal, life) => this.#call(input, signal, life);
    const onWrite: LifeParts["onWrite"] = (write) => this.#decide(write);
    this.#parts = { agenda: this.#agenda, plan, stores, chance, call, onWrite };
    this.#life = startLife(this.#parts);
  }

  async run(): Promise<DurableResult> {
    const agenda = this.#agenda;
    const until = this.#startedAt + this.#plan.horizonMs + restMs;
    if (this.#isContinued) await this.#continueInLife();
    else await this.#attempt(() => this.#begin());
    await this.#settle();
    while (agenda.step(until)) await this.#settle();
    return {
      ...(await this.#readEnd()),
      ...this.#facts,
      endTimes: this.#changedEnds,
      until,
      violations: this.#violations,
    };
  }

  crash(): void {
    this.#life.crash();
  }

  /** Returns the state that the next process needs. */
  save(): SavedSimulation {
    return {
      now: this.#agenda.now,
      pendingSends: [...this.#pendingSends],
      endTimes: [...this.#endTimes],
      changedEnds: [...this.#changedEnds],
      happened: [...this.#happened],
      refusals: this.#refusals,
      violations: this.#violations,
      facts: this.#facts,
      writes: this.#writes,
      sent: this.#sent,
    };
  }

  #restore(saved: SavedSimulation): void {
    this.#agenda.now = saved.now;
    for (const event of saved.pendingSends) this.#schedule(event);
    for (const [id, at] of saved.endTimes) this.#endTimes.set(id, at);
    for (const [id, at] of saved.changedEnds) this.#changedEnds.set(id, at);
    for (const id of saved.happened) this.#happened.add(id);
    this.#refusals.push(...saved.refusals);
    this.#violations.push(...saved.violations);
    Object.assign(this.#facts, saved.facts);
    this.#writes = saved.writes;
    this.#sent = saved.sent;
  }

  #schedule(event: PendingSend): void {
    this.#pendingSends.add(event);
    this.#agenda.add(event.at, 2, () => {
      this.#pendingSends.delete(event);
      this.#send(event);
    });
  }

  async #begin(): Promise<void> {
    const { owner, other, store } = this.#life;
    await owner.engine.start();
    await other.engine.start();
    if ((await store.head(thread)) === undefined) this.#watch(owner.engine.run(owner.graph, { thread }).result);
  }

  /** Settles the event loop; restarts the processes after a crash. */
  async #settle(): Promise<void> {
    await this.#agenda.settle();
    const next = this.#agenda.peek();
    const isEnding = next?.priority === 0 && next.at === this.#agenda.now;
    if (this.#held !== undefined && this.#life.isAlive() && this.#agenda.now >= this.#held.until && !isEnding) {
      this.#held.release();
      this.#held = undefined;
      await this.#agenda.settle();
    }
    while (!this.#life.isAlive()) {
      this.#life = startLife(this.#parts);
      await this.#continueInLife();
    }
  }

  async #continueInLife(): Promise<void> {
    this.#isContinuing = true;
    await this.#attempt(() => this.#continue());
    this.#isContinuing = false;
  }

  /** Continues in the next processes at the time of the crash, and answers the questions about promises in doubt. */
  async #continue(): Promise<void> {
    this.#facts.crashes += 1;
    this.#held = undefined;
    this.#running.clear();
    await this.#inspectCrash();
    await this.#begin();
    await this.#agenda.settle();
    // One process answers all, since it owns a run that was at rest. An answer of another process is read at a poll,
    // which is too late for a result that counts now.
    const from =
      this.#happened.size === 0 && !this.#isLate() ? this.#chance.pick(["owner", "other"] as const) : "owner";
    const answered = new Set<string>();
    while (this.#life.isAlive()) {
      const interrupts = await listInterrupts(this.#life.store, { thread });
      const open = interrupts.filter(({ id, key }) => key === "in_doubt" && !answered.has(id));
      if (open.length === 0) return;
      for (const { id } of open) answered.add(id);
      this.#facts.doubts += open.length;
      const answers = Object.fromEntries(open.map(({ id, payload }) => [id, this.#answer(payload)]));
      if (from === "other") for (const { payload } of open) this.#changeEnd(getDoubtId(payload), 1_100);
      const { engine, graph } = this.#life[from];
      this.#watch(engine.resume(graph, { thread, answers }).result);
      await this.#agenda.settle();
    }
  }

  #answer(payload: unknown): object {
    const id = getDoubtId(payload);
    return this.#happened.has(id) ? { happened: true, output: id } : { happened: false };
  }

  /** Finds the results that the crash lost: a person knows of them, or the service answers again later. */
  async #inspectCrash(): Promise<void> {
    const { store } = this.#life;
    const head = await store.head(thread);
    if (head === undefined) return;
    const { pending } = decodeControl(head.control);
    const recorded = new Set(
      (await store.effects(thread, "main", head.step)).flatMap((row) => (row.outcome === undefined ? [] : [row.task])),
    );
    const actors = pending?.actors ?? [];
    const hasWaiting = (await store.inbox(thread, "main")).length > 0;
    if (hasWaiting && actors.some(({ task }) => recorded.has(task))) this.#facts.crashedBetween = true;
    for (const { task, src, input } of actors) {
      const id = getCallId(input as ServiceInput);
      // A call that the crash prevented would have begun now.
      const endAt = this.#endTimes.get(id) ?? this.#agenda.now + getDurationMs(this.#plan, input as ServiceInput);
      this.#endTimes.set(id, endAt);
      if (endAt > this.#agenda.now || recorded.has(task) || this.#happened.has(id)) continue;
      const { effect, fails } = findService(this.#plan, src);
      if (effect === "once" && !fails && this.#chance.flip(0.5)) this.#happened.add(id);
      else this.#changeEnd(id);
    }
  }

  /** True after the last event: there is no time for a late answer. */
  #isLate(): boolean {
    return this.#agenda.now > this.#startedAt + this.#plan.horizonMs;
  }

  /** The service ends a call at least `afterMs` from now. */
  #changeEnd(id: string, afterMs = 3): void {
    const endAt = this.#agenda.now + afterMs + this.#chance.getInteger(40);
    this.#endTimes.set(id, endAt);
    this.#changedEnds.set(id, endAt);
  }

  #call(input: ServiceInput, signal: AbortSignal, life: { readonly isAlive: () => boolean }): Promise<string> {
    const id = getCallId(input);
    // A promise that starts again after its first end gets its answer a little later, after the events that wait.
    if ((this.#endTimes.get(id) ?? Number.POSITIVE_INFINITY) <= this.#agenda.now) this.#changeEnd(id);
    const endAt = this.#endTimes.get(id) ?? this.#agenda.now + getDurationMs(this.#plan, input);
    this.#endTimes.set(id, endAt);
    this.#running.add(id);
    return new Promise((resolve, reject) => {
      const cancel = this.#agenda.add(endAt, 0, () => {
        if (!life.isAlive()) return;
        this.#running.delete(id);
        if (findService(this.#plan, input.src).fails) reject(new Error(`no ${id}`));
        else resolve(id);
      });
      signal.addEventListener("abort", () => {
        if (life.isAlive()) this.#running.delete(id);
        cancel();
      });
    });
  }

  #send({ type, from }: Omit<SentEvent, "at">): void {
    const { agenda } = this.#parts;
    const { engine, graph } = this.#life[from];
    const at = agenda.now;
    const isAtWork = this.#running.size > 0;
    const n = ++this.#sent;
    const sent = engine.resume(graph, { thread, answers: { [type]: { n } } }).result.then(
      ({ status }) => {
        if (status === "delivered" && isAtWork) this.#facts.hasEventAtWork = true;
      },
      (error: unknown) => {
        if (!isStatewrightError(error, "event_refused")) throw error;
        if (agenda.now === at) this.#refusals.push({ at, type, n, isRefused: true });
      },
    );
    this.#watch(sent);
  }

  /** Records the failure of work of a living process. */
  #watch(result: Promise<unknown>): void {
    const life = this.#life;
    result.catch((error: unknown) => {
      if (life.isAlive()) this.#violations.push(`a call failed: ${String(error)}`);
    });
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    const life = this.#life;
    try {
      await Promise.race([work(), life.crashed]);
    } catch (error) {
      if (life.isAlive()) throw error;
    }
  }

  #decide(write: Parameters<Store["commit"]>[0]): WriteDecision {
    this.#writes += 1;
    if (this.#held !== undefined) {
      const hasResult = write.checkpoint === undefined && write.effects?.some(({ outcome }) => outcome !== undefined);
      return { kind: hasResult === true ? "crash after" : "pass" };
    }
    const crash = this.#plan.crashes.find(({ nth }) => nth === this.#writes);
    if (crash !== undefined) return { kind: crash.isAfter ? "crash after" : "crash before" };
    const canHold = this.#plan.crashesBetween && !this.#facts.crashedBetween && !this.#isContinuing && !this.#isLate();
    const until = canHold ? this.#findHold(write) : undefined;
    if (until === undefined) return { kind: "pass" };
    return { kind: "hold", onHeld: (release) => (this.#held = { release, until }) };
  }

  /**
   * Returns the time until which a checkpoint is acknowledged late: the result of a promise that runs on comes next.
   * Another process sends an event meanwhile.
   */
  #findHold({ checkpoint, release }: Parameters<Store["commit"]>[0]): number | undefined {
    const next = this.#agenda.peek();
    if (checkpoint === undefined || release === true || next?.priority !== 0 || next.at <= this.#agenda.now)
      return undefined;
    const { machine, pending } = decodeControl(checkpoint.row.control);
    const actors = (pending?.actors ?? []).map(({ src, input }) => ({ src, id: getCallId(input as ServiceInput) }));
    const ending = actors.find(({ id }) => this.#endTimes.get(id) === next.at);
    // While the loop waits for the acknowledgement, it starts no promise and fires no delay.
    const isBlocking =
      actors.some(({ id }) => !this.#running.has(id)) || pending?.timers?.some(({ dueAt }) => dueAt <= next.at);
    if (ending === undefined || isBlocking || findService(this.#plan, ending.src).fails) return undefined;
    const types = listAcceptedTypes(this.#plan, machine as Readonly<Record<string, string>>);
    if (types.length === 0) return undefined;
    const type = this.#chance.pick(types);
    this.#schedule({ at: this.#agenda.now, type, from: "other" });
    return next.at;
  }

  async #readEnd(): Promise<MachineEnd & { readonly events: readonly TimedEvent[] }> {
    const { store, owner } = this.#life;
    const { state, status } = await getState(owner.graph, { store, thread });
    const { value, context } = state as { readonly value: unknown; readonly context: TrailContext };
    const values: unknown[] = [];
    const events: TimedEvent[] = [];
    for await (const event of streamEvents({ store, thread })) {
      if (event.type === "step.committed" && event.changes["value"]?.kind === "replace")
        addValue(values, event.changes["value"].value);
      events.push(...toTimedEvents(event));
    }
    const waiting = await store.inbox(thread, "main");
    if (status !== "done" && waiting.length > 0) this.#violations.push(`${waiting.length} events were never processed`);
    if (status === "failed" || status === "crashed") this.#violations.push(`the run is ${status}`);
    return { isDone: status === "done", value, context, values, events: [...events, ...this.#refusals] };
  }
}

function getDoubtId(payload: unknown): string {
  return getCallId((payload as { readonly input: ServiceInput }).input);
}

function decodeControl(text: string): Control {
  return plainCodec.decode(text) as Control;
}

function toTimedEvents(event: RunEvent): readonly TimedEvent[] {
  if (event.type !== "event.received" && event.type !== "event.refused") return [];
  if (event.key === "in_doubt") return [];
  return [{ at: event.at, type: event.key, n: undefined, isRefused: event.type === "event.refused" }];
}

/** Lists the types of the events that the active states accept without a guard. */
function listAcceptedTypes({ regions }: MachinePlan, value: Readonly<Record<string, string>>): readonly string[] {
  return regions.flatMap(({ states }, region) => {
    const state = states[Number(value[`r${region}`]?.slice(1))];
    return (state?.events ?? []).flatMap(({ event, isGuarded }) => (isGuarded ? [] : [event]));
  });
}
