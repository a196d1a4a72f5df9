/**
 * The kernel: runs XState machines as pure functions, `step(snapshot, event) → [snapshot, effects]`.
 *
 * No actor is ever started: a live actor would start its promises before the decision is saved, lose its timers on a
 * restore, and repeat its promises. The actions of a machine (invoke, spawn, after, raise with a delay, cancel, named
 * actions) are returned as effects; results are passed back as `xstate.done.actor.<id>`, `xstate.error.actor.<id>` or
 * the timer's event.
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

/**
 * An effect requested by a transition; effects are ordered. Ids are unique among the effects of a machine instance;
 * "" without an id.
 */
export type Effect =
  | { readonly kind: "start"; readonly id: string; readonly src: string; readonly input: unknown }
  | { readonly kind: "stop"; readonly id: string }
  | { readonly kind: "timer"; readonly id: string; readonly event: AnyEventObject; readonly delayMs: number }
  | { readonly kind: "cancel"; readonly id: string }
  | {
      readonly kind: "send";
      /** Target: another actor of the machine by id, the machine itself, or its parent. */
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

/** State of a machine. `value` is plain data and sufficient to restore a machine without context. */
export interface Snapshot {
  readonly value: Json;
  readonly context: unknown;
  readonly status: "active" | "done" | "error" | "stopped";
  readonly tags: ReadonlySet<string>;
  readonly output: unknown;
  readonly error: unknown;
}

/** Result of an evaluated guard; a guard without a name is called `inline`. */
export interface GuardResult {
  readonly guard: string;
  readonly params: unknown;
  readonly result: boolean;
}

/** A step inside a transition, in XState's order: created actors, actions, microsteps. */
export type TrailStep =
  | { readonly kind: "actor"; readonly id: string; readonly logic: AnyActorLogic }
  | { readonly kind: "action"; readonly type: string; readonly params: unknown }
  | {
      readonly kind: "microstep";
      readonly event: AnyEventObject;
      readonly snapshot: AnyMachineSnapshot;
      readonly transitions: readonly AnyTransitionDefinition[];
    };

/** Trace of a transition, for records and inspectors only; no decision depends on the trail. */
export interface Trail {
  readonly guards: readonly GuardResult[];
  readonly steps: readonly TrailStep[];
}

/** The next snapshot, the requested effects, and the trail. */
export type Step = readonly [Snapshot, readonly Effect[], Trail];

/** A machine as pure functions. */
export interface Kernel {
  /** Enters the machine. */
  enter(input?: unknown): Step;
  /**
   * Applies a single event. Throws `event_refused` when the state does not accept the event, and `machine_failed` when
   * a guard or an action throws.
   */
  step(snapshot: Snapshot, event: AnyEventObject): Step;
  /**
   * Restores the snapshot with this `value`, without entry effects. `children` are ids of running actors besides the
   * actors invoked by its states.
   */
  restore(value: Json, context?: unknown, children?: readonly string[]): Snapshot;
  /** Lists the event types that the state accepts, regardless of guards. */
  accepts(snapshot: Snapshot): readonly string[];
}

/** Snapshot of a machine before its entry. */
export const notEnteredSnapshot: Snapshot = Object.freeze({
  value: null,
  context: undefined,
  status: "active",
  tags: new Set<string>(),
  output: undefined,
  error: undefined,
});

interface CachedSnapshot extends Snapshot {
  readonly machine: AnyMachineSnapshot;
  /** Memoized transitions from this snapshot; undefined when not memoized. */
  readonly transitions: Map<string, Step> | undefined;
}

/** Returns the XState snapshot; undefined for a machine before its entry. */
export function getXStateSnapshot(snapshot: Snapshot): AnyMachineSnapshot | undefined {
  return "machine" in snapshot ? (snapshot as CachedSnapshot).machine : undefined;
}

/** Maximum number of microsteps per event, above which the machine counts as an infinite loop. */
const maxIterations = 10_000;

/** Creates a kernel for any machine. */
export function createKernel(machine: AnyStateMachine): Kernel {
  return buildKernel(machine, undefined);
}

/**
 * Creates a kernel for a machine without context, whose guards have names and read only the event's `key`. XState
 * computes each transition once; later steps are table look-ups. The table is cleared at `limit` snapshots.
 */
export function createTableKernel(
  machine: AnyStateMachine,
  key: (event: AnyEventObject) => string,
  limit = 10_000,
): Kernel {
  return buildKernel(machine, { getKey: key, limit, byValue: new Map() });
}

interface Table {
  readonly getKey: (event: AnyEventObject) => string;
  readonly limit: number;
  readonly byValue: Map<string, CachedSnapshot>;
}

interface Recording {
  readonly guards: GuardResult[];
  readonly steps: TrailStep[];
}

function buildKernel(source: AnyStateMachine, table: Table | undefined): Kernel {
  let recording: Recording | undefined;
  const machine = instrumentMachine(source, (guard) => recording?.guards.push(guard), {
    allNamed: table !== undefined,
  });
  const parentActor = createActor(placeholderLogic);
  const self = createActor(table === undefined ? machine : placeholderLogic, { parent: parentActor });
  const scope = createInertScope(machine, self, (step) => recording?.steps.push(step));

  function cacheSnapshot(snapshot: AnyMachineSnapshot): CachedSnapshot {
    if (table === undefined) return toCachedSnapshot(snapshot, undefined);
    const value = JSON.stringify([snapshot.value, snapshot.status]);
    const known = table.byValue.get(value);
    if (known !== undefined) return known;
    if (table.byValue.size >= table.limit) table.byValue.clear();
    const cached = toCachedSnapshot(snapshot, new Map());
    table.byValue.set(value, cached);
    return cached;
  }

  function collect(work: () => AnyMachineSnapshot): Step {
    const effects: Effect[] = [];
    const trail: Recording = { guards: [], steps: [] };
    scope.actionExecutor = (action) => {
      effects.push(...toEffects(action, scope.self, parentActor));
      trail.steps.push({ kind: "action", type: action.type, params: removeActor(action) });
    };
    recording = trail;
    try {
      const next = cacheSnapshot(work());
      // Readers of events get the guards.
      deepFreeze(trail.guards);
      return [
        next,
        effects,
        table === undefined ? trail : { ...trail, steps: replaceMicrostepSnapshots(trail.steps, next) },
      ];
    } finally {
      recording = undefined;
    }
  }

  function enter(input: unknown): Step {
    const initialSnapshot = table === undefined ? undefined : findEffectFreeEntry(machine);
    return collect(() => initialSnapshot ?? throwOnEntryError(machine, machine.getInitialSnapshot(scope, input)));
  }

  let first: Step | undefined;
  return {
    enter: (input) => {
      if (table === undefined) return enter(input);
      first ??= enter(input);
      return first;
    },
    step: (snapshot, event) => {
      const from = snapshot as CachedSnapshot;
      const transitionKey = table?.getKey(event);
      const known = transitionKey === undefined ? undefined : from.transitions?.get(transitionKey);
      if (known !== undefined) return known;
      if (!isAccepted(machine, from, event)) throw createRefusedError(machine, from, event);
      const next = collect(() => throwOnEntryError(machine, transition(machine, from.machine, event, scope)));
      if (transitionKey !== undefined) from.transitions?.set(transitionKey, next);
      return next;
    },
    restore: (value, context, children = []) =>
      cacheSnapshot(
        addChildren(
          machine.resolveState({ value: value as AnyMachineSnapshot["value"], context: context ?? {} }),
          children,
        ),
      ),
    accepts: (snapshot) => listAcceptedEvents(snapshot as CachedSnapshot),
  };
}

/**
 * Returns the initial snapshot of a machine without context and without entry effects. XState's own entry compares
 * every pair of states: 40 ms for 100 parallel nodes.
 */
function findEffectFreeEntry(machine: AnyStateMachine): AnyMachineSnapshot | undefined {
  const snapshot: AnyMachineSnapshot = machine.resolveState({ value: {}, context: {} });
  const isEffectFree = snapshot._nodes.every(
    ({ type, entry, invoke, always, initial }) =>
      type !== "final" &&
      entry.length === 0 &&
      invoke.length === 0 &&
      always === undefined &&
      (initial?.actions.length ?? 0) === 0,
  );
  return isEffectFree ? snapshot : undefined;
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
    throw createMachineError(machine, `taking "${event.type}" in the state ${JSON.stringify(from.value)}`, cause);
  }
}

