/**
 * User-written machine as data: the tree of running machines, with their invoked promises and timers. A macrostep
 * applies a single event and all events that follow from it, without side effects.
 */
import type { AnyEventObject } from "xstate";
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, type Json } from "../../base/json.ts";
import type { Control, Pending, PendingTimer, Task } from "../../checkpoint/checkpoint.ts";
import {
  diffKeys,
  listLeafNames,
  type MachineDefinition,
  type MachinePromise,
  type MachineState,
} from "../../compile/durable-machine.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Delta } from "../../state/delta.ts";
import { createKernel, type Effect, type Kernel, type Snapshot, type Step } from "./kernel.ts";

/** Returns the machine of the plan of a machine program. */
export function getDefinition({ machine }: Plan): MachineDefinition {
  return machine as MachineDefinition;
}

/** Running promise of a machine. Its address is the path of actor ids, separated by slashes. */
export interface InvokedPromise {
  readonly task: Task;
  readonly owner: string;
  readonly id: string;
  readonly address: string;
  readonly input: unknown;
  readonly actor: MachinePromise;
}

/** Timer of a machine. */
export interface MachineTimer extends PendingTimer {
  readonly event: AnyEventObject;
}

/** Running machine: the root machine or a child machine. */
export interface RunningMachine {
  readonly address: string;
  readonly owner: string;
  readonly id: string;
  readonly src: string;
  readonly definition: MachineDefinition;
  snapshot: Snapshot;
}

/** All running actors and timers. The root machine has the address "". */
export interface ActorTree {
  readonly machines: Map<string, RunningMachine>;
  readonly promises: Map<string, InvokedPromise>;
  readonly timers: Map<string, MachineTimer>;
}

/** A transition of a machine. */
export interface MachineTransition {
  /** Path of actor ids to the machine. */
  readonly path: readonly string[];
  readonly event: AnyEventObject;
  /** Path of actor ids to the sender of the event; undefined for an external event. */
  readonly source: readonly string[] | undefined;
  readonly from: Json;
  readonly step: Step;
}

/** Custom action of a transition, to be executed. */
export interface MachineAction {
  readonly name: string;
  readonly params: unknown;
  readonly run: (() => void) | undefined;
}

/** Transitions and actions of an event. */
export interface Macrostep {
  readonly transitions: readonly MachineTransition[];
  readonly actions: readonly MachineAction[];
}

/** Step number of the next checkpoint, and the current time. */
export interface StepTime {
  readonly step: number;
  readonly now: number;
}

interface Delivery {
  readonly to: string;
  readonly event: AnyEventObject;
  /** Address of the sending actor. */
  readonly source: string | undefined;
}

interface MacrostepContext extends StepTime {
  readonly tree: ActorTree;
  readonly transitions: MachineTransition[];
  readonly actions: MachineAction[];
  readonly queue: Delivery[];
  count: number;
}

/** Maximum events between machines in a single macrostep; more events count as an infinite loop. */
const maxDeliveries = 10_000;

const kernels: WeakMap<MachineDefinition, Kernel> = new WeakMap();

function getKernel(definition: MachineDefinition): Kernel {
  const known = kernels.get(definition) ?? createKernel(definition.machine);
  kernels.set(definition, known);
  return known;
}

/** Starts the machine. */
export function startRootMachine(
  definition: MachineDefinition,
  input: unknown,
  time: StepTime,
): { readonly motion: ActorTree; readonly turn: Macrostep } {
  const motion: ActorTree = { machines: new Map(), promises: new Map(), timers: new Map() };
  const context = createMacrostepContext(motion, time);
  startMachine(context, { address: "", owner: "", id: "", src: definition.machine.id, definition }, input);
  deliverEvents(context);
  return { motion, turn: context };
}

/**
 * Applies a single external event and all events between machines that follow. Throws `event_refused` and
 * `machine_failed`.
 */
export function applyEvent(tree: ActorTree, to: string, event: AnyEventObject, time: StepTime): Macrostep {
  const context = createMacrostepContext(tree, time);
  const machine = tree.machines.get(to);
  if (machine !== undefined) applyTransition(context, machine, event, undefined);
  deliverEvents(context);
  return context;
}

