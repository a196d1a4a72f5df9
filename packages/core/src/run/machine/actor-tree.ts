/**
 * A hand-drawn machine in motion, as data: the machine and its child machines, the promises and timers that they have set
 * going. A turn takes one event to the end of everything that it moves, and performs nothing.
 */
import type { AnyEventObject } from "xstate";
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, type Json } from "../../base/json.ts";
import type { Control, Pending, PendingTimer, Task } from "../../checkpoint/checkpoint.ts";
import {
  changesOf,
  type Drawing,
  type DrawnPromise,
  leafNames,
  type MachineState,
} from "../../compile/durable-machine.ts";
import type { Delta } from "../../state/delta.ts";
import { createKernel, type Effect, type Kernel, type Snapshot, type Step } from "../kernel/kernel.ts";

/** A promise that a machine has started. Its address is the ids that lead to it, with slashes between. */
export interface Work {
  readonly task: Task;
  readonly owner: string;
  readonly id: string;
  readonly address: string;
  readonly input: unknown;
  readonly actor: DrawnPromise;
}

/** A timer that a machine has set. */
export interface Timer extends PendingTimer {
  readonly event: AnyEventObject;
}

/** A machine that runs: the root, or one inside another. */
export interface Moving {
  readonly address: string;
  readonly owner: string;
  readonly id: string;
  readonly src: string;
  readonly drawing: Drawing;
  snapshot: Snapshot;
}

/** Everything that moves. The root has the address "". */
export interface Motion {
  readonly machines: Map<string, Moving>;
  readonly works: Map<string, Work>;
  readonly timers: Map<string, Timer>;
}

/** One transition of one machine. */
export interface Move {
  /** The ids that lead to the machine. */
  readonly path: readonly string[];
  readonly event: AnyEventObject;
  /** The ids that lead to the actor that sent the event; absent where it came from outside. */
  readonly source: readonly string[] | undefined;
  readonly from: Json;
  readonly step: Step;
}

/** A custom action that a transition wants run. */
export interface Act {
  readonly name: string;
  readonly params: unknown;
  readonly run: (() => void) | undefined;
}

/** What one event has moved. */
export interface Turn {
  readonly moves: readonly Move[];
  readonly acts: readonly Act[];
}

/** The checkpoint that a turn makes, and the time. */
export interface Moment {
  readonly step: number;
  readonly now: number;
}

interface Delivery {
  readonly to: string;
  readonly event: AnyEventObject;
  /** The address of the actor that sends it. */
  readonly source: string | undefined;
}

interface Taking extends Moment {
  readonly motion: Motion;
  readonly moves: Move[];
  readonly acts: Act[];
  readonly queue: Delivery[];
  count: number;
}

/** Events that machines may send each other in one turn before they count as caught in a loop. */
const maxDeliveries = 10_000;

const kernels: WeakMap<Drawing, Kernel> = new WeakMap();

function kernelOf(drawing: Drawing): Kernel {
  const known = kernels.get(drawing) ?? createKernel(drawing.machine);
  kernels.set(drawing, known);
  return known;
}

/** Enter the machine. */
export function enter(drawing: Drawing, input: unknown, at: Moment): { readonly motion: Motion; readonly turn: Turn } {
  const motion: Motion = { machines: new Map(), works: new Map(), timers: new Map() };
  const taking = takingOf(motion, at);
  begin(taking, { address: "", owner: "", id: "", src: drawing.machine.id, drawing }, input);
  deliver(taking);
  return { motion, turn: taking };
}

/** Take one event, and whatever it makes machines send each other. Throws `event_refused` and `machine_failed`. */
export function take(motion: Motion, to: string, event: AnyEventObject, at: Moment): Turn {
  const taking = takingOf(motion, at);
  const machine = motion.machines.get(to);
  if (machine !== undefined) move(taking, machine, event, undefined);
  deliver(taking);
  return taking;
}

/** Like {@link take}, for an event of the actor `source`: a state that does not listen to it stays as it is. */
export function tell(motion: Motion, to: string, event: AnyEventObject, at: Moment, source: string): Turn {
  const taking = takingOf(motion, at);
  taking.queue.push({ to, event, source });
  deliver(taking);
  return taking;
}