/** Throws when a state failed on entry: XState would end silently. An unhandled error event stays an error status. */
function throwOnEntryError(machine: AnyStateMachine, snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  if (snapshot.status === "error" && snapshot._nodes.length === 1)
    throw createMachineError(machine, `entering its first state ${describeFirstState(machine)}`, snapshot.error);
  return snapshot;
}

function describeFirstState({ root }: AnyStateMachine): string {
  const targets = root.type === "compound" ? (root.initial.target ?? []) : [root];
  return targets.map(({ id }) => `"${id}"`).join(", ");
}

function isAccepted(machine: AnyStateMachine, from: CachedSnapshot, event: AnyEventObject): boolean {
  if (from.status !== "active") return false;
  if (event.type.startsWith("xstate.error.")) return true;
  try {
    return machine.getTransitionData(from.machine, event).length > 0;
  } catch (cause) {
    throw createMachineError(machine, `evaluating a guard of "${event.type}"`, cause);
  }
}

function listAcceptedEvents(from: CachedSnapshot): readonly string[] {
  if (from.status !== "active") return [];
  return [...new Set(getNextTransitions(from.machine).map((candidate) => candidate.eventType))].filter(
    (type) => type !== "",
  );
}

function createRefusedError(machine: AnyStateMachine, from: CachedSnapshot, event: AnyEventObject): StatewrightError {
  const accepted = listAcceptedEvents(from);
  return new StatewrightError("event_refused", {
    what: `the machine "${machine.id}" in ${JSON.stringify(from.value)} does not accept "${event.type}"`,
    next:
      accepted.length === 0
        ? "It has finished and accepts no event"
        : `It accepts ${accepted.map((type) => `"${type}"`).join(", ")}`,
    details: { value: from.value, event: event.type, accepts: accepted },
  });
}

