/** The regions of a parallel graph's machine: how they stand, how an event moves them, and what comes of it. */
import { deepFreeze, type Json } from "../../base/json.ts";
import type { Effect, GuardResult, Snapshot, Step, Trail } from "./kernel.ts";
import { anyNode, effectsOf, type Happening, type Move, type PartTable, partTable } from "./region-table.ts";

/** The driver or the region of a node. */
interface Region {
  readonly name: string;
  readonly table: PartTable;
  /** What entering and leaving its states wants done, by their numbers, made when first wanted. */
  readonly effects: ReturnType<typeof effectsOf>[];
}

/** The regions of one graph go by their numbers: the driver first, then the nodes in their order. */
export interface Regions {
  readonly list: readonly Region[];
  /** The value of a machine in which all of them stand in their first states. */
  readonly atRest: Readonly<Record<string, string>>;
}

export function regionsOf(nodes: Iterable<string>): Regions {
  const list = [regionOf("driver", "driver"), ...[...nodes].map((node) => regionOf(node, "region"))];
  return { list, atRest: Object.fromEntries(list.map(({ name, table }) => [name, table.states[0] ?? ""])) };
}

function regionOf(name: string, part: "driver" | "region"): Region {
  return { name, table: partTable(part), effects: [] };
}

/** The number of the driver. */
export const driver = 0;

/** What an event is to the regions. */
export interface Heard {
  /** The numbers of those that it is about, and what it is to them. */
  readonly about: readonly number[];
  readonly own: Happening;
  /** What it is to all others, if they hear of it. */
  readonly rest: Happening | undefined;
  /** Whether the others may move: if not, they only ask their guards. */
  readonly all: boolean;
}

/** Where the regions stand, by the numbers of their states. */
export type States = readonly number[];

/** What an event does; undefined when no region takes it. `stand` says what is to be made of the new states. */
export function stepOf(
  regions: Regions,
  states: States,
  heard: Heard,
  stand: (states: States) => Snapshot,
): Step | undefined {
  const moved = movesOf(regions, states, heard);
  if (moved.length === 0) return undefined;
  const next = states.slice();
  for (const { number, to } of moved) next[number] = to;
  return [stand(next), effectsIn(regions, moved), new LateTrail(regions, states, heard)];
}

/** A region that moves from one of its states to another. */
interface Moved {
  readonly number: number;
  readonly from: number;
  readonly to: number;
}

/** The moves of the regions that take an event, in their order. */
function movesOf(regions: Regions, states: States, heard: Heard): readonly Moved[] {
  const moved: Moved[] = [];
  const offer = (number: number, happening: Happening | undefined): void => {
    const to = moveOf(regions, states, number, happening)?.to;
    if (to !== undefined) moved.push({ number, from: states[number] ?? 0, to });
  };
  if (heard.all) for (const [number, happening] of happeningsOf(regions, heard).entries()) offer(number, happening);
  else for (const number of heard.about) offer(number, heard.own);
  return moved;
}

/** What happens to each region, by its number. */
function happeningsOf({ list }: Regions, { about, own, rest }: Heard): readonly (Happening | undefined)[] {
  const happenings: (Happening | undefined)[] = list.map(() => rest);
  for (const number of about) happenings[number] = own;
  return happenings;
}

function moveOf({ list }: Regions, states: States, number: number, happening: Happening | undefined): Move | undefined {
  return happening === undefined ? undefined : list[number]?.table.move(states[number] ?? 0, happening);
}

/** As XState has it: what is left is stopped from the last region to the first, then what is entered starts. */
function effectsIn(regions: Regions, moved: readonly Moved[]): readonly Effect[] {
  const effects = moved.toReversed().flatMap(({ number, from }) => effectsAt(regions, number, from).stops);
  for (const { number, to } of moved) effects.push(...effectsAt(regions, number, to).starts);
  return effects;
}

function effectsAt({ list }: Regions, number: number, state: number): ReturnType<typeof effectsOf> {
  const { name = "", table, effects = [] } = list[number] ?? {};
  const known = effects[state] ?? effectsOf(name, table?.actors[state]);
  effects[state] = known;
  return known;
}

/** A snapshot of the regions. Its value is made when it is asked for: of all the steps of a superstep the last one's is saved. */
export class Standing implements Snapshot {
  readonly context: unknown = noContext;
  readonly status: Snapshot["status"];
  readonly output: unknown = undefined;
  readonly error: unknown = undefined;
  readonly states: States;
  /** Steps that were taken from here, and what remembers them; absent where none does. */
  readonly taken: { readonly memory: object; readonly steps: Map<string, Step> } | undefined;
  readonly #regions: Regions;
  #value: Json | undefined;

  constructor(regions: Regions, states: States, taken: Standing["taken"]) {
    this.states = states;
    this.taken = taken;
    this.#regions = regions;
    const isFinal = (number: number): boolean => regions.list[number]?.table.isFinal[states[number] ?? 0] === true;
    this.status = isFinal(driver) && regions.list.every((_, number) => isFinal(number)) ? "done" : "active";
  }

  get value(): Json {
    this.#value ??= valueIn(this.#regions, this.states);
    return this.#value;
  }

  get tags(): ReadonlySet<string> {
    return new Set(this.#regions.list.flatMap(({ table }, number) => table.tags[this.states[number] ?? 0] ?? []));
  }
}

const noContext: Readonly<Record<string, never>> = Object.freeze({});

/** Most regions stand in their first states: only the others are told from them. */
function valueIn({ list, atRest }: Regions, states: States): Json {
  const value = { ...atRest };
  for (const [number, state] of states.entries()) {
    const { name = "", table } = list[number] ?? {};
    if (state !== 0) value[name] = table?.states[state] ?? "";
  }
  return deepFreeze(value);
}

/** The states that a value says; undefined where it has other regions, or one stands where it cannot. */
export function statesOf({ list }: Regions, value: Json): States | undefined {
  const given = typeof value === "object" && value !== null ? (value as Readonly<Record<string, Json>>) : {};
  const states = list.map(({ name, table }) => table.states.indexOf(String(given[name])));
  return Object.keys(given).length === list.length && !states.includes(-1) ? states : undefined;
}

/** How a step came about, looked up again when somebody reads it. */
class LateTrail implements Trail {
  readonly steps: Trail["steps"] = [];
  readonly #regions: Regions;
  readonly #before: States;
  readonly #heard: Heard;
  #guards: readonly GuardResult[] | undefined;

  constructor(regions: Regions, before: States, heard: Heard) {
    this.#regions = regions;
    this.#before = before;
    this.#heard = heard;
  }

  get guards(): readonly GuardResult[] {
    this.#guards ??= guardsOf(this.#regions, this.#before, this.#heard);
    return this.#guards;
  }
}

function guardsOf(regions: Regions, states: States, heard: Heard): readonly GuardResult[] {
  const asked = happeningsOf(regions, heard).flatMap((happening, number) => {
    const { name = "" } = regions.list[number] ?? {};
    const { guards = [] } = moveOf(regions, states, number, happening) ?? {};
    return guards.map((guard) => ({ ...guard, params: paramsOf(name, guard.params) }));
  });
  return deepFreeze(asked);
}

/** Guards of a region are asked about its node. */
function paramsOf(node: string, params: unknown): unknown {
  if (typeof params !== "object" || params === null) return params;
  return Object.fromEntries(Object.entries(params).map(([key, value]) => [key, value === anyNode ? node : value]));
}
