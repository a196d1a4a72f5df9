/**
 * The kernel: runs XState machines as pure functions, `step(snapshot, event) → [snapshot, effects]`.
 *
 * No actor is ever started: a live actor would start its promises before anyone could save the decision, lose its timers
 * when it is restored, and run its promises again. What a machine wants done (invoke, spawn, after, raise with a delay,
 * cancel, named actions) comes out as effects; results go back in as `xstate.done.actor.<id>`, `xstate.error.actor.<id>`
 * or the timer's event.
 */
import {
  type AnyActorLogic,
  type AnyActorRef,
  type AnyActorScope,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyTransitionDefinition,
  createActor,
  fromCallback,
  getNextTransitions,
} from "xstate";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, type Json } from "../../base/json.ts";

/** What a transition wants done, in order. An id is unique among the effects of one machine instance; "" where none was given. */
export type Effect =
  | { readonly kind: "start"; readonly id: string; readonly src: string; readonly input: unknown }
  | { readonly kind: "stop"; readonly id: string }
  | { readonly kind: "timer"; readonly id: string; readonly event: AnyEventObject; readonly delayMs: number }
  | { readonly kind: "cancel"; readonly id: string }
  | {
      readonly kind: "send";
      /** Another actor of the machine by id, the machine itself, or what started it. */
      readonly to: { readonly id: string } | "self" | "parent";
      readonly id: string;
      readonly event: AnyEventObject;
      readonly delayMs: number | undefined;
    }
  | {
      readonly kind: "action";
      readonly name: string;
      readonly params: unknown;
      readonly run: (() => void) | undefined;
    };

/** Where a machine stands. `value` is plain data and enough to restore a machine without context. */
export interface Snapshot {
  readonly value: Json;
  readonly context: unknown;
  readonly status: "active" | "done" | "error" | "stopped";
  readonly tags: ReadonlySet<string>;
  readonly output: unknown;
  readonly error: unknown;
}

/** A guard that was asked on the way; one without a name is called `inline`. */
export interface GuardResult {
  readonly guard: string;
  readonly params: unknown;
  readonly result: boolean;
}

/** What XState did on the way, in its order: actors that it made, actions, microsteps. */
export type TrailStep =
  | { readonly kind: "actor"; readonly id: string; readonly logic: AnyActorLogic }
  | { readonly kind: "action"; readonly type: string; readonly params: unknown }
  | {
      readonly kind: "microstep";
      readonly event: AnyEventObject;
      readonly snapshot: AnyMachineSnapshot;
      readonly transitions: readonly AnyTransitionDefinition[];
    };

/** How a machine came to its next snapshot: for records and inspectors, nothing is decided by it. */
export interface Trail {
  readonly guards: readonly GuardResult[];
  readonly steps: readonly TrailStep[];
}

/** The next snapshot, what is wanted done, and how it came about. */
export type Step = readonly [Snapshot, readonly Effect[], Trail];

/** A machine as pure functions. */
export interface Kernel {
  /** Enter the machine. */
  initial(input?: unknown): Step;
  /** Take one event; throws `event_refused` when the state does not accept it, `machine_failed` when a guard or an action throws. */
  step(snapshot: Snapshot, event: AnyEventObject): Step;
  /** Stand where `value` says, without entry effects; `children` are the ids of actors that are under way besides those its states invoke. */
  restore(value: Json, context?: unknown, children?: readonly string[]): Snapshot;
  /** Event types that the state accepts, guards aside. */
  accepts(snapshot: Snapshot): readonly string[];
}

/** Where a machine stands that was not entered yet. */
export const unentered: Snapshot = Object.freeze({
  value: null,
  context: undefined,
  status: "active",
  tags: new Set<string>(),
  output: undefined,
  error: undefined,
});

interface Held extends Snapshot {
  readonly machine: AnyMachineSnapshot;
  /** Transitions taken from here before, where the machine is a table. */
  readonly taken: Map<string, Step> | undefined;
}

/** The snapshot as XState has it; undefined where the machine was not entered. */
export function xstateSnapshotOf(snapshot: Snapshot): AnyMachineSnapshot | undefined {
  return "machine" in snapshot ? (snapshot as Held).machine : undefined;
}

/** Microsteps that one event may take before the machine counts as caught in a loop. */
const maxIterations = 10_000;

/** A kernel for any machine. */
export function createKernel(machine: AnyStateMachine): Kernel {
  return kernelOf(machine, undefined);
}

