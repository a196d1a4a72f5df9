/**
 * `durableMachine`: a user-written XState machine as a graph for `run`. Rejects parts that cannot be saved
 * (callbacks, observables, history states, unnamed actors), all in a single error.
 */

import {
  type AnyStateMachine,
  type ContextFrom,
  type EventFromLogic,
  type InputFrom,
  type OutputFrom,
  type ProvidedActor,
  StateMachine,
} from "xstate";
import type { EffectClass } from "../base/effect.ts";
import { StatewrightError } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { deepFreeze, describeValue, isPlainObject, isSameData, type Json } from "../base/json.ts";
import { checkCount, checkOptions, listOptionNames } from "../base/options.ts";
import type { Schema } from "../base/schema.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, GraphTypes, NodeRecord } from "../define/graph.ts";
import { type GraphProblem, throwProblems } from "../define/problem.ts";
import type { Channel } from "../state/channel.ts";
import type { Delta } from "../state/delta.ts";
import type { Graph } from "./graph.ts";
import { functionKind } from "./kinds/function.ts";

/** Effect class of each actor by its name in `setup`; for a machine actor, the effect classes of its own actors. */
export type ActorEffects<Names extends string = string> = {
  readonly [Name in Names]?: EffectClass | ActorEffects;
};

/** Options of `durableMachine`. */
export interface DurableMachineOptions<Names extends string> {
  /** Version of the machine, an integer from 1. Increment for changes that are incompatible with saved runs. */
  readonly version: number;
  /** Crash behavior of pending promises. Default `once`: never restarted without a decision. */
  readonly effects?: ActorEffects<Names>;
}

const optionKeys = listOptionNames<DurableMachineOptions<string>>({ version: true, effects: true });

/** Names of the actors in the `setup` of a machine. */
export type ActorNames<Machine> =
  Machine extends StateMachine<
    infer _Context,
    infer _Event,
    infer _Children,
    infer Actor,
    infer _Action,
    infer _Guard,
    infer _Delay,
    infer _Value,
    infer _Tag,
    infer _Input,
    infer _Output,
    infer _Emitted,
    infer _Meta,
    infer _Schema,
    infer _TransitionMeta
  >
    ? Actor extends ProvidedActor
      ? Actor["src"]
      : never
    : never;

/** State of a machine as returned by a run, `getState` and `getHistory`. */
export type MachineState<Context = unknown, Output = unknown> = {
  /** XState state value. */
  readonly value: Json;
  readonly context: Context;
  /** Active child machines by path of actor ids. */
  readonly children: Readonly<
    Record<string, { readonly src: string; readonly value: Json; readonly context: unknown }>
  >;
  /** Output of a finished machine; undefined before. */
  readonly output: Output | undefined;
};

type ObjectInput<Given> = unknown extends Given ? object : Given extends object ? Given : never;

/** An event of a machine: its type and payload. */
interface MachineEvent {
  readonly type: string;
}
type EventPayload<Event extends MachineEvent> = Event extends MachineEvent ? Omit<Event, "type"> : never;

/** Events of a machine by type, which are answers of `resume`: the payload of each event. */
export type EventAnswers<Event extends MachineEvent> = {
  readonly [Type in Event["type"]]: Schema<EventPayload<Extract<Event, { readonly type: Type }>>>;
};

/** Types of a durable machine for `run` and `fork`, shorter than the machine's own type. */
export interface MachineTypes<Context, Input, Output, Event extends MachineEvent = MachineEvent> extends GraphTypes {
  readonly interrupts: EventAnswers<Event>;
  readonly innerInterrupts: Record<never, never>;
  readonly state: MachineState<Context, Output>;
  readonly events?: Event;
  readonly update: { readonly context?: Partial<Context> };
  readonly input: ObjectInput<Input>;
  readonly result: MachineState<Context, Output>;
  readonly output: Output;
}

/** An actor of a user-written machine. */
export type MachineActor = MachinePromise | { readonly kind: "machine"; readonly definition: MachineDefinition };