function createMachineError(machine: AnyStateMachine, when: string, cause: unknown): StatewrightError {
  return new StatewrightError("machine_failed", {
    what: `the machine "${machine.id}" threw while ${when}`,
    next:
      cause instanceof SpawnError
        ? "Use spawnChild with an id instead of spawn inside an assign"
        : "Fix the guard, action or expression named in the cause",
    cause,
  });
}

function toCachedSnapshot(snapshot: AnyMachineSnapshot, transitions: CachedSnapshot["transitions"]): CachedSnapshot {
  return {
    // Frozen: the value is shared by every run of the machine and by readers of events.
    value: deepFreeze(snapshot.value as Json),
    context: snapshot.context,
    status: snapshot.status,
    tags: snapshot.tags,
    output: snapshot.output,
    error: snapshot.error,
    machine: snapshot,
    transitions,
  };
}

/** Adds the actors invoked by the states of a restored snapshot, by id, so that leaving such a state stops them. */
function addChildren(snapshot: AnyMachineSnapshot, childIds: readonly string[]): AnyMachineSnapshot {
  const invoked = snapshot._nodes.flatMap((node) => node.invoke.map(({ id }) => id));
  return Object.assign(snapshot, { children: Object.fromEntries([...invoked, ...childIds].map((id) => [id, { id }])) });
}

/**
 * Returns a copy of the machine whose guards report their results and whose eventless loops are limited. The source
 * machine is unchanged.
 */
function instrumentMachine(
  source: AnyStateMachine,
  onGuard: (guard: GuardResult) => void,
  { allNamed }: { readonly allNamed: boolean },
): AnyStateMachine {
  const namedGuards = Object.entries(source.implementations.guards as Readonly<Record<string, unknown>>);
  const guards = Object.fromEntries(
    namedGuards.map(([name, guard]) => [name, isPredicate(guard) ? wrapGuard(name, guard, onGuard) : guard]),
  );
  const { maxIterations: configured } = source.options;
  // XState's default is Infinity: an eventless loop would never end.
  const options = { ...source.options, maxIterations: Number.isFinite(configured) ? configured : maxIterations };
  if (allNamed || listInlineGuards(source).length === 0) return createView(source, guards, options);
  const machine = source.provide({ guards } as Parameters<AnyStateMachine["provide"]>[0]);
  for (const { transition, guard } of listInlineGuards(machine))
    Object.assign(transition, { guard: wrapGuard(getGuardName(guard), guard, onGuard) });
  return Object.assign(machine, { options });
}

/** Creates a view of the machine with other guards. `provide` would rebuild every state: 5 ms for 100 nodes. */
function createView(source: AnyStateMachine, guards: object, options: object): AnyStateMachine {
  const { getInitialSnapshot } = Object.getPrototypeOf(source) as Pick<AnyStateMachine, "getInitialSnapshot">;
  return Object.create(source, {
    implementations: { value: { ...source.implementations, guards } },
    options: { value: options },
    // The own method is bound to the source machine, so its snapshots would call the source guards.
    getInitialSnapshot: { value: getInitialSnapshot },
  }) as AnyStateMachine;
}