/**
 * A kernel for a machine without context whose guards have names and read nothing but the event's `key`: each transition is
 * computed by XState once and remembered, so that a step costs a look-up. At most `limit` snapshots are remembered.
 */
export function createTableKernel(
  machine: AnyStateMachine,
  key: (event: AnyEventObject) => string,
  limit = 10_000,
): Kernel {
  return kernelOf(machine, { key, limit, byValue: new Map() });
}

interface Table {
  readonly key: (event: AnyEventObject) => string;
  readonly limit: number;
  readonly byValue: Map<string, Held>;
}

interface Recording {
  readonly guards: GuardResult[];
  readonly steps: TrailStep[];
}

function kernelOf(given: AnyStateMachine, table: Table | undefined): Kernel {
  let recording: Recording | undefined;
  const machine = watched(given, table !== undefined, (guard) => recording?.guards.push(guard));
  const starter = createActor(nothing);
  const self = createActor(table === undefined ? machine : nothing, { parent: starter });
  const scope = inertScope(machine, self, (step) => recording?.steps.push(step));

  function hold(snapshot: AnyMachineSnapshot): Held {
    if (table === undefined) return toHeld(snapshot, undefined);
    const value = JSON.stringify([snapshot.value, snapshot.status]);
    const known = table.byValue.get(value);
    if (known !== undefined) return known;
    if (table.byValue.size >= table.limit) table.byValue.clear();
    const held = toHeld(snapshot, new Map());
    table.byValue.set(value, held);
    return held;
  }

  function collect(work: () => AnyMachineSnapshot): Step {
    const effects: Effect[] = [];
    const trail: Recording = { guards: [], steps: [] };
    scope.actionExecutor = (action) => {
      effects.push(...toEffects(action, scope.self, starter));
      trail.steps.push({ kind: "action", type: action.type, params: withoutActor(action) });
    };
    recording = trail;
    try {
      const next = hold(work());
      // Readers of events get the guards.
      deepFreeze(trail.guards);
      return [next, effects, table === undefined ? trail : { ...trail, steps: ofOneMicrostep(trail.steps, next) }];
    } finally {
      recording = undefined;
    }
  }

  function enter(input: unknown): Step {
    const still = table === undefined ? undefined : enteredStill(machine);
    return collect(() => still ?? failLoud(machine, machine.getInitialSnapshot(scope, input)));
  }

  let first: Step | undefined;
  return {
    initial: (input) => {
      if (table === undefined) return enter(input);
      first ??= enter(input);
      return first;
    },
    step: (snapshot, event) => {
      const from = snapshot as Held;
      const mark = table?.key(event);
      const known = mark === undefined ? undefined : from.taken?.get(mark);
      if (known !== undefined) return known;
      if (!isAccepted(machine, from, event)) throw refused(machine, from, event);
      const next = collect(() => failLoud(machine, transition(machine, from.machine, event, scope)));
      if (mark !== undefined) from.taken?.set(mark, next);
      return next;
    },
    restore: (value, context, children = []) =>
      hold(
        withChildren(
          machine.resolveState({ value: value as AnyMachineSnapshot["value"], context: context ?? {} }),
          children,
        ),
      ),
    accepts: (snapshot) => acceptedEvents(snapshot as Held),
  };
}

/**
 * The first states of a machine without context, where entering them does nothing: XState's own way compares each with each,
 * 40 ms for 100 parallel nodes.
 */
function enteredStill(machine: AnyStateMachine): AnyMachineSnapshot | undefined {
  const first: AnyMachineSnapshot = machine.resolveState({ value: {}, context: {} });
  const still = first._nodes.every(
    ({ type, entry, invoke, always, initial }) =>
      type !== "final" &&
      entry.length === 0 &&
      invoke.length === 0 &&
      always === undefined &&
      (initial?.actions.length ?? 0) === 0,
  );
  return still ? first : undefined;
}

function transition(
  machine: AnyStateMachine,
  from: AnyMachineSnapshot,
  event: AnyEventObject,
  scope: AnyActorScope,
): AnyMachineSnapshot {
  try {
    return machine.transition(from, event, scope) as AnyMachineSnapshot;
  } catch (cause) {
    throw machineFailed(machine, `taking "${event.type}"`, cause);
  }
}

/** A state that XState left by an error is the run's error here, not a silent end. An error event that no state handles stays a status. */
function failLoud(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  if (snapshot.status === "error" && snapshot._nodes.length === 1)
    throw machineFailed(machine, "entering its first state", snapshot.error);
  return snapshot;
}

