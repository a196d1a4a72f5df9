/** A graph with parallel work, as its parts move: what an event is to which region, and the steps that are remembered. */
import type { AnyEventObject } from "xstate";
import type { GraphDefinition } from "../../define/graph.ts";
import type { GraphParts } from "./graph-kernel.ts";
import type { Snapshot, Step } from "./kernel.ts";
import { doneOf } from "./region-table.ts";
import { driver, type Heard, regionsOf, Standing, type States, statesOf, stepOf } from "./regions.ts";

/** Where runs of a graph come back to; the steps between are remembered where they begin. */
interface Memory {
  /** What commits and resumes led to, by the regions that do not stand in their first state. */
  readonly places: Map<string, Standing>;
  /** Snapshots that are remembered. */
  size: number;
}

/** Regions of all snapshots that are remembered at a time, which is about 2 MB. */
const mostRegions = 100_000;

/** So many nodes of a superstep, times regions, are not worth it: their tasks take longer than the steps between. */
const widest = 50_000;

/** The parts of a parallel graph. */
export function parallelParts(graph: GraphDefinition): GraphParts {
  const nodes = [...graph.nodes.keys()];
  const regions = regionsOf(nodes);
  const numbers = new Map(nodes.map((node, index) => [node, index + 1]));
  const ends = new Map(nodes.map((node, index) => [doneOf(node), index + 1]));
  let memory: Memory = { places: new Map(), size: 0 };
  const first: Step = [placeAt(regions.list.map(() => 0)), [], { guards: [], steps: [] }];

  function placeAt(states: States): Standing {
    const apart = [...states.entries()].filter(([, state]) => state !== 0);
    if (apart.length * states.length > widest) return standIn(states, false);
    const mark = apart.map(([number, state]) => `${number}:${state}`).join();
    const known = memory.places.get(mark) ?? standIn(states, true);
    memory.places.set(mark, known);
    return known;
  }

  /** When too much is remembered, all of it is forgotten: a run that stands in the old snapshots leaves them with its next step. */
  function standIn(states: States, remembered: boolean): Standing {
    if (!remembered) return new Standing(regions, states, undefined);
    if (memory.size * states.length > mostRegions) memory = { places: new Map(), size: 0 };
    memory.size += 1;
    return new Standing(regions, states, { memory, steps: new Map() });
  }

  function hear({ type, to, node }: AnyEventObject): Heard | undefined {
    const number = typeof node === "string" ? numbers.get(node) : undefined;
    const about = number === undefined ? [driver] : [driver, number];
    switch (type) {
      case "step.commit":
        if (!Array.isArray(to)) return undefined;
        return to.length === 0
          ? { about: [], own: "finished", rest: "finished", all: true }
          : { about: to.flatMap((each) => numbers.get(each) ?? []), own: "chosen", rest: "passedOver", all: true };
      case "task.interrupted":
        return { about, own: "interrupted", rest: "otherInterrupted", all: false };
      case "task.failed":
        return { about, own: "failed", rest: "otherFailed", all: false };
      case "run.resumed":
        return { about: [], own: "resumed", rest: "resumed", all: true };
      default: {
        const ended = ends.get(type);
        return ended === undefined ? undefined : { about: [ended], own: "done", rest: undefined, all: false };
      }
    }
  }

  return {
    initial: () => first,
    step: (snapshot, event) => {
      const from = snapshot as Standing;
      const taken = from.taken?.memory === memory ? from.taken.steps : undefined;
      const mark = taken === undefined ? "" : markOf(event);
      const known = taken?.get(mark);
      if (known !== undefined) return known;
      const heard = hear(event);
      if (heard === undefined) return undefined;
      const stand = (states: States): Snapshot => (heard.all ? placeAt(states) : standIn(states, taken !== undefined));
      const next = stepOf(regions, from.states, heard, stand);
      if (next !== undefined) taken?.set(mark, next);
      return next;
    },
    standAt: (value) => {
      const states = statesOf(regions, value);
      return states === undefined ? undefined : placeAt(states);
    },
  };
}

/** Names of nodes have neither dots nor spaces. */
function markOf({ type, to, node }: AnyEventObject): string {
  if (Array.isArray(to)) return to.length === 0 ? `${type} nowhere` : to.join(" ");
  return typeof node === "string" ? `${type} ${node}` : type;
}
