/**
 * `durable`: a machine drawn by hand as a graph that `run` takes. What cannot be saved (callbacks, observables, history
 * states, actors without a name) is refused here, all of it at once.
 */
import {
  type AnyStateMachine,
  type ContextFrom,
  type InputFrom,
  type OutputFrom,
  type ProvidedActor,
  StateMachine,
} from "xstate";
import type { EffectClass } from "../base/effect.ts";
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { deepFreeze, isPlainObject, type Json, sameData } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition, GraphTypes, NodeRecord } from "../define/graph.ts";
import type { Channel } from "../state/channel.ts";
import type { Delta } from "../state/delta.ts";
import type { Graph } from "./define-graph.ts";
import { type GraphProblem, refuseProblems } from "./problem.ts";

/** The effect class of each actor by its name in `setup`; for an actor that is a machine, those of its own actors. */
export type ActorEffects<Names extends string = string> = {
  readonly [Name in Names]?: EffectClass | ActorEffects;
};

/** What `durable` takes. */
export interface DurableOptions<Names extends string> {
  /** Count up when a change of the machine must not be taken for the old one. */
  readonly version: number;
  /** What a crash may do to a promise that was under way. Default `once`: it is never begun again without a decision. */
  readonly effects?: ActorEffects<Names>;
}

const names = optionNames<DurableOptions<string>>({ version: true, effects: true });

/** Names of the actors that a machine was set up with. */
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

/** A machine's state as a run, `getState` and `history` show it. */
export type MachineState<Context = unknown, Output = unknown> = {
  /** XState's state value. */
  readonly value: Json;
  readonly context: Context;
  /** Child machines that are under way, by the ids that lead to them. */
  readonly children: Readonly<
    Record<string, { readonly src: string; readonly value: Json; readonly context: unknown }>
  >;
  /** What it ended with; undefined before. */
  readonly output: Output | undefined;
};

type ObjectOf<Given> = unknown extends Given ? object : Given extends object ? Given : never;

/** The types of a durable machine, as `run` and `fork` read them: its own type is long, and nobody reads it. */
export interface MachineTypes<Context, Input, Output> extends GraphTypes {
  readonly state: MachineState<Context, Output>;
  readonly update: { readonly context?: Partial<Context> };
  readonly input: ObjectOf<Input>;
  readonly result: MachineState<Context, Output>;
  readonly output: Output;
}

/** An actor of a drawn machine. */
export type DrawnActor = DrawnPromise | { readonly kind: "machine"; readonly drawing: Drawing };

/** A promise that a machine starts; `create` is what `fromPromise` was given. */
export interface DrawnPromise {
  readonly kind: "promise";
  readonly create: (args: object) => PromiseLike<unknown>;
  readonly effect: EffectClass;
}

/** A machine drawn by hand, with what its actors are. */
export interface Drawing {
  readonly machine: AnyStateMachine;
  readonly actors: ReadonlyMap<string, DrawnActor>;
}

const drawings: WeakMap<GraphDefinition, Drawing> = new WeakMap();

/** The drawing that `durable` made a graph of; undefined for a graph of nodes. */
export function drawingOf(graph: GraphDefinition): Drawing | undefined {
  return drawings.get(graph);
}

/**
 * Make an XState machine durable: `run` and `resume` take what this returns. Its promises are recorded effects with the
 * classes in `effects`; `self.sessionId` is the idempotency key of a promise, the same in every attempt and after every
 * crash. Delays are saved with their due time; events come in as the answers of `resume`. Custom actions run when the
 * transition that names them is durable: at most once, and not at all where the process dies in between. Work that must
 * not be lost belongs in an actor. Throws `invalid_graph` with every state that cannot be made durable.
 */
export function durable<const Machine extends AnyStateMachine>(
  machine: Machine,
  options: DurableOptions<NoInfer<ActorNames<Machine>>>,
): Graph<MachineTypes<ContextFrom<Machine>, InputFrom<Machine>, OutputFrom<Machine>>> {
  checkOptions("durable", options, names);
  const { version, effects = {} } = options;
  checkId("id of the machine", machine.id);
  if (!Number.isInteger(version) || version < 1) {
    throw new StatewrightError("invalid_option", {
      what: `the version of the machine "${machine.id}" is ${String(version)}`,
      next: "Give a whole number from 1",
    });
  }
  const problems: GraphProblem[] = [];
  const drawing = drawingFrom(machine, effects as ActorEffects, problems);
  refuseProblems("machine", machine.id, problems);
  const states = leavesBelow(machine.root);
  const graph: GraphDefinition & { readonly machine: AnyStateMachine } = Object.freeze({
    name: machine.id,
    version,
    state: { channels },
    context: undefined,
    interrupts: {},
    input: undefined,
    output: undefined,
    private: new Set<string>(),
    nodes: new Map(states.map((state, index) => [nameOf(state), nodeRecord(nameOf(state), index)])),
    edges: new Map([
      [START, leadsTo(enteredBy(machine.root).map(nameOf))],
      ...states.map((state): [string, EdgeRecord] => [nameOf(state), leadsTo(targetsFrom(state))]),
    ]),
    tools: [],
    inbox: "all",
    middleware: [],
    machine,
  });
  drawings.set(graph, drawing);
  return graph as Graph<MachineTypes<ContextFrom<Machine>, InputFrom<Machine>, OutputFrom<Machine>>>;
}