/** Stand where the saved state and control say. */
export function restore(drawing: Drawing, state: MachineState, control: Control): Motion {
  const { actors = [], timers = [] } = control.pending ?? {};
  const motion: Motion = { machines: new Map(), works: new Map(), timers: new Map() };
  const under = new Map<string, string[]>();
  const note = (owner: string, id: string): void => {
    under.set(owner, [...(under.get(owner) ?? []), id]);
  };
  const inner = Object.entries(state.children).map(([address, saved]) => ({ address, ...whereIs(address), ...saved }));
  for (const { owner, id } of [...inner, ...actors]) note(owner, id);
  const stand = (address: string, at: Drawing, value: Json, context: unknown): Snapshot => {
    try {
      return kernelOf(at).restore(value, context, under.get(address));
    } catch (cause) {
      throw unknownState(at, value, cause);
    }
  };
  motion.machines.set("", {
    ...{ address: "", owner: "", id: "", src: drawing.machine.id, drawing },
    snapshot: stand("", drawing, control.machine, state.context),
  });
  for (const { address, owner, id, src, value, context } of inner.sort(byDepth)) {
    const actor = motion.machines.get(owner)?.drawing.actors.get(src);
    if (actor?.kind !== "machine") throw unknownActor(drawing, src);
    const at = actor.drawing;
    motion.machines.set(address, {
      address,
      owner,
      id,
      src,
      drawing: at,
      snapshot: stand(address, at, value, context),
    });
  }
  for (const { task, owner, id, src, input } of actors) {
    const actor = motion.machines.get(owner)?.drawing.actors.get(src);
    if (actor?.kind !== "promise") throw unknownActor(drawing, src);
    const address = below(owner, id);
    motion.works.set(address, { task: { id: task, node: src }, owner, id, address, input, actor });
  }
  for (const timer of timers) motion.timers.set(timerId(timer), timer);
  return motion;
}

function byDepth(one: { readonly address: string }, other: { readonly address: string }): number {
  return one.address.split("/").length - other.address.split("/").length;
}

/** The root machine's snapshot. */
export function rootOf(motion: Motion): Snapshot {
  return (motion.machines.get("") as Moving).snapshot;
}

/** The state to save, and what changed since `before`. */
export function stateAfter(
  motion: Motion,
  before: MachineState,
  fresh: boolean,
): { readonly state: MachineState; readonly deltas: Readonly<Record<string, Delta>> } {
  const { value, context, status, output } = rootOf(motion);
  const state: MachineState = Object.freeze({
    value,
    context: deepFreeze(context),
    children: deepFreeze(
      Object.fromEntries(
        [...motion.machines.values()].flatMap(({ address, src, snapshot }) =>
          address === "" ? [] : [[address, { src, value: snapshot.value, context: snapshot.context }]],
        ),
      ),
    ),
    output: status === "done" ? deepFreeze(output) : undefined,
  });
  const children = changesOf(before.children, state.children);
  const moved = changesOf({ value: before.value, output: before.output }, { value, output: state.output });
  const names = moved?.kind === "patch" ? moved.patches.map(({ path }) => String(path[0])) : [];
  const inContext: Delta | undefined = fresh
    ? { kind: "replace", value: state.context }
    : changesOf(before.context as Record<string, unknown>, state.context as Record<string, unknown>);
  return {
    state,
    deltas: {
      ...(names.includes("value") ? { value: { kind: "replace", value } } : {}),
      ...(inContext === undefined ? {} : { context: inContext }),
      ...(children === undefined ? {} : { children }),
      ...(names.includes("output") ? { output: { kind: "replace", value: state.output } } : {}),
    },
  };
}

/** The control state to save. */
export function controlAfter(motion: Motion, name: string, step: number, steps: number): Control {
  const { value, status } = rootOf(motion);
  const active = status === "active";
  const pending: Pending = {
    children: childrenOf(motion, ""),
    actors: [...motion.works.values()].map(({ task, owner, id, input }) => ({
      ...{ task: task.id, owner, id, src: task.node, input },
    })),
    timers: [...motion.timers.values()],
  };
  return {
    machine: value,
    tasks: active ? leafNames(name, value).map((node, index) => ({ id: `${step}:${index}`, node })) : [],
    inputs: [],
    joins: {},
    steps,
    ...(active ? { pending } : {}),
  };
}

function childrenOf(motion: Motion, owner: string): readonly string[] {
  return [...motion.machines.values(), ...motion.works.values()].flatMap((child) =>
    child.address !== "" && child.owner === owner ? [child.id] : [],
  );
}

/** The first of the timers that are due, if any. */
export function dueTimer(motion: Motion, now: number): Timer | undefined {
  let first: Timer | undefined;
  for (const timer of motion.timers.values())
    if (timer.dueAt <= now && (first === undefined || timer.dueAt < first.dueAt)) first = timer;
  return first;
}

/** Take a timer out, if it is still the one that was set. */
export function dropTimer(motion: Motion, timer: Timer): boolean {
  return motion.timers.get(timerId(timer)) === timer && motion.timers.delete(timerId(timer));
}