/** Lists the guards that are inline functions of transitions. */
function listInlineGuards(
  machine: AnyStateMachine,
): readonly { readonly transition: object; readonly guard: Predicate }[] {
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

/** Returns the guard's name. An inline function is named after its property key, which carries no information. */
function getGuardName({ name }: Predicate): string {
  return name === "" || name === "guard" ? "inline" : name;
}

/**
 * Returns true for a guard function of the author. Combinators such as `and` call other guards, which report
 * themselves.
 */
function isPredicate(guard: unknown): guard is Predicate {
  return typeof guard === "function" && !("check" in guard);
}

function wrapGuard(name: string, guard: Predicate, onGuard: (guard: GuardResult) => void): Predicate {
  return (args, params) => {
    const result = guard(args, params);
    onGuard({ guard: name, params, result: Boolean(result) });
    return result;
  };
}

/**
 * Placeholder logic for the parent of a machine, and for a machine whose guards never use `self`. A real machine
 * actor would be entered.
 */
const placeholderLogic: AnyActorLogic = fromCallback(() => undefined);

/** Thrown by a spawn inside an assign. */
class SpawnError extends TypeError {}

/** Creates the actor scope of a machine, once per machine. The scope records requested effects and performs none. */
function createInertScope(
  machine: AnyStateMachine,
  self: AnyActorRef,
  onStep: (step: TrailStep) => void,
): AnyActorScope {
  self.system.inspect((event) => {
    if (event.type === "@xstate.microstep" && event.actorRef === self)
      onStep({
        kind: "microstep",
        event: event.event,
        snapshot: event.snapshot as AnyMachineSnapshot,
        transitions: event._transitions,
      });
    if (event.type !== "@xstate.actor") return;
    const { id, logic, _parent } = event.actorRef as AnyActorRef & { readonly logic: AnyActorLogic };
    if (_parent === self) onStep({ kind: "actor", id, logic });
  });
  return {
    self,
    id: machine.id,
    sessionId: machine.id,
    system: self.system,
    logger: () => undefined,
    // XState defers only actors spawned inside an assign. Such an actor is known only to itself and cannot be saved.
    defer: () => {
      throw new SpawnError("spawn inside assign creates an actor that cannot be saved. Use spawnChild with an id");
    },
    emit: () => undefined,
    stopChild: () => undefined,
    actionExecutor: () => undefined,
  };
}

/**
 * Replaces microstep snapshots by the cached next snapshot: a machine without context reaches it after a single
 * microstep.
 */
function replaceMicrostepSnapshots(steps: readonly TrailStep[], next: CachedSnapshot): readonly TrailStep[] {
  return steps.map((step) => (step.kind === "microstep" ? { ...step, snapshot: next.machine } : step));
}

/** Removes the placeholder actor from action parameters: its id is sufficient, and the step would retain the actor. */
function removeActor({ type, params }: Executable): unknown {
  if (typeof params !== "object" || params === null || !("id" in params)) return params;
  if (type === "xstate.stopChild") return { id: params.id };
  return type === "xstate.spawnChild" ? { ...params, actorRef: undefined, id: getChildId({ ...params }) } : params;
}

interface Executable {
  readonly type: string;
  readonly params: unknown;
  readonly info: unknown;
  readonly exec: ((info: never, params: never) => void) | undefined;
}

function toEffects(action: Executable, self: AnyActorRef, parentActor: AnyActorRef): readonly Effect[] {
  const params = (action.params ?? {}) as Record<string, unknown>;
  switch (action.type) {
    case "xstate.spawnChild":
      return [{ kind: "start", id: getChildId(params), src: String(params["src"]), input: params["input"] }];
    case "xstate.stopChild":
      return typeof action.params === "object" && action.params !== null && "id" in action.params
        ? [{ kind: "stop", id: String(action.params.id) }]
        : [];
    case "xstate.raise":
      if (typeof params["delay"] !== "number") return [];
      return [{ kind: "timer", id: getId(params), event: params["event"] as AnyEventObject, delayMs: params["delay"] }];
    case "xstate.sendTo": {
      const { to } = params;
      const delayMs = typeof params["delay"] === "number" ? params["delay"] : undefined;
      const target = to === self ? "self" : to === parentActor ? "parent" : { id: String((to as AnyActorRef).id) };
      return [{ kind: "send", to: target, id: getId(params), event: params["event"] as AnyEventObject, delayMs }];
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

function getId(params: Readonly<Record<string, unknown>>): string {
  return params["id"] === undefined ? "" : String(params["id"]);
}

/** Returns the id of a child. For a computed id, reads the result from the created, never started actor. */
function getChildId(params: Readonly<Record<string, unknown>>): string {
  return typeof params["id"] === "function" ? String((params["actorRef"] as AnyActorRef).id) : getId(params);
}
