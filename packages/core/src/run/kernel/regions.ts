/** Regions of a parallel graph's machine: states, transitions and their effects. */
import { deepFreeze, type Json } from "../../base/json.ts";
import type { Effect, GuardResult, Snapshot, Step, Trail } from "./kernel.ts";
import {
  anyNode,
  createActorEffects,
  getRegionTable,
  type RegionEvent,
  type RegionTable,
  type RegionTransition,
} from "./region-table.ts";

/** Region of the driver or of a node. */
interface Region {
  readonly name: string;
  readonly table: RegionTable;
  /** Enter and exit effects by state index, created on first use. */
  readonly effects: ReturnType<typeof createActorEffects>[];
}

/** Regions of a graph, identified by index: the driver first, then the nodes in declaration order. */
export interface Regions {
  readonly list: readonly Region[];
  /** Machine value with all regions in their initial states. */
  readonly initialValue: Readonly<Record<string, string>>;
}

export function createRegions(nodes: Iterable<string>): Regions {
  const list = [createRegion("driver", "driver"), ...[...nodes].map((node) => createRegion(node, "region"))];
  return { list, initialValue: Object.fromEntries(list.map(({ name, table }) => [name, table.states[0] ?? ""])) };
}

function createRegion(name: string, kind: "driver" | "region"): Region {
  return { name, table: getRegionTable(kind), effects: [] };
}

/** Index of the driver. */
export const driverIndex = 0;

/** Regions targeted by an event, and the region events they receive. */
export interface EventTargets {
  /** Indices of the targeted regions and the event they receive. */
  readonly indices: readonly number[];
  readonly targetEvent: RegionEvent;
  /** Event of the other regions; undefined when they receive none. */
  readonly otherEvent: RegionEvent | undefined;
  /** True when the other regions may move; otherwise they only evaluate their guards. */
  readonly movesAll: boolean;
}

/** State index of each region. */
export type RegionStates = readonly number[];

/**
 * Computes the transition of an event; undefined when no region takes the event. `toSnapshot` creates the snapshot of
 * the new states.
 */
export function computeStep(
  regions: Regions,
  states: RegionStates,
  targets: EventTargets,
  toSnapshot: (states: RegionStates) => Snapshot,
): Step | undefined {
  const moves = listMoves(regions, states, targets);
  if (moves.length === 0) return undefined;
  const next = states.slice();
  for (const { index, to } of moves) next[index] = to;
  return [toSnapshot(next), listEffects(regions, moves), new LazyTrail(regions, states, targets)];
}

/** Transition of a region between two states. */
interface RegionMove {
  readonly index: number;
  readonly from: number;
  readonly to: number;
}

/** Lists the moves of the regions that take an event, in region order. */
function listMoves(regions: Regions, states: RegionStates, targets: EventTargets): readonly RegionMove[] {
  const moves: RegionMove[] = [];
  const tryMove = (number: number, happening: RegionEvent | undefined): void => {
    const to = getTransition(regions, states, number, happening)?.to;
    if (to !== undefined) moves.push({ index: number, from: states[number] ?? 0, to });
  };
  if (targets.movesAll)
    for (const [number, happening] of listRegionEvents(regions, targets).entries()) tryMove(number, happening);
  else for (const number of targets.indices) tryMove(number, targets.targetEvent);
  return moves;
}

/** Lists the event of each region, by region index. */
function listRegionEvents(
  { list }: Regions,
  { indices, targetEvent, otherEvent }: EventTargets,
): readonly (RegionEvent | undefined)[] {
  const events: (RegionEvent | undefined)[] = list.map(() => otherEvent);
  for (const number of indices) events[number] = targetEvent;
  return events;
}

function getTransition(
  { list }: Regions,
  states: RegionStates,
  index: number,
  event: RegionEvent | undefined,
): RegionTransition | undefined {
  return event === undefined ? undefined : list[index]?.table.move(states[index] ?? 0, event);
}