/**
 * Like {@link applyEvent}, for an event of the actor `source`: a state without a matching transition ignores the
 * event.
 */
export function applyActorEvent(
  tree: ActorTree,
  to: string,
  event: AnyEventObject,
  { time, source }: { readonly time: StepTime; readonly source: string },
): Macrostep {
  const context = createMacrostepContext(tree, time);
  context.queue.push({ to, event, source });
  deliverEvents(context);
  return context;
}

/** Restores the running actors from saved state and control. */
export function restoreActorTree(definition: MachineDefinition, state: MachineState, control: Control): ActorTree {
  const { actors = [], timers = [] } = control.pending ?? {};
  const tree: ActorTree = { machines: new Map(), promises: new Map(), timers: new Map() };
  const childIds = new Map<string, string[]>();
  const addChildId = (owner: string, id: string): void => {
    childIds.set(owner, [...(childIds.get(owner) ?? []), id]);
  };
  const children = Object.entries(state.children).map(([address, saved]) => ({
    address,
    ...parseAddress(address),
    ...saved,
  }));
  for (const { owner, id } of [...children, ...actors]) addChildId(owner, id);
  const restoreSnapshot = (address: string, definition: MachineDefinition, value: Json, context: unknown): Snapshot => {
    try {
      return getKernel(definition).restore(value, context, childIds.get(address));
    } catch (cause) {
      throw createUnknownStateError(definition, value, cause);
    }
  };
  tree.machines.set("", {
    ...{ address: "", owner: "", id: "", src: definition.machine.id, definition },
    snapshot: restoreSnapshot("", definition, control.machine, state.context),
  });
  for (const { address, owner, id, src, value, context } of children.sort(compareDepth)) {
    const actor = tree.machines.get(owner)?.definition.actors.get(src);
    if (actor?.kind !== "machine") throw createUnknownActorError(definition, src);
    const at = actor.definition;
    tree.machines.set(address, {
      address,
      owner,
      id,
      src,
      definition: at,
      snapshot: restoreSnapshot(address, at, value, context),
    });
  }
  for (const { task, owner, id, src, input } of actors) {
    const actor = tree.machines.get(owner)?.definition.actors.get(src);
    if (actor?.kind !== "promise") throw createUnknownActorError(definition, src);
    const address = joinAddress(owner, id);
    tree.promises.set(address, { task: { id: task, node: src }, owner, id, address, input, actor });
  }
  for (const timer of timers) tree.timers.set(getTimerId(timer), timer);
  return tree;
}

function compareDepth(left: { readonly address: string }, right: { readonly address: string }): number {
  return left.address.split("/").length - right.address.split("/").length;
}

/** Returns the snapshot of the root machine. */
export function getRootSnapshot(tree: ActorTree): Snapshot {
  return (tree.machines.get("") as RunningMachine).snapshot;
}

/** Returns the state to save, and its changes since `before`. */
export function createState(
  tree: ActorTree,
  before: MachineState,
  { fresh }: { readonly fresh: boolean },
): { readonly state: MachineState; readonly deltas: Readonly<Record<string, Delta>> } {
  const { value, context, status, output } = getRootSnapshot(tree);
  const state: MachineState = Object.freeze({
    value,
    context: deepFreeze(context),
    children: deepFreeze(
      Object.fromEntries(
        [...tree.machines.values()].flatMap(({ address, src, snapshot }) =>
          address === "" ? [] : [[address, { src, value: snapshot.value, context: snapshot.context }]],
        ),
      ),
    ),
    output: status === "done" ? deepFreeze(output) : undefined,
  });
  const children = diffKeys(before.children, state.children);
  const changed = diffKeys({ value: before.value, output: before.output }, { value, output: state.output });
  const names = changed?.kind === "patch" ? changed.patches.map(({ path }) => String(path[0])) : [];
  const contextDelta: Delta | undefined = fresh
    ? { kind: "replace", value: state.context }
    : diffKeys(before.context as Record<string, unknown>, state.context as Record<string, unknown>);
  return {
    state,
    deltas: {
      ...(names.includes("value") ? { value: { kind: "replace", value } } : {}),
      ...(contextDelta === undefined ? {} : { context: contextDelta }),
      ...(children === undefined ? {} : { children }),
      ...(names.includes("output") ? { output: { kind: "replace", value: state.output } } : {}),
    },
  };
}