/** Types of the events that the root machine accepts from outside. */
export function acceptedTypes(drawing: Drawing, motion: Motion): readonly string[] {
  return kernelOf(drawing)
    .accepts(rootOf(motion))
    .filter((type) => !type.startsWith("xstate."));
}

/**
 * Throws `event_refused`, with the events that it accepts from outside, or `machine_failed` unless the root machine takes
 * the event where it stands; nothing moves.
 */
export function checkAccepted(drawing: Drawing, motion: Motion, event: AnyEventObject): void {
  try {
    kernelOf(drawing).step(rootOf(motion), event);
  } catch (error) {
    if (!isStatewrightError(error, "event_refused")) throw error;
    const accepts = acceptedTypes(drawing, motion);
    const { value } = rootOf(motion);
    throw new StatewrightError("event_refused", {
      what: `the machine "${drawing.machine.id}" in ${JSON.stringify(value)} does not accept "${event.type}"`,
      next:
        accepts.length === 0
          ? "It accepts none until what is under way there has ended"
          : `It accepts ${accepts.map((type) => `"${type}"`).join(", ")}`,
      details: { value, event: event.type, accepts },
    });
  }
}

// One turn.

function takingOf(motion: Motion, at: Moment): Taking {
  return { ...at, motion, moves: [], acts: [], queue: [], count: 0 };
}

function deliver(taking: Taking): void {
  for (let deliveries = 0; taking.queue.length > 0; deliveries++) {
    if (deliveries === maxDeliveries) {
      throw new StatewrightError("machine_failed", {
        what: `machines sent each other ${maxDeliveries} events without coming to rest`,
        next: "Look for two machines that answer each other without end",
      });
    }
    const next = taking.queue.shift();
    const machine = next === undefined ? undefined : taking.motion.machines.get(next.to);
    if (next === undefined || machine === undefined) continue;
    try {
      move(taking, machine, next.event, next.source);
    } catch (error) {
      if (!isStatewrightError(error, "event_refused")) throw error;
    }
  }
}

function begin(taking: Taking, at: Omit<Moving, "snapshot">, input: unknown): void {
  const step = kernelOf(at.drawing).initial(input);
  const machine: Moving = { ...at, snapshot: step[0] };
  taking.motion.machines.set(at.address, machine);
  arrive(taking, machine, null, step, { event: { type: "xstate.init", input }, source: at.owner });
}

function move(taking: Taking, machine: Moving, event: AnyEventObject, source: string | undefined): void {
  const from = machine.snapshot;
  const step = kernelOf(machine.drawing).step(from, event);
  machine.snapshot = step[0];
  arrive(taking, machine, from.value, step, { event, source });
}

function arrive(
  taking: Taking,
  machine: Moving,
  from: Json,
  step: Step,
  { event, source }: Pick<Delivery, "event" | "source">,
): void {
  const { address } = machine;
  const [snapshot, effects] = step;
  taking.moves.push({
    path: idsOf(address),
    event,
    source: source === undefined ? undefined : idsOf(source),
    from,
    step,
  });
  for (const [index, effect] of effects.entries()) {
    // What is stopped in the step that starts it is never started.
    const stopped = (id: string): boolean =>
      effects.some((each, at) => at > index && each.kind === "stop" && each.id === id);
    if (effect.kind !== "start" || !stopped(effect.id)) apply(taking, machine, effect);
  }
  if (snapshot.status === "active") return;
  stopBelow(taking.motion, address);
  if (address === "") return;
  taking.motion.machines.delete(address);
  taking.queue.push({ to: machine.owner, event: endOf(machine.id, snapshot), source: address });
}

function endOf(id: string, { status, output, error }: Snapshot): AnyEventObject {
  return status === "done" ? doneEvent(id, output) : errorEvent(id, error);
}

/** The event that tells a machine how an actor has ended. */
export function doneEvent(id: string, output: unknown): AnyEventObject {
  return { type: `xstate.done.actor.${id}`, output, actorId: id };
}

/** The event that tells a machine that an actor has failed. */
export function errorEvent(id: string, error: unknown): AnyEventObject {
  return { type: `xstate.error.actor.${id}`, error, actorId: id };
}