/** A promise actor; `create` is the argument of `fromPromise`. */
export interface MachinePromise {
  readonly kind: "promise";
  readonly create: (args: object) => PromiseLike<unknown>;
  readonly effect: EffectClass;
}

/** A user-written machine with its actors. */
export interface MachineDefinition {
  readonly machine: AnyStateMachine;
  readonly actors: ReadonlyMap<string, MachineActor>;
}

const definitions: WeakMap<GraphDefinition, MachineDefinition> = new WeakMap();

/** Returns the machine definition of a graph created by `durableMachine`; undefined for a graph of nodes. */
export function getMachineDefinition(graph: GraphDefinition): MachineDefinition | undefined {
  return definitions.get(graph);
}

/** Returns true for the graph of a user-written machine, which takes events as answers. */
export function isDurableMachine(graph: GraphDefinition): boolean {
  return definitions.has(graph);
}

/**
 * Makes an XState machine durable for `run` and `resume`. Promises are recorded effects with the classes in
 * `effects`; `self.sessionId` is the idempotency key of a promise, equal in every attempt and after every crash.
 * Delays are saved with their due time; events arrive as answers of `resume`. Custom actions run after the commit of
 * their transition: at most once, and not at all if the process dies in between. Use an actor for work that must not
 * be lost. Throws `invalid_graph` with every state that cannot be made durable.
 */
export function durableMachine<const Machine extends AnyStateMachine>(
  machine: Machine,
  options: DurableMachineOptions<NoInfer<ActorNames<Machine>>>,
): Graph<MachineTypes<ContextFrom<Machine>, InputFrom<Machine>, OutputFrom<Machine>, EventFromLogic<Machine>>> {
  checkOptions("durableMachine", options, optionKeys);
  if (typeof machine !== "object" || machine === null || !("root" in machine))
    throw invalidOption({
      where: "durableMachine",
      expected: "a machine",
      got: machine,
      fix: "Pass the result of createMachine of XState",
    });
  const { version, effects = {} } = options;
  if (version === undefined)
    throw invalidOption({ where: `machine "${machine.id}"`, option: "version", expected: "an integer ≥ 1" });
  checkCount(`machine "${machine.id}"`, { version });
  const problems: GraphProblem[] = [...findIdProblems(machine)];
  const definition = createMachineDefinition(machine, effects as ActorEffects, problems);
  throwProblems("machine", machine.id, problems);
  const states = listLeaves(machine.root);
  const graph: GraphDefinition & { readonly machine: AnyStateMachine } = Object.freeze({
    name: machine.id,
    version,
    state: { channels },
    context: undefined,
    interrupts: {},
    input: undefined,
    output: undefined,
    private: new Set<string>(),
    nodes: new Map(states.map((state, index) => [getStateName(state), createStateRecord(getStateName(state), index)])),
    edges: new Map([
      [START, createTransitionEdge(listEnteredStates(machine.root).map(getStateName))],
      ...states.map((state): [string, EdgeRecord] => [
        getStateName(state),
        createTransitionEdge(listTransitionTargets(state)),
      ]),
    ]),
    tools: [],
    inbox: "all",
    middleware: [],
    machine,
  });
  definitions.set(graph, definition);
  return graph as Graph<
    MachineTypes<ContextFrom<Machine>, InputFrom<Machine>, OutputFrom<Machine>, EventFromLogic<Machine>>
  >;
}

/** The id of a machine is the name of its graph: threads are saved under it. */
function findIdProblems({ id, config }: AnyStateMachine): readonly GraphProblem[] {
  if (config.id === undefined)
    return [
      {
        code: "missing_id",
        node: id,
        message: "the machine has no id, which is the name of its graph",
        hint: 'add it to the configuration: createMachine({ id: "order", … })',
      },
    ];
  if (isId(id)) return [];
  return [
    {
      code: "invalid_id",
      node: id,
      message: `the id ${describeValue(id)} of the machine is not a valid name of a graph`,
      hint: "use 1 to 128 of the characters A-Z a-z 0-9 _ . : -",
    },
  ];
}