/** Returns the control state to save. */
export function createControl(tree: ActorTree, name: string, step: number, steps: number): Control {
  const { value, status } = getRootSnapshot(tree);
  const active = status === "active";
  const pending: Pending = {
    children: listChildIds(tree, ""),
    actors: [...tree.promises.values()].map(({ task, owner, id, input }) => ({
      ...{ task: task.id, owner, id, src: task.node, input },
    })),
    timers: [...tree.timers.values()],
  };
  return {
    machine: value,
    tasks: active ? listLeafNames(name, value).map((node, index) => ({ id: `${step}:${index}`, node })) : [],
    inputs: [],
    joins: {},
    steps,
    ...(active ? { pending } : {}),
  };
}

function listChildIds(tree: ActorTree, owner: string): readonly string[] {
  return [...tree.machines.values(), ...tree.promises.values()].flatMap((child) =>
    child.address !== "" && child.owner === owner ? [child.id] : [],
  );
}

/** Finds the first due timer. */
export function findDueTimer(tree: ActorTree, now: number): MachineTimer | undefined {
  let first: MachineTimer | undefined;
  for (const timer of tree.timers.values())
    if (timer.dueAt <= now && (first === undefined || timer.dueAt < first.dueAt)) first = timer;
  return first;
}

/** Removes a timer; returns false when another timer with the same id has replaced the timer. */
export function dropTimer(tree: ActorTree, timer: MachineTimer): boolean {
  return tree.timers.get(getTimerId(timer)) === timer && tree.timers.delete(getTimerId(timer));
}

/** Lists the event types that the root machine accepts from outside. */
export function listAcceptedTypes(definition: MachineDefinition, tree: ActorTree): readonly string[] {
  return getKernel(definition)
    .accepts(getRootSnapshot(tree))
    .filter((type) => !type.startsWith("xstate."));
}

/**
 * Throws `event_refused`, with the accepted event types, or `machine_failed` unless the root machine accepts the
 * event in its current state. Changes nothing.
 */
export function checkAccepted(definition: MachineDefinition, tree: ActorTree, event: AnyEventObject): void {
  try {
    getKernel(definition).step(getRootSnapshot(tree), event);
  } catch (error) {
    if (!isStatewrightError(error, "event_refused")) throw error;
    const accepts = listAcceptedTypes(definition, tree);
    const { value } = getRootSnapshot(tree);
    throw new StatewrightError("event_refused", {
      what: `the machine "${definition.machine.id}" in ${JSON.stringify(value)} does not accept "${event.type}"`,
      next:
        accepts.length === 0
          ? "Wait until its running promises and timers have finished: the machine accepts no event before"
          : `Send one of ${accepts.map((type) => `"${type}"`).join(", ")}`,
      details: { value, event: event.type, accepts },
    });
  }
}

// Macrostep.

function createMacrostepContext(motion: ActorTree, time: StepTime): MacrostepContext {
  return { ...time, tree: motion, transitions: [], actions: [], queue: [], count: 0 };
}

function deliverEvents(context: MacrostepContext): void {
  for (let deliveries = 0; context.queue.length > 0; deliveries++) {
    if (deliveries === maxDeliveries) {
      throw new StatewrightError("machine_failed", {
        what: `machines sent each other ${maxDeliveries} events in one macrostep`,
        next: "Fix the machines that answer each other's events in an infinite loop",
      });
    }
    const next = context.queue.shift();
    const machine = next === undefined ? undefined : context.tree.machines.get(next.to);
    if (next === undefined || machine === undefined) continue;
    try {
      applyTransition(context, machine, next.event, next.source);
    } catch (error) {
      if (!isStatewrightError(error, "event_refused")) throw error;
    }
  }
}

