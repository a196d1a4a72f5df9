/**
 * Inspection: what the machines of a run do, in the format of XState's `inspect`, for any standard inspector. Its actors are
 * views: what is sent to them reaches nothing.
 */
import type {
  AnyActorLogic,
  AnyEventObject,
  AnyMachineSnapshot,
  InspectionEvent,
  Snapshot as XStateSnapshot,
} from "xstate";
import { StatewrightError } from "../../base/errors.ts";
import { type Snapshot, type Step, type TrailStep, xstateSnapshotOf } from "../kernel/kernel.ts";

/** What takes inspection events: a function, or an observer as `@statelyai/inspect` makes it. */
export type Inspector =
  | ((event: InspectionEvent) => void)
  | { readonly next?: ((event: InspectionEvent) => void) | undefined };

/** How an actor that is no machine has ended. */
export type ActorEnd = { readonly output: unknown } | { readonly error: unknown };

/** An actor as inspectors see it. */
export interface InspectedActor {
  readonly id: string;
  readonly sessionId: string;
  readonly logic: AnyActorLogic | undefined;
  readonly _parent: InspectedActor | undefined;
  /** Throws `event_refused`: a view takes no events. */
  readonly send: (event: AnyEventObject) => never;
  readonly getSnapshot: () => AnyMachineSnapshot | PlainSnapshot;
  readonly toJSON: () => object;
}

/** The snapshot of an actor that is no machine. */
export type PlainSnapshot = XStateSnapshot<unknown> & { readonly input: unknown };

/** An actor of a run, with what is known of it. */
export interface Actor {
  readonly view: InspectedActor;
  readonly parent: Actor | undefined;
  /** The newest of each id. */
  readonly children: Map<string, Actor>;
  readonly input: unknown;
  /** How it was entered, if it is a machine that was entered here. */
  readonly init: Step | undefined;
  snapshot: AnyMachineSnapshot | PlainSnapshot;
  started: boolean;
}

/** Tells an inspector what machines did. Whoever calls it has made sure that it happened: what must be durable first, is. */
export interface Inspection {
  /** The machine of each line of the run. */
  readonly machines: Map<string, Actor>;
  /** A machine was entered; `inner` says how its child machines were. */
  entered(parent: Actor | undefined, id: string, init: Step, input: unknown, inner?: ByIds<Step>): Actor;
  /** A machine stands where it stood when it was left; `inner` says where its child machines stand. */
  stands(parent: Actor | undefined, id: string, snapshot: Snapshot, inner?: ByIds<Snapshot>): Actor;
  /** A machine took an event, sent by `source` if that is an actor; `inner` says how the child machines that it started were entered. */
  took(actor: Actor, event: AnyEventObject, step: Step, source?: Actor, inner?: ByIds<Step>): void;
  /** A machine was stopped, and all that it has started. */
  stopped(actor: Actor): void;
  /** An actor that is no machine has ended; `tell` tells what that does to the machine that started it. */
  ended(actor: Actor, end: ActorEnd, tell: () => void): void;
}

/** What is known of child machines, by the ids that lead to them. */
export type ByIds<Known> = (ids: readonly string[]) => Known | undefined;

type Body = InspectionEvent extends infer Event ? (Event extends unknown ? Omit<Event, "rootId"> : never) : never;