/** The names of the innermost active states of a state value. */
export function leafNames(machine: string, value: Json): readonly string[] {
  const below = (at: Json, path: string): readonly string[] => {
    if (typeof at === "string") return [path === "" ? at : `${path}.${at}`];
    const inner = isPlainObject(at) ? Object.entries(at as Readonly<Record<string, Json>>) : [];
    if (inner.length === 0) return [path === "" ? machine : path];
    return inner.flatMap(([key, child]) => below(child, path === "" ? key : `${path}.${key}`));
  };
  return below(value, "");
}

/** What changed between two objects, key by key; nothing when they hold the same. */
export function changesOf(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Delta | undefined {
  const changed = Object.entries(after).filter(
    ([key, value]) => !Object.hasOwn(before, key) || !sameData(before[key], value),
  );
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  if (changed.length === 0 && gone.length === 0) return undefined;
  return {
    kind: "patch",
    patches: [
      ...gone.map((key) => ({ op: "remove" as const, path: [key] })),
      ...changed.map(([key, value]) => ({ op: "add" as const, path: [key], value })),
    ],
  };
}

const channels: Readonly<Record<keyof MachineState, Channel>> = Object.freeze({
  value: moved("value", null),
  context: {
    kind: "record",
    initial: () => ({ value: Object.freeze({}) }),
    parse: parseContext,
    parseValue: parseContext,
    fold: (current, writes) => {
      const before = current as Readonly<Record<string, unknown>>;
      const value = Object.freeze(Object.assign({}, before, ...writes)) as Readonly<Record<string, unknown>>;
      return { value, delta: changesOf(before, value) ?? { kind: "patch", patches: [] } };
    },
  },
  children: moved("children", Object.freeze({})),
  output: moved("output", undefined),
});

/** A part of the state that only transitions change. */
function moved(name: string, initial: unknown): Channel {
  const refused = () => ({
    ok: false as const,
    issues: [{ path: "", message: `${name} is moved by events; only the context can be edited` }],
  });
  return {
    kind: "last",
    initial: () => ({ value: initial }),
    parse: refused,
    parseValue: refused,
    fold: (_current, writes) => {
      const value = writes[writes.length - 1];
      return { value, delta: { kind: "replace", value } };
    },
  };
}

function parseContext(value: unknown): ReturnType<Channel["parse"]> {
  return isPlainObject(value)
    ? { ok: true, value: deepFreeze(value) }
    : { ok: false, issues: [{ path: "", message: "expected an object with the parts of the context" }] };
}

// What a machine is made of.

type StateNode = AnyStateMachine["root"];

function drawingFrom(machine: AnyStateMachine, effects: ActorEffects, problems: GraphProblem[]): Drawing {
  const provided = machine.implementations.actors as Readonly<Record<string, unknown>>;
  const actors = new Map<string, DrawnActor>();
  for (const [name, logic] of Object.entries(provided)) {
    const given = Object.hasOwn(effects, name) ? effects[name] : undefined;
    if (logic instanceof StateMachine) {
      if (typeof given === "string") problems.push(notOfMachine(machine, name));
      const inner = typeof given === "object" ? given : {};
      actors.set(name, { kind: "machine", drawing: drawingFrom(logic as AnyStateMachine, inner, problems) });
    } else if (isPromiseLogic(logic)) {
      if (given !== undefined && !isEffectClass(given)) problems.push(notOfPromise(machine, name));
      const effect = isEffectClass(given) ? given : "once";
      actors.set(name, { kind: "promise", create: logic.config as DrawnPromise["create"], effect });
    }
  }
  for (const name of Object.keys(effects)) {
    if (actors.has(name)) continue;
    problems.push({
      code: "unknown_effect",
      node: name,
      message: `the machine "${machine.id}" has no promise or machine "${name}" to give an effect class`,
      hint: `its actors are ${[...actors.keys()].map((known) => `"${known}"`).join(", ") || "none"}`,
    });
  }
  for (const state of statesOf(machine.root)) problems.push(...problemsOf(state, provided, actors));
  return { machine, actors };
}

function isEffectClass(given: unknown): given is EffectClass {
  return given === "pure" || given === "idempotent" || given === "once";
}

function notOfMachine(machine: AnyStateMachine, name: string): GraphProblem {
  return {
    code: "unknown_effect",
    node: name,
    message: `the actor "${name}" of the machine "${machine.id}" is a machine and has no effect class of its own`,
    hint: `give those of its actors: ${name}: { actor: "idempotent" }`,
  };
}

function notOfPromise(machine: AnyStateMachine, name: string): GraphProblem {
  return {
    code: "unknown_effect",
    node: name,
    message: `the effect class of the actor "${name}" of the machine "${machine.id}" is none`,
    hint: 'use "pure", "idempotent" or "once"',
  };
}

interface Logic {
  readonly config: unknown;
  readonly transition: (state: object, event: object, scope: object) => unknown;
}

/** Callbacks, promises and observables look the same from outside: a promise is what ends when its promise does. */
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

function problemsOf(
  state: StateNode,
  provided: Readonly<Record<string, unknown>>,
  actors: ReadonlyMap<string, DrawnActor>,
): readonly GraphProblem[] {
  const node = state.id;
  if (state.type === "history")
    return [
      {
        code: "history_state",
        node,
        message: `"${node}" is a history state, and what it remembers is not saved`,
        hint: "keep in the context where to go back to",
      },
    ];
  const invoked = state.invoke.flatMap((invoke) => {
    const problem = actorProblem(node, "invokes", invoke.src, provided, actors);
    if (problem !== undefined) return [problem];
    if (invoke.onSnapshot === undefined && invoke.systemId === undefined) return [];
    return [live(node, invoke.systemId === undefined ? "listens to snapshots (onSnapshot)" : "names a systemId")];
  });
  const spawned = actionsOf(state).flatMap((action) => {
    const problem =
      typeof action.src === "string"
        ? actorProblem(node, "spawns", action.src, provided, actors)
        : inline(node, "spawns");
    if (problem !== undefined) return [problem];
    if (action.systemId !== undefined || action.syncSnapshot === true)
      return [live(node, action.systemId === undefined ? "syncs snapshots (syncSnapshot)" : "names a systemId")];
    return action.id === undefined ? [unnamed(node, String(action.src))] : [];
  });
  return [...invoked, ...spawned];
}

function actorProblem(
  node: string,
  does: string,
  src: unknown,
  provided: Readonly<Record<string, unknown>>,
  actors: ReadonlyMap<string, DrawnActor>,
): GraphProblem | undefined {
  if (typeof src !== "string" || src.startsWith("xstate.invoke.")) return inline(node, does);
  if (actors.has(src)) return undefined;
  const known = Object.hasOwn(provided, src) && provided[src] !== undefined;
  return {
    code: known ? "unsupported_actor" : "missing_actor",
    node,
    message: known
      ? `the state "${node}" ${does} "${src}", which is neither a promise nor a machine`
      : `the state "${node}" ${does} "${src}", which the machine does not have`,
    hint: known ? "make it a fromPromise, or a machine with timers" : "name it in setup({ actors })",
  };
}

function inline(node: string, does: string): GraphProblem {
  return {
    code: "inline_actor",
    node,
    message: `the state "${node}" ${does} an actor without a name, which no other process could find again`,
    hint: "name it in setup({ actors }) and use the name",
  };
}

function unnamed(node: string, src: string): GraphProblem {
  return {
    code: "inline_actor",
    node,
    message: `the state "${node}" spawns "${src}" without an id`,
    hint: "give spawnChild an id",
  };
}

function live(node: string, does: string): GraphProblem {
  return {
    code: "live_actor",
    node,
    message: `the state "${node}" ${does}, which only a live actor can do`,
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

/** The spawnChild actions that a state names itself; what enqueueActions does is seen when it runs. */
function actionsOf(state: StateNode): readonly SpawnAction[] {
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

/** The ids of all states of a machine. */
export function stateIds(machine: AnyStateMachine): readonly string[] {
  return statesOf(machine.root).map(({ id }) => id);
}

function statesOf(state: StateNode): readonly StateNode[] {
  return [state, ...Object.values(state.states).flatMap((child) => statesOf(child as StateNode))];
}

// The machine as a graph, for pictures and for the shape that is saved with each checkpoint.

function leavesBelow(state: StateNode): readonly StateNode[] {
  return statesOf(state).filter((each) => Object.keys(each.states).length === 0);
}

function nameOf(state: StateNode): string {
  return state.path.length === 0 ? state.machine.id : state.path.join(".");
}

/** The innermost states that are entered with a state. */
function enteredBy(state: StateNode): readonly StateNode[] {
  if (state.type === "parallel") return Object.values(state.states).flatMap((child) => enteredBy(child as StateNode));
  if (state.type !== "compound") return [state];
  return (state.initial.target as readonly StateNode[]).flatMap(enteredBy);
}

function targetsFrom(state: StateNode): readonly string[] {
  const targets: string[] = [];
  for (let at: StateNode | undefined = state; at !== undefined; at = at.parent as StateNode | undefined) {
    const all = [...at.transitions.values()].flat();
    for (const { target } of [...all, ...(at.always ?? [])])
      targets.push(...((target ?? []) as readonly StateNode[]).flatMap(enteredBy).map(nameOf));
  }
  const ends = state.type === "final" && (state.parent === undefined || state.parent.parent === undefined);
  return [...new Set(ends ? [...targets, END] : targets)];
}

function leadsTo(targets: readonly string[]): EdgeRecord {
  return { kind: "route", targets, choose: runsElsewhere, many: true };
}

function nodeRecord(name: string, index: number): NodeRecord {
  return { name, index, kind: "body", body: runsElsewhere, policy: {} };
}

function runsElsewhere(): never {
  throw new StatewrightError("machine_failed", {
    what: "a state of a hand-drawn machine was run as a node",
    next: "Report this: the machine moves itself",
  });
}
