/** Random machines as plain data: parallel regions of promises, delays, resting and final states, and their events. */
import { type Chance, createChance } from "@statewright/testing";
import { type AnyEventObject, type AnyStateMachine, assign, createMachine, fromPromise } from "xstate";

/** Effect class of a promise. */
export type Effect = "once" | "idempotent" | "pure";

/** Transition of an event: without a target, only its actions run. */
export interface EventPlan {
  readonly event: string;
  readonly target: number | undefined;
  readonly isGuarded: boolean;
}

/** State of a region. */
export interface StatePlan {
  readonly kind: "promise" | "delay" | "rest" | "final";
  /** Delay, or base of the durations of the promise, in milliseconds. */
  readonly ms: number;
  readonly target: number;
  readonly errorTarget: number;
  readonly effect: Effect;
  readonly fails: boolean;
  readonly events: readonly EventPlan[];
}

/** Region of a machine: its states, the first is the initial state. */
export interface RegionPlan {
  readonly states: readonly StatePlan[];
}

/** Event sent from outside. */
export interface SentEvent {
  readonly at: number;
  readonly type: string;
  /** Process of the sender: the owner of the run at its start, or another process. */
  readonly from: "owner" | "other";
}

/** Crash of all processes at the nth write of the simulation. */
export interface CrashPlan {
  readonly nth: number;
  readonly isAfter: boolean;
}

/** Everything that a seed decides. */
export interface MachinePlan {
  readonly regions: readonly RegionPlan[];
  readonly sent: readonly SentEvent[];
  readonly crashes: readonly CrashPlan[];
  /** Crash between a recorded result and a waiting event, where the machine allows it. */
  readonly crashesBetween: boolean;
  readonly horizonMs: number;
}

/** Event types of all machines. */
const eventTypes: readonly string[] = ["A", "B", "C", "NOTE"];

const horizonMs = 1_500;

/** Creates the plan of a seed. */
export function createMachinePlan(seed: number): MachinePlan {
  const chance = createChance(seed);
  const crashesBetween = chance.flip(0.7);
  const regions = Array.from({ length: 1 + chance.getInteger(3) }, (_, nth) =>
    createRegion(chance, crashesBetween && nth === 0),
  );
  const sent = Array.from(
    { length: 2 + chance.getInteger(6) },
    (): SentEvent => ({
      at: 1 + chance.getInteger(horizonMs),
      type: chance.pick(eventTypes),
      from: chance.pick(["owner", "other"]),
    }),
  );
  const crashCount = chance.flip(0.4) ? 0 : 1 + chance.getInteger(2);
  const crashes = Array.from({ length: crashCount }, () => ({
    nth: 2 + chance.getInteger(11),
    isAfter: chance.flip(0.5),
  }));
  return { regions, sent, crashes, crashesBetween, horizonMs };
}

function createRegion(chance: Chance, startsWithPromise: boolean): RegionPlan {
  const count = 2 + chance.getInteger(3);
  return {
    states: Array.from({ length: count }, (_, nth) => {
      const isPromise = chance.flip(0.5) || (startsWithPromise && nth === 0);
      const kind = isPromise
        ? "promise"
        : chance.pick(["delay", "delay", "rest", nth === 0 ? "delay" : "final"] as const);
      return {
        kind,
        ms: 100 + chance.getInteger(700),
        target: chance.getInteger(count),
        errorTarget: chance.getInteger(count),
        effect: chance.pick(["once", "once", "idempotent", "pure"] as const),
        fails: chance.flip(0.2) && !(startsWithPromise && nth === 0),
        events: kind === "final" ? [] : createEvents(chance, count, startsWithPromise && nth === 0),
      };
    }),
  };
}

function createEvents(chance: Chance, count: number, hasNote: boolean): readonly EventPlan[] {
  return eventTypes.flatMap((event) => {
    const isNote = event === "NOTE";
    if (!chance.flip(isNote ? 0.5 : 0.4) && !(isNote && hasNote)) return [];
    const target = isNote ? undefined : chance.getInteger(count);
    return [{ event, target, isGuarded: !isNote && chance.flip(0.2) }];
  });
}

/** Input of a promise: its name and the number of the visit of its state. */
export interface ServiceInput {
  readonly src: string;
  readonly visit: number;
}

