/**
 * Inspection of a run's machines in the format of XState's `inspect`, for any standard inspector. Its actors are
 * read-only views: they accept no events.
 */
import type {
  AnyActorLogic,
  AnyEventObject,
  AnyMachineSnapshot,
  InspectionEvent,
  Snapshot as XStateSnapshot,
} from "xstate";
import { StatewrightError } from "../../base/errors.ts";
import { getXStateSnapshot, type Snapshot, type Step, type TrailStep } from "../kernel/kernel.ts";

/** Receives inspection events: a function, or an observer such as the observer of `@statelyai/inspect`. */
export type Inspector =
  | ((event: InspectionEvent) => void)
  | { readonly next?: ((event: InspectionEvent) => void) | undefined };

/** Result of a finished actor that is no machine. */
export type ActorEnd = { readonly output: unknown } | { readonly error: unknown };

/** An actor as inspectors see it. */
export interface InspectedActor {
  readonly id: string;
  readonly sessionId: string;
  readonly logic: AnyActorLogic | undefined;
  readonly _parent: InspectedActor | undefined;
  /** Throws `event_refused`: a view accepts no events. */
  readonly send: (event: AnyEventObject) => never;
  /** Returns the current snapshot of the machine. */
  readonly getSnapshot: () => AnyMachineSnapshot | PlainSnapshot;
  /** Returns the ids of the actor, for inspectors that serialize it. */
  readonly toJSON: () => object;
}

/** Snapshot of an actor that is no machine. */
export type PlainSnapshot = XStateSnapshot<unknown> & { readonly input: unknown };

/** An actor of a run, with its inspection state. */
export interface Actor {
  readonly view: InspectedActor;
  readonly parent: Actor | undefined;
  /** The newest actor of each id. */
  readonly children: Map<string, Actor>;
  readonly input: unknown;
  /** Entry step of a machine entered in this process. */
  readonly init: Step | undefined;
  snapshot: AnyMachineSnapshot | PlainSnapshot;
  started: boolean;
}

/**
 * Reports machine activity to an inspector. Contract: the caller reports a transition only after it happened and any
 * required commit is durable.
 */
export interface Inspection {
  /** Root machine of each namespace of the run. */
  readonly machines: Map<string, Actor>;
  /** Reports an entered machine; `inner` returns the entry steps of its child machines. */
  enter(parent: Actor | undefined, id: string, init: Step, options: EnterOptions): Actor;
  /** Reports a machine restored from a snapshot; `inner` returns the snapshots of its child machines. */
  restore(parent: Actor | undefined, id: string, snapshot: Snapshot, inner?: LookupByPath<Snapshot>): Actor;
  /**
   * Reports a transition. `source` is the sending actor; `inner` returns the entry steps of child machines started by
   * the transition.
   */
  transition(actor: Actor, event: AnyEventObject, step: Step, options?: TransitionOptions): void;
  /** Reports that a machine and its child actors were stopped. */
  stop(actor: Actor): void;
  /**
   * Reports the end of an actor that is no machine; `report` reports the resulting transition of its parent machine.
   */
  end(actor: Actor, end: ActorEnd, report: () => void): void;
}

/** Options of `enter`: the input, and the entry steps of child machines. */
interface EnterOptions {
  readonly input: unknown;
  readonly inner?: LookupByPath<Step>;
}

/** Options of `transition`: the sending actor, and the entry steps of child machines. */
interface TransitionOptions {
  readonly source?: Actor | undefined;
  readonly inner?: LookupByPath<Step>;
}

/** Looks up data of a child machine by its path of ids. */
export type LookupByPath<Data> = (ids: readonly string[]) => Data | undefined;

type Body = InspectionEvent extends infer Event ? (Event extends unknown ? Omit<Event, "rootId"> : never) : never;

/**
 * Creates the inspection of a run. Contract: an error thrown by the inspector goes to `onError` and never reaches
 * the run.
 */
export function createInspection(inspector: Inspector, runId: string, onError: (error: unknown) => void): Inspection {
  return new RunInspection(inspector, runId, onError);
}

/** Reports the actors of a run to an inspector. */
class RunInspection implements Inspection {
  readonly machines: Map<string, Actor> = new Map();
  readonly #inspector: Inspector;
  readonly #runId: string;
  readonly #onError: (error: unknown) => void;
  #actorCount = 0;

  constructor(inspector: Inspector, runId: string, onError: (error: unknown) => void) {
    this.#inspector = inspector;
    this.#runId = runId;
    this.#onError = onError;
  }