function startMachine(context: MacrostepContext, at: Omit<RunningMachine, "snapshot">, input: unknown): void {
  const step = getKernel(at.definition).enter(input);
  const machine: RunningMachine = { ...at, snapshot: step[0] };
  context.tree.machines.set(at.address, machine);
  applyStep(context, machine, { event: { type: "xstate.init", input }, source: at.owner }, { from: null, step });
}

function applyTransition(
  context: MacrostepContext,
  machine: RunningMachine,
  event: AnyEventObject,
  source: string | undefined,
): void {
  const from = machine.snapshot;
  const step = getKernel(machine.definition).step(from, event);
  machine.snapshot = step[0];
  applyStep(context, machine, { event, source }, { from: from.value, step });
}

function applyStep(
  context: MacrostepContext,
  machine: RunningMachine,
  { event, source }: Pick<Delivery, "event" | "source">,
  { from, step }: { readonly from: Json; readonly step: Step },
): void {
  const { address } = machine;
  const [snapshot, effects] = step;
  context.transitions.push({
    path: splitAddress(address),
    event,
    source: source === undefined ? undefined : splitAddress(source),
    from,
    step,
  });
  for (const [index, effect] of effects.entries()) {
    // Skips an actor that the same step starts and stops.
    const isStopped = (id: string): boolean =>
      effects.some((each, at) => at > index && each.kind === "stop" && each.id === id);
    if (effect.kind !== "start" || !isStopped(effect.id)) applyEffect(context, machine, effect);
  }
  if (snapshot.status === "active") return;
  stopDescendants(context.tree, address);
  if (address === "") return;
  context.tree.machines.delete(address);
  context.queue.push({ to: machine.owner, event: createEndEvent(machine.id, snapshot), source: address });
}

function createEndEvent(id: string, { status, output, error }: Snapshot): AnyEventObject {
  return status === "done" ? createDoneEvent(id, output) : createErrorEvent(id, error);
}

/** Creates the event that notifies a machine of the output of an actor. */
export function createDoneEvent(id: string, output: unknown): AnyEventObject {
  return { type: `xstate.done.actor.${id}`, output, actorId: id };
}

/** Creates the event that notifies a machine of the failure of an actor. */
export function createErrorEvent(id: string, error: unknown): AnyEventObject {
  return { type: `xstate.error.actor.${id}`, error, actorId: id };
}

function applyEffect(context: MacrostepContext, machine: RunningMachine, effect: Effect): void {
  const { tree } = context;
  const { address: owner } = machine;
  switch (effect.kind) {
    case "start": {
      const { id, src, input } = effect;
      const actor = machine.definition.actors.get(src);
      if (actor === undefined || id === "") throw createInvalidActorError(machine, src, id);
      const address = joinAddress(owner, id);
      stopActor(tree, address);
      if (actor.kind === "machine")
        startMachine(context, { address, owner, id, src, definition: actor.definition }, input);
      else
        tree.promises.set(address, { task: { id: allocateId(context), node: src }, owner, id, address, input, actor });
      return;
    }
    case "stop":
      stopActor(tree, joinAddress(owner, effect.id));
      return;
    case "timer":
      armTimer(tree, {
        owner,
        to: owner,
        id: effect.id,
        event: effect.event,
        armed: allocateId(context),
        dueAt: getDueTime(context, machine, effect),
      });
      return;
    case "cancel":
      tree.timers.delete(getTimerId({ owner, id: effect.id, armed: "" }));
      return;
    case "send": {
      const { to: target, event, delayMs, id } = effect;
      const to = target === "self" ? owner : target === "parent" ? machine.owner : joinAddress(owner, target.id);
      if (target === "parent" && owner === "") return;
      if (delayMs === undefined) context.queue.push({ to, event, source: owner });
      else {
        const dueAt = getDueTime(context, machine, { event, delayMs });
        armTimer(tree, { owner, to, id, event, armed: allocateId(context), dueAt });
      }
      return;
    }
    case "action":
      context.actions.push({ name: effect.name, params: effect.params, run: effect.run });
  }
}

