/**
 * How a part of a graph's machine moves: a table of its states and of what may happen to it, read from the same
 * configuration that XState gets. Each entry is made when it is first asked for, once in a process.
 */
import {
  type Arrow,
  driverRegion,
  guards as guardsOfGraphs,
  type Leaf,
  nodeRegion,
  nodeStates,
  type Region,
} from "../../compile/compile-machine.ts";
import type { Effect, GuardResult } from "./kernel.ts";

/** What may happen to a part: its node is among the next ones, or others are, or none; what became of its node, or of another. */
export type Happening =
  | "chosen"
  | "passedOver"
  | "finished"
  | "done"
  | "interrupted"
  | "otherInterrupted"
  | "failed"
  | "otherFailed"
  | "resumed";

/** What a part makes of it. */
export interface Move {
  /** The number of the state in which it is then; undefined when it does not take the event. */
  readonly to: number | undefined;
  /** Guards that it asked, whether it moved or not. */
  readonly guards: readonly GuardResult[];
}

/** The actor that a state invokes. */
export interface Actor {
  readonly id: string;
  readonly src: string;
}

/** States go by their numbers; a part begins in 0. */
export interface PartTable {
  readonly states: readonly string[];
  readonly tags: readonly (readonly string[])[];
  readonly isFinal: readonly boolean[];
  readonly actors: readonly (Actor | undefined)[];
  move(state: number, happening: Happening): Move;
}

/** The node that every part stands for until it is told of another. */
export const anyNode = "node";

const another = `not ${anyNode}`;

type GraphEvent = Parameters<typeof guardsOfGraphs.to>[0];

const events: Readonly<Record<Exclude<Happening, "done">, GraphEvent>> = {
  chosen: { type: "step.commit", to: [anyNode] },
  passedOver: { type: "step.commit", to: [another] },
  finished: { type: "step.commit", to: [] },
  interrupted: { type: "task.interrupted", node: anyNode },
  otherInterrupted: { type: "task.interrupted", node: another },
  failed: { type: "task.failed", node: anyNode },
  otherFailed: { type: "task.failed", node: another },
  resumed: { type: "run.resumed" },
};

/** Parts: the driver and the region of a node in a parallel graph, the states of a node in a sequential one. */
const regions = { driver: driverRegion, region: () => nodeRegion(anyNode), node: () => nodeStates(anyNode) } as const;

const tables: Partial<Record<keyof typeof regions, PartTable>> = {};

/** The table of a part. */
export function partTable(part: "driver" | "region" | "node"): PartTable {
  const known = tables[part] ?? tableOf(regions[part]());
  tables[part] = known;
  return known;
}

function tableOf({ states }: Region): PartTable {
  const names = Object.keys(states);
  const leaves = Object.values(states);
  const rows = leaves.map((): Partial<Record<Happening, Move>> => ({}));
  return {
    states: names,
    tags: leaves.map(({ tags = [] }) => tags),
    isFinal: leaves.map(({ type }) => type === "final"),
    actors: leaves.map(({ invoke }) => invoke),
    move: (state, happening) => {
      const row = rows[state] ?? {};
      const known = row[happening] ?? moveOf(names, leaves[state] ?? {}, happening);
      row[happening] = known;
      return known;
    },
  };
}

function moveOf(names: readonly string[], { on = {}, invoke }: Leaf, happening: Happening): Move {
  if (happening === "done")
    return { to: invoke?.onDone === undefined ? undefined : names.indexOf(invoke.onDone), guards: [] };
  const event = events[happening];
  const { target, guards } = taken(arrowsOf(on[event.type]), event);
  return { to: target === undefined ? undefined : names.indexOf(target), guards };
}

function arrowsOf(given: NonNullable<Leaf["on"]>[string] | undefined): readonly Arrow[] {
  if (given === undefined) return [];
  if (typeof given === "string") return [{ target: given }];
  return "target" in given ? [given] : given;
}

/** The target of the first arrow whose guard says so, and what the guards said that were asked. */
export function taken(
  arrows: readonly Arrow[],
  event: GraphEvent,
): { readonly target: string | undefined; readonly guards: readonly GuardResult[] } {
  const guards: GuardResult[] = [];
  const found = arrows.find(({ guard }) => {
    if (guard === undefined) return true;
    const result = saysOf(guard, event);
    guards.push({ guard: guard.type, params: "params" in guard ? guard.params : undefined, result });
    return result;
  });
  return { target: found?.target, guards };
}

function saysOf(guard: NonNullable<Arrow["guard"]>, event: GraphEvent): boolean {
  switch (guard.type) {
    case "to":
      return guardsOfGraphs.to(event, guard.params);
    case "finished":
      return guardsOfGraphs.finished(event);
    case "of":
      return guardsOfGraphs.of(event, guard.params);
  }
}

/** What entering a state starts and leaving it stops, told of `node`: actors are called after their nodes. */
export function effectsOf(
  node: string,
  actor: Actor | undefined,
): Readonly<Record<"starts" | "stops", readonly Effect[]>> {
  if (actor === undefined) return noEffects;
  const id = node + actor.id.slice(anyNode.length);
  const src = actor.src === anyNode ? node : actor.src;
  return { starts: [{ kind: "start", id, src, input: undefined }], stops: [{ kind: "stop", id }] };
}

const noEffects: Readonly<Record<"starts" | "stops", readonly Effect[]>> = { starts: [], stops: [] };

/** The event type by which the actor of a node ends. */
export function doneOf(node: string): string {
  return `xstate.done.actor.${node}`;
}