  enter(parent: Actor | undefined, id: string, init: Step, { input, inner = findNothing }: EnterOptions): Actor {
    const actor = this.#createTree(parent, id, undefined, {
      input,
      inner: (ids) => (ids.length === 0 ? init : inner(ids)),
    });
    this.#start(actor);
    return actor;
  }

  restore(
    parent: Actor | undefined,
    id: string,
    snapshot: Snapshot,
    inner: LookupByPath<Snapshot> = findNothing,
  ): Actor {
    const machine = getXStateSnapshot(snapshot);
    if (machine === undefined) throw new TypeError(`inspection: expected an entered machine for "${id}"`);
    const actor = this.#restoreTree(parent, id, machine, inner);
    this.#start(actor);
    return actor;
  }

  transition(
    actor: Actor,
    event: AnyEventObject,
    [snapshot, , { steps }]: Step,
    { source, inner = findNothing }: TransitionOptions = {},
  ): void {
    const deferred: (() => void)[] = [];
    const inputs = collectInputs(steps);
    this.#emitEvent(actor, event, source);
    for (const step of steps) {
      if (step.kind !== "action") {
        this.#emitStep(actor, step, inputs, inner);
        continue;
      }
      const child = this.#emitAction(actor, step);
      if (child === undefined) continue;
      deferred.push(() => {
        if (step.type === stopAction) this.stop(child);
        else if (child.snapshot.status !== "stopped") this.#start(child);
      });
    }
    actor.snapshot = getXStateSnapshot(snapshot) ?? actor.snapshot;
    for (const runDeferred of deferred) runDeferred();
    this.#emitSnapshot(actor, event);
  }

  stop(actor: Actor): void {
    const { view, started, snapshot } = actor;
    if (snapshot.status !== "active") return;
    actor.snapshot = { ...snapshot, status: "stopped" } as Actor["snapshot"];
    if (!started) return;
    const event = { type: "xstate.stop" };
    const children = [...actor.children.values()].filter((child) => child.snapshot.status === "active");
    for (const child of children)
      this.#emit({ type: "@xstate.action", actorRef: view, action: { type: stopAction, params: child.view } });
    if ("machine" in snapshot)
      this.#emit({ type: "@xstate.microstep", actorRef: view, event, snapshot: actor.snapshot, _transitions: [] });
    for (const child of children) this.stop(child);
    this.#emitSnapshot(actor, event);
  }

  end(actor: Actor, end: ActorEnd, report: () => void): void {
    const failed = "error" in end;
    const event = failed
      ? { type: "xstate.promise.reject", data: end.error }
      : { type: "xstate.promise.resolve", data: end.output };
    this.#emitEvent(actor, event, actor);
    actor.snapshot = createPlainSnapshot(failed ? "error" : "done", end);
    report();
    this.#emitSnapshot(actor, event);
  }

  /** Like XState, creates an actor and the children of its initial state before the actor starts. */
  #createTree(
    parent: Actor | undefined,
    id: string,
    logic: AnyActorLogic | undefined,
    { input, inner }: { readonly input: unknown; readonly inner: LookupByPath<Step> },
  ): Actor {
    const init = inner([]);
    const snapshot = (init && getXStateSnapshot(init[0])) ?? createPlainSnapshot("active", { input });
    const actor = this.#createActor(parent, id, logic ?? getLogic(snapshot), { input, init, snapshot });
    for (const step of init?.[2].steps ?? [])
      if (step.kind !== "action") this.#emitStep(actor, step, collectInputs(init?.[2].steps), inner);
    return actor;
  }

  #restoreTree(
    parent: Actor | undefined,
    id: string,
    snapshot: AnyMachineSnapshot,
    inner: LookupByPath<Snapshot>,
  ): Actor {
    const actor = this.#createActor(parent, id, snapshot.machine, { input: undefined, init: undefined, snapshot });
    for (const child of Object.keys(snapshot.children)) {
      const childSnapshot = inner([child]);
      const machine = childSnapshot && getXStateSnapshot(childSnapshot);
      if (machine !== undefined) this.#restoreTree(actor, child, machine, (ids) => inner([child, ...ids]));
      else
        this.#createActor(actor, child, undefined, {
          input: undefined,
          init: undefined,
          snapshot: createPlainSnapshot("active", {}),
        });
    }
    return actor;
  }

  #createActor(
    parent: Actor | undefined,
    id: string,
    logic: AnyActorLogic | undefined,
    fields: Pick<Actor, "input" | "init" | "snapshot">,
  ): Actor {
    const view: InspectedActor = {
      id,
      sessionId: `${this.#runId}:${this.#actorCount++}`,
      logic,
      _parent: parent?.view,
      send: ({ type }) => refuseSend(id, type),
      getSnapshot: () => actor.snapshot,
      toJSON: () => ({ xstate$$type: 1, id }),
    };
    const actor: Actor = { view, parent, children: new Map(), ...fields, started: false };
    parent?.children.delete(id);
    parent?.children.set(id, actor);
    this.#emit({ type: "@xstate.actor", actorRef: view });
    return actor;
  }

  #start(actor: Actor): void {
    const event = { type: "xstate.init", input: actor.input };
    actor.started = true;
    this.#emitEvent(actor, event, actor.parent);
    for (const child of actor.children.values()) this.#start(child);
    for (const step of actor.init?.[2].steps ?? []) if (step.kind === "action") this.#emitAction(actor, step);
    this.#emitSnapshot(actor, event);
  }

  #emit(body: Body): void {
    const event = { ...body, rootId: `${this.#runId}:0` } as InspectionEvent;
    const inspector = this.#inspector;
    try {
      if (typeof inspector === "function") inspector(event);
      else inspector.next?.(event);
    } catch (error) {
      this.#onError(error);
    }
  }

  #emitEvent({ view }: Actor, event: AnyEventObject, source: Actor | undefined): void {
    this.#emit({ type: "@xstate.event", sourceRef: source?.view, actorRef: view, event });
  }

  #emitSnapshot({ view, snapshot }: Actor, event: AnyEventObject): void {
    this.#emit({ type: "@xstate.snapshot", actorRef: view, event, snapshot });
  }

  #emitStep(
    actor: Actor,
    step: Exclude<TrailStep, ActionStep>,
    inputs: ReadonlyMap<string, unknown>,
    inner: LookupByPath<Step>,
  ): void {
    const { view } = actor;
    if (step.kind === "actor") {
      const { id, logic } = step;
      this.#createTree(actor, id, logic, { input: inputs.get(id), inner: (ids) => inner([id, ...ids]) });
    } else {
      const { event, snapshot, transitions } = step;
      this.#emit({ type: "@xstate.microstep", actorRef: view, event, snapshot, _transitions: [...transitions] });
    }
  }

  /** Returns the actor targeted by the action. */
  #emitAction({ view, children }: Actor, { type, params }: ActionStep): Actor | undefined {
    const child = type === spawnAction || type === stopAction ? children.get(getId(params)) : undefined;
    const shownParams =
      child === undefined ? params : type === stopAction ? child.view : { ...(params as object), actorRef: child.view };
    this.#emit({ type: "@xstate.action", actorRef: view, action: { type, params: shownParams } });
    return child;
  }
}