/** Lists effects in XState's order: exits from the last region to the first, then entries. */
function listEffects(regions: Regions, moves: readonly RegionMove[]): readonly Effect[] {
  const effects = moves.toReversed().flatMap(({ index, from }) => getEffects(regions, index, from).stops);
  for (const { index, to } of moves) effects.push(...getEffects(regions, index, to).starts);
  return effects;
}

function getEffects({ list }: Regions, index: number, state: number): ReturnType<typeof createActorEffects> {
  const { name = "", table, effects = [] } = list[index] ?? {};
  const known = effects[state] ?? createActorEffects(name, table?.actors[state]);
  effects[state] = known;
  return known;
}

/**
 * Snapshot of the regions. The value is computed on access: of all transitions of a superstep only the last snapshot
 * is saved.
 */
export class RegionSnapshot implements Snapshot {
  readonly context: unknown = noContext;
  readonly status: Snapshot["status"];
  readonly output: unknown = undefined;
  readonly error: unknown = undefined;
  readonly states: RegionStates;
  /** Memoized transitions from this snapshot; undefined when not memoized. */
  readonly memoized: { readonly memory: object; readonly steps: Map<string, Step> } | undefined;
  readonly #regions: Regions;
  #value: Json | undefined;

  constructor(regions: Regions, states: RegionStates, memoized: RegionSnapshot["memoized"]) {
    this.states = states;
    this.memoized = memoized;
    this.#regions = regions;
    const isFinal = (number: number): boolean => regions.list[number]?.table.isFinal[states[number] ?? 0] === true;
    this.status = isFinal(driverIndex) && regions.list.every((_, number) => isFinal(number)) ? "done" : "active";
  }

  get value(): Json {
    this.#value ??= toMachineValue(this.#regions, this.states);
    return this.#value;
  }

  get tags(): ReadonlySet<string> {
    return new Set(this.#regions.list.flatMap(({ table }, number) => table.tags[this.states[number] ?? 0] ?? []));
  }
}

const noContext: Readonly<Record<string, never>> = Object.freeze({});

/** Most regions are in their initial state, so only the others are looked up. */
function toMachineValue({ list, initialValue }: Regions, states: RegionStates): Json {
  const value = { ...initialValue };
  for (const [number, state] of states.entries()) {
    const { name = "", table } = list[number] ?? {};
    if (state !== 0) value[name] = table?.states[state] ?? "";
  }
  return deepFreeze(value);
}

/** Parses a machine value to state indices; undefined for other regions or an unknown state. */
export function parseStates({ list }: Regions, value: Json): RegionStates | undefined {
  const entries = typeof value === "object" && value !== null ? (value as Readonly<Record<string, Json>>) : {};
  const states = list.map(({ name, table }) => table.states.indexOf(String(entries[name])));
  return Object.keys(entries).length === list.length && !states.includes(-1) ? states : undefined;
}

/** Guard results of a transition, recomputed on access. */
class LazyTrail implements Trail {
  readonly steps: Trail["steps"] = [];
  readonly #regions: Regions;
  readonly #before: RegionStates;
  readonly #targets: EventTargets;
  #guards: readonly GuardResult[] | undefined;

  constructor(regions: Regions, before: RegionStates, targets: EventTargets) {
    this.#regions = regions;
    this.#before = before;
    this.#targets = targets;
  }

  get guards(): readonly GuardResult[] {
    this.#guards ??= evaluateGuards(this.#regions, this.#before, this.#targets);
    return this.#guards;
  }
}

function evaluateGuards(regions: Regions, states: RegionStates, targets: EventTargets): readonly GuardResult[] {
  const results = listRegionEvents(regions, targets).flatMap((happening, number) => {
    const { name = "" } = regions.list[number] ?? {};
    const { guards = [] } = getTransition(regions, states, number, happening) ?? {};
    return guards.map((guard) => ({ ...guard, params: bindGuardParams(name, guard.params) }));
  });
  return deepFreeze(results);
}

/** Replaces the placeholder node in guard parameters with the region's node. */
function bindGuardParams(node: string, params: unknown): unknown {
  if (typeof params !== "object" || params === null) return params;
  return Object.fromEntries(Object.entries(params).map(([key, value]) => [key, value === anyNode ? node : value]));
}