function isAccepted(machine: AnyStateMachine, from: Held, event: AnyEventObject): boolean {
  if (from.status !== "active") return false;
  if (event.type.startsWith("xstate.error.")) return true;
  try {
    return machine.getTransitionData(from.machine, event).length > 0;
  } catch (cause) {
    throw machineFailed(machine, `a guard of "${event.type}"`, cause);
  }
}

function acceptedEvents(from: Held): readonly string[] {
  if (from.status !== "active") return [];
  return [...new Set(getNextTransitions(from.machine).map((candidate) => candidate.eventType))].filter(
    (type) => type !== "",
  );
}

function refused(machine: AnyStateMachine, from: Held, event: AnyEventObject): StatewrightError {
  const accepted = acceptedEvents(from);
  return new StatewrightError("event_refused", {
    what: `the machine "${machine.id}" in ${JSON.stringify(from.value)} does not accept "${event.type}"`,
    next:
      accepted.length === 0
        ? "It has finished and accepts none"
        : `It accepts ${accepted.map((type) => `"${type}"`).join(", ")}`,
    details: { value: from.value, event: event.type, accepts: accepted },
  });
}

function machineFailed(machine: AnyStateMachine, when: string, cause: unknown): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `the machine "${machine.id}" threw while ${when}`,
    next: "Mend the guard, action or expression that its cause names",
    cause,
  });
}

function toHeld(snapshot: AnyMachineSnapshot, taken: Held["taken"]): Held {
  return {
    // Frozen: it is remembered for every run of the machine, and readers of events get it too.
    value: deepFreeze(snapshot.value as Json),
    context: snapshot.context,
    status: snapshot.status,
    tags: snapshot.tags,
    output: snapshot.output,
    error: snapshot.error,
    machine: snapshot,
    taken,
  };
}

/** A restored snapshot with the actors that its states invoke, by name: leaving such a state stops them. */
function withChildren(snapshot: AnyMachineSnapshot, more: readonly string[]): AnyMachineSnapshot {
  const invoked = snapshot._nodes.flatMap((node) => node.invoke.map(({ id }) => id));
  return Object.assign(snapshot, { children: Object.fromEntries([...invoked, ...more].map((id) => [id, { id }])) });
}

/** The machine with guards that tell what they say and an end to its loops of eventless transitions; the given one stays as it is. */
function watched(given: AnyStateMachine, allNamed: boolean, told: (guard: GuardResult) => void): AnyStateMachine {
  const named = Object.entries(given.implementations.guards as Readonly<Record<string, unknown>>);
  const guards = Object.fromEntries(
    named.map(([name, guard]) => [name, isPredicate(guard) ? tellingGuard(name, guard, told) : guard]),
  );
  const { maxIterations: most } = given.options;
  // XState's own default is Infinity, with which such a loop never ends.
  const options = { ...given.options, maxIterations: Number.isFinite(most) ? most : maxIterations };
  if (allNamed || inlineGuards(given).length === 0) return viewOf(given, guards, options);
  const machine = given.provide({ guards } as Parameters<AnyStateMachine["provide"]>[0]);
  for (const { transition, guard } of inlineGuards(machine))
    Object.assign(transition, { guard: tellingGuard(inlineName(guard), guard, told) });
  return Object.assign(machine, { options });
}

/** The same states under other guards: `provide` would build each of them again, 5 ms for 100 nodes. */
function viewOf(given: AnyStateMachine, guards: object, options: object): AnyStateMachine {
  const { getInitialSnapshot } = Object.getPrototypeOf(given) as Pick<AnyStateMachine, "getInitialSnapshot">;
  return Object.create(given, {
    implementations: { value: { ...given.implementations, guards } },
    options: { value: options },
    // Its own is bound to the given machine, whose guards its snapshots would ask.
    getInitialSnapshot: { value: getInitialSnapshot },
  }) as AnyStateMachine;
}

/** Guards that stand in the transitions as functions, without a name. */
function inlineGuards(machine: AnyStateMachine): readonly { readonly transition: object; readonly guard: Predicate }[] {
  const found: { readonly transition: object; readonly guard: Predicate }[] = [];
  const nodes = [machine.root];
  for (const node of nodes) {
    nodes.push(...Object.values(node.states));
    for (const transition of [...node.transitions.values(), node.always ?? []].flat()) {
      const { guard } = transition as { readonly guard?: unknown };
      if (isPredicate(guard)) found.push({ transition, guard });
    }
  }
  return found;
}

type Predicate = (args: unknown, params: unknown) => boolean;

