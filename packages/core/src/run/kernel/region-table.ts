/**
 * Transition table of a region of a graph's machine: states and region events, read from the same configuration
 * that XState gets. Entries are computed on first use, once per process.
 */
import {
  createDriverRegion,
  createNodeRegion,
  createNodeStates,
  type GuardedTransition,
  guards as guardsOfGraphs,
  type LeafState,
  type Region,
} from "../../compile/compile-machine.ts";
import type { Effect, GuardResult } from "./kernel.ts";

/** Events of a region: its node, other nodes or no nodes run next; or the result of its node or of another node. */
export type RegionEvent =
  | "chosen"
  | "passedOver"
  | "finished"
  | "done"
  | "interrupted"
  | "otherInterrupted"
  | "failed"
  | "otherFailed"
  | "resumed";

/** Transition of a region for an event. */
export interface RegionTransition {
  /** Index of the target state; undefined when the region ignores the event. */
  readonly to: number | undefined;
  /** Results of the evaluated guards, also when no transition was taken. */
  readonly guards: readonly GuardResult[];
}

/** Actor invoked by a state. */
export interface Actor {
  readonly id: string;
  readonly src: string;
}

/** Transition table; states are identified by index, and index 0 is the initial state. */
export interface RegionTable {
  readonly states: readonly string[];
  readonly tags: readonly (readonly string[])[];
  readonly isFinal: readonly boolean[];
  readonly actors: readonly (Actor | undefined)[];
  move(state: number, event: RegionEvent): RegionTransition;
}

/** Placeholder node name in all tables. */
export const anyNode = "node";

const otherNode = `not ${anyNode}`;

type GraphEvent = Parameters<typeof guardsOfGraphs.to>[0];

const events: Readonly<Record<Exclude<RegionEvent, "done">, GraphEvent>> = {
  chosen: { type: "step.commit", to: [anyNode] },
  passedOver: { type: "step.commit", to: [otherNode] },
  finished: { type: "step.commit", to: [] },
  interrupted: { type: "task.interrupted", node: anyNode },
  otherInterrupted: { type: "task.interrupted", node: otherNode },
  failed: { type: "task.failed", node: anyNode },
  otherFailed: { type: "task.failed", node: otherNode },
  resumed: { type: "run.resumed" },
};

/**
 * Region kinds: the driver and the region of a node in a parallel graph, the states of a node in a sequential graph.
 */
const regions = {
  driver: createDriverRegion,
  region: () => createNodeRegion(anyNode),
  node: () => createNodeStates(anyNode),
} as const;

const tables: Partial<Record<keyof typeof regions, RegionTable>> = {};

/** Returns the transition table of a region kind. */
export function getRegionTable(kind: "driver" | "region" | "node"): RegionTable {
  const known = tables[kind] ?? createRegionTable(regions[kind]());
  tables[kind] = known;
  return known;
}

function createRegionTable({ states }: Region): RegionTable {
  const names = Object.keys(states);
  const leaves = Object.values(states);
  const rows = leaves.map((): Partial<Record<RegionEvent, RegionTransition>> => ({}));
  return {
    states: names,
    tags: leaves.map(({ tags = [] }) => tags),
    isFinal: leaves.map(({ type }) => type === "final"),
    actors: leaves.map(({ invoke }) => invoke),
    move: (state, happening) => {
      const row = rows[state] ?? {};
      const known = row[happening] ?? computeTransition(names, leaves[state] ?? {}, happening);
      row[happening] = known;
      return known;
    },
  };
}

function computeTransition(
  names: readonly string[],
  { on = {}, invoke }: LeafState,
  happening: RegionEvent,
): RegionTransition {
  if (happening === "done")
    return { to: invoke?.onDone === undefined ? undefined : names.indexOf(invoke.onDone), guards: [] };
  const event = events[happening];
  const { target, guards } = selectTransition(toArrows(on[event.type]), event);
  return { to: target === undefined ? undefined : names.indexOf(target), guards };
}

function toArrows(config: NonNullable<LeafState["on"]>[string] | undefined): readonly GuardedTransition[] {
  if (config === undefined) return [];
  if (typeof config === "string") return [{ target: config }];
  return "target" in config ? [config] : config;
}

/** Returns the target of the first arrow whose guard passes, and the results of the evaluated guards. */
export function selectTransition(
  arrows: readonly GuardedTransition[],
  event: GraphEvent,
): { readonly target: string | undefined; readonly guards: readonly GuardResult[] } {
  const guards: GuardResult[] = [];
  const found = arrows.find(({ guard }) => {
    if (guard === undefined) return true;
    const result = evaluateGuard(guard, event);
    guards.push({ guard: guard.type, params: "params" in guard ? guard.params : undefined, result });
    return result;
  });
  return { target: found?.target, guards };
}

function evaluateGuard(guard: NonNullable<GuardedTransition["guard"]>, event: GraphEvent): boolean {
  switch (guard.type) {
    case "to":
      return guardsOfGraphs.to(event, guard.params);
    case "finished":
      return guardsOfGraphs.finished(event);
    case "of":
      return guardsOfGraphs.of(event, guard.params);
  }
}

/** Returns the effects of entering and leaving a state, for `node`: actors are named after their nodes. */
export function createActorEffects(
  node: string,
  actor: Actor | undefined,
): Readonly<Record<"starts" | "stops", readonly Effect[]>> {
  if (actor === undefined) return noEffects;
  const id = node + actor.id.slice(anyNode.length);
  const src = actor.src === anyNode ? node : actor.src;
  return { starts: [{ kind: "start", id, src, input: undefined }], stops: [{ kind: "stop", id }] };
}

const noEffects: Readonly<Record<"starts" | "stops", readonly Effect[]>> = { starts: [], stops: [] };

/** Returns the XState event type for the end of a node's actor. */
export function toDoneEventType(node: string): string {
  return `xstate.done.actor.${node}`;
}