/** Returns the names of the innermost active states of a state value. */
export function listLeafNames(machine: string, value: Json): readonly string[] {
  const collectLeaves = (at: Json, path: string): readonly string[] => {
    if (typeof at === "string") return [path === "" ? at : `${path}.${at}`];
    const inner = isPlainObject(at) ? Object.entries(at as Readonly<Record<string, Json>>) : [];
    if (inner.length === 0) return [path === "" ? machine : path];
    return inner.flatMap(([key, child]) => collectLeaves(child, path === "" ? key : `${path}.${key}`));
  };
  return collectLeaves(value, "");
}

/** Returns the changes between two objects, key by key; undefined if equal. */
export function diffKeys(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Delta | undefined {
  const changed = Object.entries(after).filter(
    ([key, value]) => !Object.hasOwn(before, key) || !isSameData(before[key], value),
  );
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  if (changed.length === 0 && removed.length === 0) return undefined;
  return {
    kind: "patch",
    patches: [
      ...removed.map((key) => ({ op: "remove" as const, path: [key] })),
      ...changed.map(([key, value]) => ({ op: "add" as const, path: [key], value })),
    ],
  };
}

const channels: Readonly<Record<keyof MachineState, Channel>> = Object.freeze({
  value: createTransitionChannel("value", null),
  context: {
    kind: "record",
    initial: () => ({ value: Object.freeze({}) }),
    parse: parseContext,
    parseValue: parseContext,
    reduce: (current, writes) => {
      const before = current as Readonly<Record<string, unknown>>;
      const value = Object.freeze(Object.assign({}, before, ...writes)) as Readonly<Record<string, unknown>>;
      return { value, delta: diffKeys(before, value) ?? { kind: "patch", patches: [] } };
    },
  },
  children: createTransitionChannel("children", Object.freeze({})),
  output: createTransitionChannel("output", undefined),
});

/** Creates a channel that only machine transitions change. */
function createTransitionChannel(name: string, initial: unknown): Channel {
  const rejectEdit = () => ({
    ok: false as const,
    issues: [{ path: "", message: `${name} is changed by events; only the context can be edited` }],
  });
  return {
    kind: "last",
    initial: () => ({ value: initial }),
    parse: rejectEdit,
    parseValue: rejectEdit,
    reduce: (_current, writes) => {
      const value = writes[writes.length - 1];
      return { value, delta: { kind: "replace", value } };
    },
  };
}

function parseContext(value: unknown): ReturnType<Channel["parse"]> {
  return isPlainObject(value)
    ? { ok: true, value: deepFreeze(value) }
    : { ok: false, issues: [{ path: "", message: "expected an object with context values" }] };
}

// Machine structure.

type StateNode = AnyStateMachine["root"];

function createMachineDefinition(
  machine: AnyStateMachine,
  effects: ActorEffects,
  problems: GraphProblem[],
): MachineDefinition {
  const provided = machine.implementations.actors as Readonly<Record<string, unknown>>;
  const actors = new Map<string, MachineActor>();
  for (const [name, logic] of Object.entries(provided)) {
    const declared = Object.hasOwn(effects, name) ? effects[name] : undefined;
    if (logic instanceof StateMachine) {
      if (typeof declared === "string") problems.push(createMachineEffectProblem(machine, name));
      const inner = typeof declared === "object" ? declared : {};
      actors.set(name, {
        kind: "machine",
        definition: createMachineDefinition(logic as AnyStateMachine, inner, problems),
      });
    } else if (isPromiseLogic(logic)) {
      if (declared !== undefined && !isEffectClass(declared)) problems.push(createPromiseEffectProblem(machine, name));
      const effect = isEffectClass(declared) ? declared : "once";
      actors.set(name, { kind: "promise", create: logic.config as MachinePromise["create"], effect });
    }
  }
  for (const name of Object.keys(effects)) {
    if (actors.has(name)) continue;
    problems.push({
      code: "unknown_effect",
      node: name,
      message: `the machine "${machine.id}" has no promise or machine actor "${name}" for an effect class`,
      hint: `actors are ${[...actors.keys()].map((known) => `"${known}"`).join(", ") || "none"}`,
    });
  }
  for (const state of listStates(machine.root)) problems.push(...findStateProblems(state, provided, actors));
  return { machine, actors };
}

function isEffectClass(value: unknown): value is EffectClass {
  return value === "pure" || value === "idempotent" || value === "once";
}

function createMachineEffectProblem(machine: AnyStateMachine, name: string): GraphProblem {
  return {
    code: "unknown_effect",
    node: name,
    message: `the actor "${name}" of the machine "${machine.id}" is a machine and has no effect class of its own`,
    hint: `declare the effects of its actors: ${name}: { actor: "idempotent" }`,
  };
}

function createPromiseEffectProblem(machine: AnyStateMachine, name: string): GraphProblem {
  return {
    code: "unknown_effect",
    node: name,
    message: `the actor "${name}" of the machine "${machine.id}" has an invalid effect class`,
    hint: 'use "pure", "idempotent" or "once"',
  };
}

interface Logic {
  readonly config: unknown;
  readonly transition: (state: object, event: object, scope: object) => unknown;
}

/** Detects promise logic by a probe transition, because callback, promise and observable logic have the same shape. */
function isPromiseLogic(logic: unknown): logic is Logic {
  if (typeof logic !== "object" || logic === null || !("config" in logic) || !("transition" in logic)) return false;
  const output = {};
  try {
    const next = (logic as Logic).transition(
      { status: "active" },
      { type: "xstate.promise.resolve", data: output },
      { self: {} },
    ) as { readonly status?: unknown; readonly output?: unknown } | undefined;
    return next?.status === "done" && next.output === output;
  } catch {
    return false;
  }
}

function findStateProblems(
  state: StateNode,
  provided: Readonly<Record<string, unknown>>,
  actors: ReadonlyMap<string, MachineActor>,
): readonly GraphProblem[] {
  const node = state.id;
  if (state.type === "history")
    return [
      {
        code: "history_state",
        node,
        message: `"${node}" is a history state, whose history is not saved`,
        hint: "store the state to return to in the context",
      },
    ];
  const invoked = state.invoke.flatMap((invoke) => {
    const problem = findActorProblem(node, "invokes", invoke.src, { provided, actors });
    if (problem !== undefined) return [problem];
    if (invoke.onSnapshot === undefined && invoke.systemId === undefined) return [];
    return [
      createLiveActorProblem(
        node,
        invoke.systemId === undefined ? "listens to snapshots (onSnapshot)" : "names a systemId",
      ),
    ];
  });
  const spawned = listSpawnActions(state).flatMap((action) => {
    const problem =
      typeof action.src === "string"
        ? findActorProblem(node, "spawns", action.src, { provided, actors })
        : createInlineActorProblem(node, "spawns");
    if (problem !== undefined) return [problem];
    if (action.systemId !== undefined || action.syncSnapshot === true)
      return [
        createLiveActorProblem(
          node,
          action.systemId === undefined ? "syncs snapshots (syncSnapshot)" : "names a systemId",
        ),
      ];
    return action.id === undefined ? [createUnnamedActorProblem(node, String(action.src))] : [];
  });
  return [...invoked, ...spawned];
}

function findActorProblem(
  node: string,
  verb: string,
  src: unknown,
  {
    provided,
    actors,
  }: { readonly provided: Readonly<Record<string, unknown>>; readonly actors: ReadonlyMap<string, MachineActor> },
): GraphProblem | undefined {
  if (typeof src !== "string" || src.startsWith("xstate.invoke.")) return createInlineActorProblem(node, verb);
  if (actors.has(src)) return undefined;
  const known = Object.hasOwn(provided, src) && provided[src] !== undefined;
  return {
    code: known ? "unsupported_actor" : "missing_actor",
    node,
    message: known
      ? `the state "${node}" ${verb} "${src}", which is neither a promise nor a machine`
      : `the state "${node}" ${verb} "${src}", which is not an actor of the machine`,
    hint: known ? "use fromPromise, or a machine with timers" : "add it to setup({ actors })",
  };
}

function createInlineActorProblem(node: string, verb: string): GraphProblem {
  return {
    code: "inline_actor",
    node,
    message: `the state "${node}" ${verb} an unnamed actor, which another process cannot restore`,
    hint: "name the actor in setup({ actors }) and use the name",
  };
}

function createUnnamedActorProblem(node: string, src: string): GraphProblem {
  return {
    code: "inline_actor",
    node,
    message: `the state "${node}" spawns "${src}" without an id`,
    hint: "pass an id to spawnChild",
  };
}

function createLiveActorProblem(node: string, usage: string): GraphProblem {
  return {
    code: "live_actor",
    node,
    message: `the state "${node}" ${usage}, which requires a live actor`,
    hint: "send events with sendTo and sendParent",
  };
}

interface SpawnAction {
  readonly type?: unknown;
  readonly src?: unknown;
  readonly id?: unknown;
  readonly systemId?: unknown;
  readonly syncSnapshot?: unknown;
}

/** Returns the spawnChild actions declared by a state; spawns from enqueueActions are checked at runtime. */
function listSpawnActions(state: StateNode): readonly SpawnAction[] {
  const transitions = [...state.transitions.values()].flat();
  const all: readonly unknown[] = [
    ...state.entry,
    ...state.exit,
    ...[...transitions, ...(state.always ?? [])].flatMap((transition) => transition.actions),
  ];
  return all.filter(
    (action): action is SpawnAction =>
      typeof action === "function" && (action as SpawnAction).type === "xstate.spawnChild",
  );
}

/** Returns the ids of all states of a machine. */
export function listStateIds(machine: AnyStateMachine): readonly string[] {
  return listStates(machine.root).map(({ id }) => id);
}

function listStates(state: StateNode): readonly StateNode[] {
  return [state, ...Object.values(state.states).flatMap((child) => listStates(child as StateNode))];
}

// Graph view of the machine, for diagrams and for the shape saved with each checkpoint.

function listLeaves(state: StateNode): readonly StateNode[] {
  return listStates(state).filter((each) => Object.keys(each.states).length === 0);
}

function getStateName(state: StateNode): string {
  return state.path.length === 0 ? state.machine.id : state.path.join(".");
}

/** Returns the innermost states entered with a state. */
function listEnteredStates(state: StateNode): readonly StateNode[] {
  if (state.type === "parallel")
    return Object.values(state.states).flatMap((child) => listEnteredStates(child as StateNode));
  if (state.type !== "compound") return [state];
  return (state.initial.target as readonly StateNode[]).flatMap(listEnteredStates);
}

function listTransitionTargets(state: StateNode): readonly string[] {
  const targets: string[] = [];
  for (let at: StateNode | undefined = state; at !== undefined; at = at.parent as StateNode | undefined) {
    const all = [...at.transitions.values()].flat();
    for (const { target } of [...all, ...(at.always ?? [])])
      targets.push(...((target ?? []) as readonly StateNode[]).flatMap(listEnteredStates).map(getStateName));
  }
  const isRootFinal = state.type === "final" && (state.parent === undefined || state.parent.parent === undefined);
  return [...new Set(isRootFinal ? [...targets, END] : targets)];
}

function createTransitionEdge(targets: readonly string[]): EdgeRecord {
  return { kind: "route", targets, choose: rejectStateBody, many: true };
}

function createStateRecord(name: string, index: number): NodeRecord {
  return { name, index, logic: functionKind, body: rejectStateBody, policy: {} };
}

function rejectStateBody(): never {
  throw new StatewrightError("machine_failed", {
    what: "a state of a user-written machine was run as a node",
    next: "Report this bug: the machine runs its own transitions",
  });
}