function apply(taking: Taking, machine: Moving, effect: Effect): void {
  const { motion } = taking;
  const { address: owner } = machine;
  switch (effect.kind) {
    case "start": {
      const { id, src, input } = effect;
      const actor = machine.drawing.actors.get(src);
      if (actor === undefined || id === "") throw unfitActor(machine, src, id);
      const address = below(owner, id);
      stopAt(motion, address);
      if (actor.kind === "machine") begin(taking, { address, owner, id, src, drawing: actor.drawing }, input);
      else motion.works.set(address, { task: { id: nextId(taking), node: src }, owner, id, address, input, actor });
      return;
    }
    case "stop":
      stopAt(motion, below(owner, effect.id));
      return;
    case "timer":
      arm(motion, {
        owner,
        to: owner,
        id: effect.id,
        event: effect.event,
        armed: nextId(taking),
        dueAt: dueAfter(taking, machine, effect),
      });
      return;
    case "cancel":
      motion.timers.delete(timerId({ owner, id: effect.id, armed: "" }));
      return;
    case "send": {
      const { to: target, event, delayMs, id } = effect;
      const to = target === "self" ? owner : target === "parent" ? machine.owner : below(owner, target.id);
      if (target === "parent" && owner === "") return;
      if (delayMs === undefined) taking.queue.push({ to, event, source: owner });
      else {
        const dueAt = dueAfter(taking, machine, { event, delayMs });
        arm(motion, { owner, to, id, event, armed: nextId(taking), dueAt });
      }
      return;
    }
    case "action":
      taking.acts.push({ name: effect.name, params: effect.params, run: effect.run });
  }
}

/** Ids of what a step starts, unique in the branch. */
function nextId(taking: Taking): string {
  return `${taking.step}:${taking.count++}`;
}

/** A timer of the same id is re-armed: the old one is gone. */
function arm(motion: Motion, timer: Timer): void {
  const id = timerId(timer);
  motion.timers.delete(id);
  motion.timers.set(id, timer);
}

/** The id of a timer among all of a root machine; timers that were given none stand for themselves. */
export function timerId({ owner, id, armed }: Pick<PendingTimer, "owner" | "id" | "armed">): string {
  return id === "" ? `${owner}//${armed}` : below(owner, id);
}

/** A whole number of milliseconds, and none too early. */
function dueAfter(
  { now }: Moment,
  { drawing }: Moving,
  timer: { readonly event: AnyEventObject; readonly delayMs: number },
): number {
  const dueAt = Math.ceil(now + Math.max(0, timer.delayMs));
  if (Number.isSafeInteger(dueAt)) return dueAt;
  throw new StatewrightError("machine_failed", {
    what: `the machine "${drawing.machine.id}" set "${timer.event.type}" with a delay of ${timer.delayMs} ms, which is no time that can be saved`,
    next: "Give a finite number of milliseconds; what is never due needs no delay",
  });
}

function stopAt(motion: Motion, address: string): void {
  motion.works.delete(address);
  if (!motion.machines.has(address)) return;
  stopBelow(motion, address);
  motion.machines.delete(address);
}

/** Stop what a machine has set going, to any depth. */
function stopBelow(motion: Motion, address: string): void {
  const within = (other: string): boolean => address === "" || other.startsWith(`${address}/`);
  for (const key of motion.works.keys()) if (within(key)) motion.works.delete(key);
  for (const key of motion.machines.keys()) if (key !== "" && within(key)) motion.machines.delete(key);
  for (const [key, { owner }] of motion.timers) if (owner === address || within(owner)) motion.timers.delete(key);
}

// Addresses: ids with slashes between; a slash inside an id is escaped.

/** The address of an actor of a machine. */
export function below(owner: string, id: string): string {
  const escaped = id.replaceAll("%", "%25").replaceAll("/", "%2F");
  return owner === "" ? escaped : `${owner}/${escaped}`;
}

/** The ids that lead to an address. */
export function idsOf(address: string): readonly string[] {
  return address === "" ? [] : address.split("/").map(unescaped);
}

function unescaped(part: string): string {
  return part.replaceAll("%2F", "/").replaceAll("%25", "%");
}

function whereIs(address: string): { readonly owner: string; readonly id: string } {
  const cut = address.lastIndexOf("/");
  return { owner: address.slice(0, Math.max(0, cut)), id: unescaped(address.slice(cut + 1)) };
}

function unfitActor({ drawing }: Moving, src: string, id: string): StatewrightError {
  const known = drawing.actors.has(src);
  return new StatewrightError("machine_failed", {
    what: `the machine "${drawing.machine.id}" started ${known ? `"${src}" without an id` : `an actor "${src}", which is no promise and no machine of its setup`}`,
    next: known && id === "" ? "Give it an id" : "Name it in setup({ actors })",
  });
}

function unknownActor(drawing: Drawing, src: string): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the saved machine "${drawing.machine.id}" has an actor "${src}" under way, which it does not have any more`,
    next: "Bring the actor back under its name, or fork from an earlier checkpoint",
  });
}

function unknownState({ machine }: Drawing, value: Json, cause: unknown): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the saved machine "${machine.id}" stands in ${JSON.stringify(value)}, which it does not have any more`,
    next: "Bring the state back under its name, or fork from an earlier checkpoint",
    cause,
  });
}
