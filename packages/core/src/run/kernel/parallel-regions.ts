/** Transitions of a parallel graph: maps events to region events, and memoizes transitions. */
import type { AnyEventObject } from "xstate";
import type { GraphDefinition } from "../../define/graph.ts";
import type { GraphParts } from "./graph-parts.ts";
import type { Snapshot, Step } from "./kernel.ts";
import { toDoneEventType } from "./region-table.ts";
import {
  computeStep,
  createRegions,
  driverIndex,
  type EventTargets,
  parseStates,
  RegionSnapshot,
  type RegionStates,
} from "./regions.ts";

/** Memoized snapshots of a graph; each snapshot holds its memoized transitions. */
interface SnapshotMemo {
  /** Snapshots after commits and resumes, by the regions that are not in their initial state. */
  readonly snapshots: Map<string, RegionSnapshot>;
  /** Number of memoized snapshots. */
  size: number;
}

/** Limit of regions in all memoized snapshots, about 2 MB. */
const maxMemoizedRegions = 100_000;

/** Limit of active nodes times regions for memoization. Above it the tasks take longer than the transitions. */
const maxMemoizedWidth = 50_000;

/** Creates the transition functions of a parallel graph. */
export function createParallelParts(graph: GraphDefinition): GraphParts {
  const nodes = [...graph.nodes.keys()];
  const regions = createRegions(nodes);
  const regionIndices = new Map(nodes.map((node, index) => [node, index + 1]));
  const doneIndices = new Map(nodes.map((node, index) => [toDoneEventType(node), index + 1]));
  let memory: SnapshotMemo = { snapshots: new Map(), size: 0 };
  const first: Step = [getSnapshot(regions.list.map(() => 0)), [], { guards: [], steps: [] }];

  function getSnapshot(states: RegionStates): RegionSnapshot {
    const changedStates = [...states.entries()].filter(([, state]) => state !== 0);
    if (changedStates.length * states.length > maxMemoizedWidth) return createSnapshot(states, { memoize: false });
    const memoKey = changedStates.map(([number, state]) => `${number}:${state}`).join();
    const known = memory.snapshots.get(memoKey) ?? createSnapshot(states, { memoize: true });
    memory.snapshots.set(memoKey, known);
    return known;
  }

  /**
   * Creates a snapshot. A full memo is dropped as a whole; runs at an old snapshot leave it with their next
   * transition.
   */
  function createSnapshot(states: RegionStates, { memoize }: { readonly memoize: boolean }): RegionSnapshot {
    if (!memoize) return new RegionSnapshot(regions, states, undefined);
    if (memory.size * states.length > maxMemoizedRegions) memory = { snapshots: new Map(), size: 0 };
    memory.size += 1;
    return new RegionSnapshot(regions, states, { memory, steps: new Map() });
  }

  function toEventTargets({ type, to, node }: AnyEventObject): EventTargets | undefined {
    const index = typeof node === "string" ? regionIndices.get(node) : undefined;
    const about = index === undefined ? [driverIndex] : [driverIndex, index];
    switch (type) {
      case "step.commit":
        if (!Array.isArray(to)) return undefined;
        return to.length === 0
          ? { indices: [], targetEvent: "finished", otherEvent: "finished", movesAll: true }
          : {
              indices: to.flatMap((each) => regionIndices.get(each) ?? []),
              targetEvent: "chosen",
              otherEvent: "passedOver",
              movesAll: true,
            };
      case "task.interrupted":
        return { indices: about, targetEvent: "interrupted", otherEvent: "otherInterrupted", movesAll: false };
      case "task.failed":
        return { indices: about, targetEvent: "failed", otherEvent: "otherFailed", movesAll: false };
      case "run.resumed":
        return { indices: [], targetEvent: "resumed", otherEvent: "resumed", movesAll: true };
      default: {
        const ended = doneIndices.get(type);
        return ended === undefined
          ? undefined
          : { indices: [ended], targetEvent: "done", otherEvent: undefined, movesAll: false };
      }
    }
  }

  return {
    enter: () => first,
    step: (snapshot, event) => {
      const from = snapshot as RegionSnapshot;
      const transitions = from.memoized?.memory === memory ? from.memoized.steps : undefined;
      const mark = transitions === undefined ? "" : toEventKey(event);
      const known = transitions?.get(mark);
      if (known !== undefined) return known;
      const targets = toEventTargets(event);
      if (targets === undefined) return undefined;
      const toSnapshot = (states: RegionStates): Snapshot =>
        targets.movesAll ? getSnapshot(states) : createSnapshot(states, { memoize: transitions !== undefined });
      const next = computeStep(regions, from.states, targets, toSnapshot);
      if (next !== undefined) transitions?.set(mark, next);
      return next;
    },
    restore: (value) => {
      const states = parseStates(regions, value);
      return states === undefined ? undefined : getSnapshot(states);
    },
  };
}

/** Builds the memo key of an event. Node names contain no dots or spaces. */
function toEventKey({ type, to, node }: AnyEventObject): string {
  if (Array.isArray(to)) return to.length === 0 ? `${type} nowhere` : to.join(" ");
  return typeof node === "string" ? `${type} ${node}` : type;
}
