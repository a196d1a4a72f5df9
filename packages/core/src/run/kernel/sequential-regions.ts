/** A graph in which one node runs at a time, as its parts move: the states inside a node, and the ways from node to node. */
import { deepFreeze } from "../../base/json.ts";
import { arrows } from "../../compile/compile-machine.ts";
import { START } from "../../define/edge.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { GraphParts } from "./graph-kernel.ts";
import type { Snapshot, Step, Trail } from "./kernel.ts";
import { doneOf, effectsOf, type Happening, partTable, taken } from "./region-table.ts";

/** Where the machine stands. */
interface Place extends Snapshot {
  /** The node and the number of its state; absent before the first node and after the last. */
  readonly inside: { readonly node: string; readonly state: number } | undefined;
  /** Steps that were taken from here: by the node that a commit leads to, and by the type of any other event. */
  readonly steps: Map<string, Step>;
}

/** The parts of a sequential graph. */
export function sequentialParts(graph: GraphDefinition): GraphParts {
  const table = partTable("node");
  const places = new Map<string, Place>();
  const start = place("start", undefined, "active");
  const done = place("done", undefined, "done");

  function placeIn(node: string, state: number): Place {
    const name = table.states[state] ?? "";
    const known = places.get(`${node}.${name}`);
    if (known !== undefined) return known;
    const made = place({ [node]: name }, { node, state }, "active", table.tags[state]);
    places.set(`${node}.${name}`, made);
    return made;
  }

  /** The superstep is durable. */
  function commit({ status, inside }: Place, to: readonly string[]): Step | undefined {
    if (status === "done") return undefined;
    const { target, guards } = taken(arrows(graph, inside?.node ?? START), { type: "step.commit", to });
    if (target === undefined) return undefined;
    const left = inside === undefined ? [] : effectsOf(inside.node, table.actors[inside.state]).stops;
    const trail: Trail = { guards: deepFreeze(guards), steps: [] };
    if (target === "done") return [done, left, trail];
    return [placeIn(target, 0), [...left, ...effectsOf(target, table.actors[0]).starts], trail];
  }

  function within({ inside }: Place, type: string): Step | undefined {
    if (inside === undefined) return undefined;
    const { node, state } = inside;
    const happening = type === doneOf(node) ? "done" : happenings.get(type);
    const to = happening === undefined ? undefined : table.move(state, happening).to;
    if (to === undefined) return undefined;
    const { stops } = effectsOf(node, table.actors[state]);
    return [placeIn(node, to), [...stops, ...effectsOf(node, table.actors[to]).starts], unguarded];
  }

  return {
    initial: () => [start, [], unguarded],
    step: (snapshot, event) => {
      const from = snapshot as Place;
      const to: unknown = event.type === "step.commit" ? event["to"] : undefined;
      if (Array.isArray(to) && to.length > 1) return commit(from, to);
      // Names of nodes have neither dots nor spaces.
      const mark = Array.isArray(to) ? String(to[0] ?? "step.commit nowhere") : event.type;
      const known = from.steps.get(mark);
      if (known !== undefined) return known;
      const next = Array.isArray(to) ? commit(from, to) : within(from, event.type);
      if (next !== undefined) from.steps.set(mark, next);
      return next;
    },
    standAt: (value) => {
      if (value === "start") return start;
      if (value === "done") return done;
      const [[node, name] = [], ...more] = typeof value === "object" && value !== null ? Object.entries(value) : [];
      const state = table.states.indexOf(String(name));
      return node === undefined || more.length > 0 || state < 0 || !graph.nodes.has(node)
        ? undefined
        : placeIn(node, state);
    },
  };
}

/** Events inside a node, besides its end: no guard asks which node they are about. */
const happenings: ReadonlyMap<string, Happening> = new Map([
  ["task.interrupted", "interrupted"],
  ["task.failed", "failed"],
  ["run.resumed", "resumed"],
]);

const unguarded: Trail = deepFreeze({ guards: [], steps: [] });

function place(
  value: Snapshot["value"],
  inside: Place["inside"],
  status: Snapshot["status"],
  tags: readonly string[] = [],
): Place {
  return {
    value: deepFreeze(value),
    context: noContext,
    status,
    tags: new Set(tags),
    output: undefined,
    error: undefined,
    inside,
    steps: new Map(),
  };
}

const noContext: Readonly<Record<string, never>> = Object.freeze({});