/** Context of a machine: each transition in order, and the number of visits of each promise state. */
export interface TrailContext {
  readonly trail: readonly string[];
  readonly visits: Readonly<Record<string, number>>;
}

/** Returns the name of the promise of a state. */
function getServiceName(region: number, state: number): string {
  return `p${region}_${state}`;
}

/** Returns the plan of a promise by its name. */
export function findService({ regions }: MachinePlan, src: string): StatePlan {
  const [region = 0, state = 0] = src.slice(1).split("_").map(Number);
  return regions[region]?.states[state] as StatePlan;
}

/** Returns the duration of a call: it differs from visit to visit, so that two calls rarely end at one time. */
export function getDurationMs(plan: MachinePlan, { src, visit }: ServiceInput): number {
  return findService(plan, src).ms + ((visit * 37) % 101);
}

/** Creates the XState machine of a plan; `call` is the body of every promise. */
export function createPlannedMachine(
  plan: MachinePlan,
  call: (input: ServiceInput, signal: AbortSignal) => Promise<string>,
): AnyStateMachine {
  const actors = Object.fromEntries(
    plan.regions.flatMap(({ states }, region) =>
      states.flatMap(({ kind }, state) =>
        kind === "promise"
          ? [
              [
                getServiceName(region, state),
                fromPromise<string, ServiceInput>(({ input, signal }) => call(input, signal)),
              ],
            ]
          : [],
      ),
    ),
  );
  const regions = Object.fromEntries(plan.regions.map((region, nth) => [`r${nth}`, createRegionConfig(region, nth)]));
  const config = { id: "random", type: "parallel", context: { trail: [], visits: {} }, states: regions };
  const guards = { even: ({ context }: { context: TrailContext }) => context.trail.length % 2 === 0 };
  return createMachine(config as Parameters<typeof createMachine>[0]).provide({
    actors,
    guards,
  } as never) as AnyStateMachine;
}

/** Returns the effect classes of the promises of a plan. */
export function getEffects({ regions }: MachinePlan): Readonly<Record<string, Effect>> {
  return Object.fromEntries(
    regions.flatMap(({ states }, region) =>
      states.flatMap(({ kind, effect }, state) =>
        kind === "promise" ? [[getServiceName(region, state), effect]] : [],
      ),
    ),
  );
}

function createRegionConfig({ states }: RegionPlan, region: number): object {
  return {
    initial: "s0",
    states: Object.fromEntries(states.map((state, nth) => [`s${nth}`, createStateConfig(state, region, nth)])),
  };
}

function createStateConfig(state: StatePlan, region: number, nth: number): object {
  const { kind, ms, target, errorTarget, events } = state;
  if (kind === "final") return { type: "final" };
  const name = getServiceName(region, nth);
  const to = (index: number): string => `s${index}`;
  const on = Object.fromEntries(
    events.map(({ event, target: next, isGuarded }) => [
      event,
      {
        ...(next === undefined ? {} : { target: to(next), reenter: true }),
        ...(isGuarded ? { guard: "even" } : {}),
        actions: note(`${name} ${event}`),
      },
    ]),
  );
  if (kind === "rest") return { on };
  if (kind === "delay")
    return { on, after: { [ms]: { target: to(target), reenter: true, actions: note(`${name} after`) } } };
  return {
    on,
    entry: assign({
      visits: ({ context }: { context: TrailContext }) => ({
        ...context.visits,
        [name]: (context.visits[name] ?? 0) + 1,
      }),
    }),
    invoke: {
      src: name,
      id: name,
      input: ({ context }: { context: TrailContext }): ServiceInput => ({
        src: name,
        visit: context.visits[name] ?? 0,
      }),
      onDone: { target: to(target), reenter: true, actions: note(`${name} done`) },
      onError: { target: to(errorTarget), reenter: true, actions: note(`${name} failed`) },
    },
  };
}

/** Action that records a transition with the number of its event and the output of its promise. */
function note(label: string): object {
  return assign({
    trail: ({ context, event }: { context: TrailContext; event: AnyEventObject }) => [
      ...context.trail,
      [label, event["n"], event["output"]].filter((part) => part !== undefined).join(" "),
    ],
  });
}
