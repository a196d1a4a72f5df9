/** Reference: the machine of a plan as a live XState actor with a simulated clock. */
import { createActor } from "xstate";
import { Agenda } from "./agenda.ts";
import {
  createPlannedMachine,
  findService,
  getDurationMs,
  type MachinePlan,
  type ServiceInput,
  type TrailContext,
} from "./random-machine.ts";

/** Event for the actor, at the time when the durable machine processed or refused it. */
export interface TimedEvent {
  readonly at: number;
  readonly type: string;
  readonly n: number | undefined;
  readonly isRefused: boolean;
}

/** End of a machine: its last state, and every state in order. */
export interface MachineEnd {
  readonly isDone: boolean;
  readonly value: unknown;
  readonly context: TrailContext;
  readonly values: readonly unknown[];
}

/** Result of the reference; `tie`: two results or delays at one time, whose order XState does not define. */
export type LiveResult = (MachineEnd & { readonly violations: readonly string[] }) | "tie";

/** Inputs of the reference. */
export interface LiveInput {
  readonly events: readonly TimedEvent[];
  /** Times at which calls ended, where a crash lost their first end. */
  readonly endTimes: ReadonlyMap<string, number>;
  readonly until: number;
}

/** Runs a plan as a live actor. */
export async function runLive(plan: MachinePlan, { events, endTimes, until }: LiveInput): Promise<LiveResult> {
  const agenda = new Agenda();
  const times: number[] = [];
  const violations: string[] = [];
  const call = (input: ServiceInput, signal: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      const at = endTimes.get(getCallId(input)) ?? agenda.now + getDurationMs(plan, input);
      const cancel = agenda.add(at, 0, () => {
        times.push(agenda.now);
        if (findService(plan, input.src).fails) reject(new Error(`no ${getCallId(input)}`));
        else resolve(getCallId(input));
      });
      signal.addEventListener("abort", cancel);
    });
  const cancels = new Map<number, () => void>();
  let timerId = 0;
  const clock = {
    setTimeout: (work: () => void, ms: number): number => {
      const id = ++timerId;
      const fire = (): void => {
        times.push(agenda.now);
        work();
      };
      cancels.set(id, agenda.add(agenda.now + ms, 1, fire));
      return id;
    },
    clearTimeout: (id: number): void => cancels.get(id)?.(),
  };
  const actor = createActor(createPlannedMachine(plan, call), { clock });
  const values: unknown[] = [];
  actor.subscribe(({ value }) => addValue(values, value));
  actor.start();
  for (const { at, type, n, isRefused } of events)
    agenda.add(at, 2, () => {
      const event = { type, n };
      const isAccepted = actor.getSnapshot().status === "active" && actor.getSnapshot().can(event);
      // The order of an event and a refusal at one time is not recorded.
      const isAlone = events.filter((other) => other.at === at).length === 1;
      if (isAlone && isAccepted === isRefused)
        violations.push(`at ${at}, the live actor ${isAccepted ? "accepts" : "refuses"} ${type}`);
      if (!isRefused) actor.send(event);
    });
  await agenda.settle();
  while (agenda.step(until)) await agenda.settle();
  const { status, value, context } = actor.getSnapshot();
  actor.stop();
  if (new Set(times).size < times.length) return "tie";
  return { isDone: status === "done", value, context, values, violations };
}

/** Adds a state value unless it equals the value before. */
export function addValue(values: unknown[], value: unknown): void {
  if (JSON.stringify(values.at(-1)) !== JSON.stringify(value)) values.push(value);
}

/** Returns the id of a call: the same in every process. */
export function getCallId({ src, visit }: ServiceInput): string {
  return `${src}#${visit}`;
}