/** An inspection of one run. An inspector that throws does not harm the run: its error goes to `onError`. */
export function createInspection(inspector: Inspector, runId: string, onError: (error: unknown) => void): Inspection {
  let made = 0;
  const rootId = `${runId}:0`;

  function say(body: Body): void {
    const event = { ...body, rootId } as InspectionEvent;
    try {
      if (typeof inspector === "function") inspector(event);
      else inspector.next?.(event);
    } catch (error) {
      onError(error);
    }
  }

  function make(
    parent: Actor | undefined,
    id: string,
    logic: AnyActorLogic | undefined,
    about: Pick<Actor, "input" | "init" | "snapshot">,
  ): Actor {
    const view: InspectedActor = {
      id,
      sessionId: `${runId}:${made++}`,
      logic,
      _parent: parent?.view,
      send: ({ type }) => refuseSend(id, type),
      getSnapshot: () => actor.snapshot,
      toJSON: () => ({ xstate$$type: 1, id }),
    };
    const actor: Actor = { view, parent, children: new Map(), ...about, started: false };
    parent?.children.delete(id);
    parent?.children.set(id, actor);
    say({ type: "@xstate.actor", actorRef: view });
    return actor;
  }

  function sayEvent({ view }: Actor, event: AnyEventObject, source: Actor | undefined): void {
    say({ type: "@xstate.event", sourceRef: source?.view, actorRef: view, event });
  }

  function saySnapshot({ view, snapshot }: Actor, event: AnyEventObject): void {
    say({ type: "@xstate.snapshot", actorRef: view, event, snapshot });
  }

  /** XState makes an actor, with what its first state makes, before it starts it. */
  function create(
    parent: Actor | undefined,
    id: string,
    logic: AnyActorLogic | undefined,
    input: unknown,
    inner: ByIds<Step>,
  ): Actor {
    const init = inner([]);
    const snapshot = (init && xstateSnapshotOf(init[0])) ?? plain("active", { input });
    const actor = make(parent, id, logic ?? logicOf(snapshot), { input, init, snapshot });
    for (const step of init?.[2].steps ?? [])
      if (step.kind !== "action") sayMade(actor, step, inputsIn(init?.[2].steps), inner);
    return actor;
  }

  function start(actor: Actor): void {
    const event = { type: "xstate.init", input: actor.input };
    actor.started = true;
    sayEvent(actor, event, actor.parent);
    for (const child of actor.children.values()) start(child);
    for (const step of actor.init?.[2].steps ?? []) if (step.kind === "action") sayAction(actor, step);
    saySnapshot(actor, event);
  }

  function sayMade(
    actor: Actor,
    step: Exclude<TrailStep, Act>,
    inputs: ReadonlyMap<string, unknown>,
    inner: ByIds<Step>,
  ): void {
    const { view } = actor;
    if (step.kind === "actor") {
      const { id, logic } = step;
      create(actor, id, logic, inputs.get(id), (ids) => inner([id, ...ids]));
    } else {
      const { event, snapshot, transitions } = step;
      say({ type: "@xstate.microstep", actorRef: view, event, snapshot, _transitions: [...transitions] });
    }
  }

  /** Gives the actor that the action is about. */
  function sayAction({ view, children }: Actor, { type, params }: Act): Actor | undefined {
    const child = type === spawned || type === stopped ? children.get(idIn(params)) : undefined;
    const shown =
      child === undefined ? params : type === stopped ? child.view : { ...(params as object), actorRef: child.view };
    say({ type: "@xstate.action", actorRef: view, action: { type, params: shown } });
    return child;
  }

  function stop(actor: Actor): void {
    const { view, started, snapshot } = actor;
    if (snapshot.status !== "active") return;
    actor.snapshot = { ...snapshot, status: "stopped" } as Actor["snapshot"];
    if (!started) return;
    const event = { type: "xstate.stop" };
    const children = [...actor.children.values()].filter((child) => child.snapshot.status === "active");
    for (const child of children)
      say({ type: "@xstate.action", actorRef: view, action: { type: stopped, params: child.view } });
    if ("machine" in snapshot)
      say({ type: "@xstate.microstep", actorRef: view, event, snapshot: actor.snapshot, _transitions: [] });
    for (const child of children) stop(child);
    saySnapshot(actor, event);
  }

  function restore(parent: Actor | undefined, id: string, snapshot: AnyMachineSnapshot, inner: ByIds<Snapshot>): Actor {
    const actor = make(parent, id, snapshot.machine, { input: undefined, init: undefined, snapshot });
    for (const child of Object.keys(snapshot.children)) {
      const within = inner([child]);
      const machine = within && xstateSnapshotOf(within);
      if (machine !== undefined) restore(actor, child, machine, (ids) => inner([child, ...ids]));
      else make(actor, child, undefined, { input: undefined, init: undefined, snapshot: plain("active", {}) });
    }
    return actor;
  }

  return {
    machines: new Map(),
    entered: (parent, id, init, input, inner = () => undefined) => {
      const actor = create(parent, id, undefined, input, (ids) => (ids.length === 0 ? init : inner(ids)));
      start(actor);
      return actor;
    },
    stands: (parent, id, snapshot, inner = () => undefined) => {
      const machine = xstateSnapshotOf(snapshot);
      if (machine === undefined) throw new TypeError(`"${id}" was not entered`);
      const actor = restore(parent, id, machine, inner);
      start(actor);
      return actor;
    },
    took: (actor, event, [snapshot, , { steps }], source, inner = () => undefined) => {
      const after: (() => void)[] = [];
      const inputs = inputsIn(steps);
      sayEvent(actor, event, source);
      for (const step of steps) {
        if (step.kind !== "action") {
          sayMade(actor, step, inputs, inner);
          continue;
        }
        const child = sayAction(actor, step);
        if (child === undefined) continue;
        after.push(() => {
          if (step.type === stopped) stop(child);
          else if (child.snapshot.status !== "stopped") start(child);
        });
      }
      actor.snapshot = xstateSnapshotOf(snapshot) ?? actor.snapshot;
      for (const each of after) each();
      saySnapshot(actor, event);
    },
    stopped: stop,
    ended: (actor, end, tell) => {
      const failed = "error" in end;
      const event = failed
        ? { type: "xstate.promise.reject", data: end.error }
        : { type: "xstate.promise.resolve", data: end.output };
      sayEvent(actor, event, actor);
      actor.snapshot = plain(failed ? "error" : "done", end);
      tell();
      saySnapshot(actor, event);
    },
  };
}

const spawned = "xstate.spawnChild";
const stopped = "xstate.stopChild";

type Act = Extract<TrailStep, { readonly kind: "action" }>;

function plain(
  status: PlainSnapshot["status"],
  known: { readonly output?: unknown; readonly error?: unknown; readonly input?: unknown },
): PlainSnapshot {
  return { output: undefined, error: undefined, input: undefined, ...known, status } as PlainSnapshot;
}

function logicOf(snapshot: Actor["snapshot"]): AnyActorLogic | undefined {
  return "machine" in snapshot ? snapshot.machine : undefined;
}

/** What the actors that a transition starts are given. */
function inputsIn(steps: readonly TrailStep[] = []): ReadonlyMap<string, unknown> {
  return new Map(
    steps.flatMap((step) =>
      step.kind === "action" && step.type === spawned && typeof step.params === "object" && step.params !== null
        ? [[idIn(step.params), "input" in step.params ? step.params.input : undefined]]
        : [],
    ),
  );
}

function idIn(params: unknown): string {
  return typeof params === "object" && params !== null && "id" in params ? String(params.id) : "";
}

function refuseSend(id: string, type: string): never {
  throw new StatewrightError("event_refused", {
    what: `the event "${type}" was sent to "${id}", which is only a view of an actor`,
    next: "Send events to a run with resume and its answers",
    details: { event: type, accepts: [] },
  });
}