/** Allocates the id of a started promise or timer, unique in the branch. */
function allocateId(context: MacrostepContext): string {
  return `${context.step}:${context.count++}`;
}

/** Sets a timer; replaces a timer with the same id. */
function armTimer(tree: ActorTree, timer: MachineTimer): void {
  const id = getTimerId(timer);
  tree.timers.delete(id);
  tree.timers.set(id, timer);
}

/** Returns the id of a timer among all timers of a root machine. A timer without an id gets an id of its own. */
export function getTimerId({ owner, id, armed }: Pick<PendingTimer, "owner" | "id" | "armed">): string {
  return id === "" ? `${owner}//${armed}` : joinAddress(owner, id);
}

/** Returns the due time in whole milliseconds, rounded up so that a timer never fires early. */
function getDueTime(
  { now }: StepTime,
  { definition }: RunningMachine,
  timer: { readonly event: AnyEventObject; readonly delayMs: number },
): number {
  const dueAt = Math.ceil(now + Math.max(0, timer.delayMs));
  if (Number.isSafeInteger(dueAt)) return dueAt;
  throw new StatewrightError("machine_failed", {
    what: `the machine "${definition.machine.id}" set "${timer.event.type}" with a delay of ${timer.delayMs} ms: expected a finite number`,
    next: "Use a finite number of milliseconds, or remove the delay of an event that is never due",
  });
}

function stopActor(tree: ActorTree, address: string): void {
  tree.promises.delete(address);
  if (!tree.machines.has(address)) return;
  stopDescendants(tree, address);
  tree.machines.delete(address);
}

/** Stops all actors and timers below an address. */
function stopDescendants(tree: ActorTree, address: string): void {
  const isDescendant = (other: string): boolean => address === "" || other.startsWith(`${address}/`);
  for (const key of tree.promises.keys()) if (isDescendant(key)) tree.promises.delete(key);
  for (const key of tree.machines.keys()) if (key !== "" && isDescendant(key)) tree.machines.delete(key);
  for (const [key, { owner }] of tree.timers) if (owner === address || isDescendant(owner)) tree.timers.delete(key);
}

// Addresses: actor ids separated by slashes. Slashes in ids are escaped.

/** Returns the address of a child actor. */
export function joinAddress(owner: string, id: string): string {
  const escaped = id.replaceAll("%", "%25").replaceAll("/", "%2F");
  return owner === "" ? escaped : `${owner}/${escaped}`;
}

/** Splits an address into actor ids. */
export function splitAddress(address: string): readonly string[] {
  return address === "" ? [] : address.split("/").map(unescapeId);
}

function unescapeId(part: string): string {
  return part.replaceAll("%2F", "/").replaceAll("%25", "%");
}

function parseAddress(address: string): { readonly owner: string; readonly id: string } {
  const lastSlash = address.lastIndexOf("/");
  return { owner: address.slice(0, Math.max(0, lastSlash)), id: unescapeId(address.slice(lastSlash + 1)) };
}

function createInvalidActorError({ definition }: RunningMachine, src: string, id: string): StatewrightError {
  const isKnown = definition.actors.has(src);
  return new StatewrightError("machine_failed", {
    what: `the machine "${definition.machine.id}" started ${isKnown ? `"${src}" without an id` : `the actor "${src}", which is no promise or machine of its setup`}`,
    next: isKnown && id === "" ? "Add an id to the actor" : "Add the actor to setup({ actors })",
  });
}

function createUnknownActorError(definition: MachineDefinition, src: string): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the saved machine "${definition.machine.id}" has a running actor "${src}", which the current machine does not define`,
    next: "Add the actor again under its name, or fork from an earlier checkpoint",
  });
}

function createUnknownStateError({ machine }: MachineDefinition, value: Json, cause: unknown): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the saved machine "${machine.id}" is in the state ${JSON.stringify(value)}, which the current machine does not define`,
    next: "Add the state again under its name, or fork from an earlier checkpoint",
    cause,
  });
}