function findNothing(): undefined {
  return undefined;
}

const spawnAction = "xstate.spawnChild";
const stopAction = "xstate.stopChild";

type ActionStep = Extract<TrailStep, { readonly kind: "action" }>;

function createPlainSnapshot(
  status: PlainSnapshot["status"],
  fields: { readonly output?: unknown; readonly error?: unknown; readonly input?: unknown },
): PlainSnapshot {
  return { output: undefined, error: undefined, input: undefined, ...fields, status } as PlainSnapshot;
}

function getLogic(snapshot: Actor["snapshot"]): AnyActorLogic | undefined {
  return "machine" in snapshot ? snapshot.machine : undefined;
}

/** Collects the inputs of the actors started by a transition, by id. */
function collectInputs(steps: readonly TrailStep[] = []): ReadonlyMap<string, unknown> {
  return new Map(
    steps.flatMap((step) =>
      step.kind === "action" && step.type === spawnAction && typeof step.params === "object" && step.params !== null
        ? [[getId(step.params), "input" in step.params ? step.params.input : undefined]]
        : [],
    ),
  );
}

function getId(params: unknown): string {
  return typeof params === "object" && params !== null && "id" in params ? String(params.id) : "";
}

function refuseSend(id: string, type: string): never {
  throw new StatewrightError("event_refused", {
    what: `the event "${type}" was sent to "${id}", which is a read-only view of an actor`,
    next: "Use resume with answers to send events to a run",
    details: { event: type, accepts: [] },
  });
}
