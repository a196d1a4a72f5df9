/** Transitions of a sequential graph: the states inside a node, and the transitions between nodes. */
import { deepFreeze } from "../../base/json.ts";
import { listTransitions } from "../../compile/compile-machine.ts";
import { START } from "../../define/edge.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import type { GraphParts } from "./graph-parts.ts";
import type { Snapshot, Step, Trail } from "./kernel.ts";
import {
  createActorEffects,
  getRegionTable,
  type RegionEvent,
  selectTransition,
  toDoneEventType,
} from "./region-table.ts";

/** Snapshot of a sequential graph. */
interface NodeSnapshot extends Snapshot {
  /** Current node and its state index; undefined before the first node and after the last. */
  readonly position: { readonly node: string; readonly state: number } | undefined;
  /** Memoized transitions, by the target node of a commit, or by the type of any other event. */
  readonly steps: Map<string, Step>;
}

/** Creates the transition functions of a sequential graph. */
export function createSequentialParts(graph: GraphDefinition): GraphParts {
  const table = getRegionTable("node");
  const snapshots = new Map<string, NodeSnapshot>();
  const start = createSnapshot("start", undefined, "active");
  const done = createSnapshot("done", undefined, "done");

  function getNodeSnapshot(node: string, state: number): NodeSnapshot {
    const name = table.states[state] ?? "";
    const known = snapshots.get(`${node}.${name}`);
    if (known !== undefined) return known;
    const created = createSnapshot({ [node]: name }, { node, state }, "active", table.tags[state]);
    snapshots.set(`${node}.${name}`, created);
    return created;
  }

  /** Moves the machine after a durable superstep. */
  function commit({ status, position }: NodeSnapshot, to: readonly string[]): Step | undefined {
    if (status === "done") return undefined;
    const { target, guards } = selectTransition(listTransitions(graph, position?.node ?? START), {
      type: "step.commit",
      to,
    });
    if (target === undefined) return undefined;
    const stopEffects =
      position === undefined ? [] : createActorEffects(position.node, table.actors[position.state]).stops;
    const trail: Trail = { guards: deepFreeze(guards), steps: [] };
    if (target === "done") return [done, stopEffects, trail];
    return [getNodeSnapshot(target, 0), [...stopEffects, ...createActorEffects(target, table.actors[0]).starts], trail];
  }

  function moveInsideNode({ position }: NodeSnapshot, type: string): Step | undefined {
    if (position === undefined) return undefined;
    const { node, state } = position;
    const regionEvent = type === toDoneEventType(node) ? "done" : regionEvents.get(type);
    const to = regionEvent === undefined ? undefined : table.move(state, regionEvent).to;
    if (to === undefined) return undefined;
    const { stops } = createActorEffects(node, table.actors[state]);
    return [getNodeSnapshot(node, to), [...stops, ...createActorEffects(node, table.actors[to]).starts], emptyTrail];
  }

  return {
    enter: () => [start, [], emptyTrail],
    step: (snapshot, event) => {
      const from = snapshot as NodeSnapshot;
      const to: unknown = event.type === "step.commit" ? event["to"] : undefined;
      if (Array.isArray(to) && to.length > 1) return commit(from, to);
      // Node names contain no dots or spaces.
      const memoKey = Array.isArray(to) ? String(to[0] ?? "step.commit nowhere") : event.type;
      const known = from.steps.get(memoKey);
      if (known !== undefined) return known;
      const next = Array.isArray(to) ? commit(from, to) : moveInsideNode(from, event.type);
      if (next !== undefined) from.steps.set(memoKey, next);
      return next;
    },
    restore: (value) => {
      if (value === "start") return start;
      if (value === "done") return done;
      const [[node, name] = [], ...more] = typeof value === "object" && value !== null ? Object.entries(value) : [];
      const state = table.states.indexOf(String(name));
      return node === undefined || more.length > 0 || state < 0 || !graph.nodes.has(node)
        ? undefined
        : getNodeSnapshot(node, state);
    },
  };
}

/** Region events inside a node, except the end of its actor: their guards do not depend on the node. */
const regionEvents: ReadonlyMap<string, RegionEvent> = new Map([
  ["task.interrupted", "interrupted"],
  ["task.failed", "failed"],
  ["run.resumed", "resumed"],
]);

const emptyTrail: Trail = deepFreeze({ guards: [], steps: [] });

function createSnapshot(
  value: Snapshot["value"],
  inside: NodeSnapshot["position"],
  status: Snapshot["status"],
  tags: readonly string[] = [],
): NodeSnapshot {
  return {
    value: deepFreeze(value),
    context: noContext,
    status,
    tags: new Set(tags),
    output: undefined,
    error: undefined,
    position: inside,
    steps: new Map(),
  };
}

const noContext: Readonly<Record<string, never>> = Object.freeze({});