/** A function written in place is called after its key, which says nothing. */
function inlineName({ name }: Predicate): string {
  return name === "" || name === "guard" ? "inline" : name;
}

/** A function of the author. Combinations such as `and` ask others, which tell for themselves. */
function isPredicate(guard: unknown): guard is Predicate {
  return typeof guard === "function" && !("check" in guard);
}

function tellingGuard(name: string, guard: Predicate, told: (guard: GuardResult) => void): Predicate {
  return (args, params) => {
    const result = guard(args, params);
    told({ guard: name, params, result: Boolean(result) });
    return result;
  };
}

/** Stands for what starts a machine, and for a machine whose states and guards never ask for themselves: a real one would be entered. */
const nothing: AnyActorLogic = fromCallback(() => undefined);

/** One scope per machine, made once: it records what a transition wants done and does nothing. */
function inertScope(machine: AnyStateMachine, self: AnyActorRef, told: (step: TrailStep) => void): AnyActorScope {
  self.system.inspect((event) => {
    if (event.type === "@xstate.microstep" && event.actorRef === self)
      told({
        kind: "microstep",
        event: event.event,
        snapshot: event.snapshot as AnyMachineSnapshot,
        transitions: event._transitions,
      });
    if (event.type !== "@xstate.actor") return;
    const { id, logic, _parent } = event.actorRef as AnyActorRef & { readonly logic: AnyActorLogic };
    if (_parent === self) told({ kind: "actor", id, logic });
  });
  return {
    self,
    id: machine.id,
    sessionId: machine.id,
    system: self.system,
    logger: () => undefined,
    // Only an actor spawned inside an assign is put off while a step is computed: it would be known to nobody but itself.
    defer: () => {
      throw new TypeError("spawn inside assign makes an actor that cannot be saved: use spawnChild with an id");
    },
    emit: () => undefined,
    stopChild: () => undefined,
    actionExecutor: () => undefined,
  };
}

/** A machine without context is in its next snapshot after one microstep: that snapshot is held already. */
function ofOneMicrostep(steps: readonly TrailStep[], next: Held): readonly TrailStep[] {
  return steps.map((step) => (step.kind === "microstep" ? { ...step, snapshot: next.machine } : step));
}

/** The actor that XState made stands for nothing and would be held with the step: its id says enough. */
function withoutActor({ type, params }: Executable): unknown {
  if (typeof params !== "object" || params === null || !("id" in params)) return params;
  if (type === "xstate.stopChild") return { id: params.id };
  return type === "xstate.spawnChild" ? { ...params, actorRef: undefined, id: idOfChild({ ...params }) } : params;
}

interface Executable {
  readonly type: string;
  readonly params: unknown;
  readonly info: unknown;
  readonly exec: ((info: never, params: never) => void) | undefined;
}

function toEffects(action: Executable, self: AnyActorRef, starter: AnyActorRef): readonly Effect[] {
  const params = (action.params ?? {}) as Record<string, unknown>;
  switch (action.type) {
    case "xstate.spawnChild":
      return [{ kind: "start", id: idOfChild(params), src: String(params["src"]), input: params["input"] }];
    case "xstate.stopChild":
      return typeof action.params === "object" && action.params !== null && "id" in action.params
        ? [{ kind: "stop", id: String(action.params.id) }]
        : [];
    case "xstate.raise":
      if (typeof params["delay"] !== "number") return [];
      return [{ kind: "timer", id: idOf(params), event: params["event"] as AnyEventObject, delayMs: params["delay"] }];
    case "xstate.sendTo": {
      const { to } = params;
      const delayMs = typeof params["delay"] === "number" ? params["delay"] : undefined;
      const target = to === self ? "self" : to === starter ? "parent" : { id: String((to as AnyActorRef).id) };
      return [{ kind: "send", to: target, id: idOf(params), event: params["event"] as AnyEventObject, delayMs }];
    }
    case "xstate.cancel":
      return [{ kind: "cancel", id: String(params["sendId"]) }];
    default: {
      const { exec, info } = action;
      return [
        {
          kind: "action",
          name: action.type,
          params: action.params,
          run: exec === undefined ? undefined : () => exec(info as never, action.params as never),
        },
      ];
    }
  }
}

function idOf(params: Readonly<Record<string, unknown>>): string {
  return params["id"] === undefined ? "" : String(params["id"]);
}

/** An id may be computed: the actor that was made, and never started, has the result. */
function idOfChild(params: Readonly<Record<string, unknown>>): string {
  return typeof params["id"] === "function" ? String((params["actorRef"] as AnyActorRef).id) : idOf(params);
}
