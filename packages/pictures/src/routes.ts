/**
 * Routes of edges in a frame: the boxes at both ends of each edge, and the border crossed by an edge with an
 * outside end.
 */
import type { Outline, OutlineEdge } from "@statewright/core/inspect";
import { type Direction, type Extent, emptyExtent, pointExtent, type RenderedSize, toExtent } from "./geometry.ts";
import { type RankedEdge, rank } from "./ranks.ts";

/** Side of a box along the flow: lines enter before the box and leave after the box, except backward lines. */
type Side = "before" | "after";

/** Segment of an edge inside a frame, for an edge with an outside end. */
export interface Crossing {
  readonly key: string;
  /** Inner end of the edge: source or target, and its node id. */
  readonly is: "source" | "target";
  readonly id: string;
  /** Side of the frame at which the edge crosses the border. */
  readonly side: Side;
}

/**
 * An edge within a frame, between two boxes; a box may be a region that contains the end, or a gate in the border.
 */
export interface Route {
  readonly id: string;
  readonly edge: OutlineEdge | undefined;
  readonly source: End;
  readonly target: End;
  readonly gate: { readonly id: string; readonly crossing: Crossing } | undefined;
}

/** An end of a route; `key` identifies the segment inside the box, if the edge continues there. */
export interface End {
  readonly box: string;
  readonly key?: string;
  readonly id: string;
}

function findEnd(outline: Outline, id: string, key: string): End {
  const box = outline.nodes.find((node) => node.id === id || id.startsWith(`${node.id}.`))?.id ?? id;
  return box === id ? { box, id } : { box, id, key };
}

export function createRoute(outline: Outline, edge: OutlineEdge): Route {
  const source = findEnd(outline, edge.from, `${edge.id} source`);
  const target = findEnd(outline, edge.to, `${edge.id} target`);
  return { id: edge.id, edge, source, target, gate: undefined };
}

/** Returns the route of a crossing, through a gate before or after all boxes of the frame. */
export function createGateRoute(outline: Outline, crossing: Crossing): Route {
  const { key, is, id } = crossing;
  const inner = findEnd(outline, id, key);
  const gate: End = { box: `gate ${key}`, id: "" };
  const ends = is === "source" ? { source: inner, target: gate } : { source: gate, target: inner };
  return { id: key, edge: undefined, ...ends, gate: { id: gate.box, crossing } };
}

/** Returns the direction of an edge: with the flow, or back. For a gate, derived from its side. */
export type Flow = (route: Route) => "on" | "back";

/**
 * Returns the flow directions of routes. Ranks do not depend on sizes: a preliminary layout of points gives the
 * directions, which determine the crossed sides of regions.
 */
export function createFlow(outline: Outline, routes: readonly Route[]): Flow {
  const isNeeded = routes.some(({ source, target, gate }) => (source.key ?? target.key ?? gate) !== undefined);
  const points = new Map(outline.nodes.map(({ id }) => [id, pointExtent]));
  const edges = routes.filter(({ gate }) => gate === undefined);
  const ranked = isNeeded
    ? rank(
        points,
        edges.map((route) => toRankedEdge(route, undefined, "down")),
      )
    : undefined;
  return ({ source, target, gate }) => {
    if (gate !== undefined) return (gate.crossing.is === "source") === (gate.crossing.side === "after") ? "on" : "back";
    const [from, to] = [ranked?.nodes.get(source.box), ranked?.nodes.get(target.box)];
    return (to?.along ?? 0) >= (from?.along ?? 0) ? "on" : "back";
  };
}

export function listCrossings(
  route: Route,
  flow: Flow,
): readonly { readonly box: string; readonly crossing: Crossing }[] {
  const { source, target } = route;
  const [leaves, enters]: readonly [Side, Side] = flow(route) === "on" ? ["after", "before"] : ["before", "after"];
  const createCrossing = ({ box, key, id }: End, is: Crossing["is"], side: Side) =>
    key === undefined ? [] : [{ box, crossing: { key, is, id, side } }];
  return [...createCrossing(source, "source", leaves), ...createCrossing(target, "target", enters)];
}

const startBorder = "border before";
const endBorder = "border after";

export function createBorders(routes: readonly Route[]): ReadonlyMap<string, Extent> {
  return routes.some(({ gate }) => gate !== undefined)
    ? new Map([
        [startBorder, pointExtent],
        [endBorder, pointExtent],
      ])
    : new Map();
}

/** Returns edges that put gates next to the borders, and the borders beyond all boxes. */
export function createBorderEdges(outline: Outline, routes: readonly Route[], flow: Flow): readonly RankedEdge[] {
  const gates = routes.flatMap(({ gate }) => (gate === undefined ? [] : [gate]));
  if (gates.length === 0) return [];
  const collectBoxes = (getBox: (route: Route) => string): ReadonlySet<string> =>
    new Set(routes.filter(({ edge, source, target }) => edge !== undefined && source.box !== target.box).map(getBox));
  const withSuccessor = collectBoxes((route) => (flow(route) === "on" ? route.source : route.target).box);
  const withPredecessor = collectBoxes((route) => (flow(route) === "on" ? route.target : route.source).box);
  const toBorderEdge = (from: string, to: string, weight: number): RankedEdge => ({
    id: `${from} to ${to}`,
    from,
    to,
    weight,
    label: { across: 0, along: 0 },
  });
  return [
    ...outline.nodes.flatMap(({ id }) => (withPredecessor.has(id) ? [] : [toBorderEdge(startBorder, id, 0)])),
    ...outline.nodes.flatMap(({ id }) => (withSuccessor.has(id) ? [] : [toBorderEdge(id, endBorder, 0)])),
    ...gates.map(({ id, crossing }) =>
      crossing.side === "before" ? toBorderEdge(startBorder, id, 4) : toBorderEdge(id, endBorder, 4),
    ),
  ];
}

/** Extent of a loop line beside its node. */
export const loopExtent = 26;

export function toRankedEdge(
  { id, source, target, gate }: Route,
  label: (RenderedSize & { readonly text: string }) | undefined,
  direction: Direction,
): RankedEdge {
  const room = label === undefined ? emptyExtent : toExtent(label, direction);
  const loops = source.box === target.box;
  const backwards = gate !== undefined && (gate.crossing.is === "source") !== (gate.crossing.side === "after");
  const [from, to] = backwards ? [target.box, source.box] : [source.box, target.box];
  return { id, from, to, label: loops ? { across: room.across + loopExtent, along: Math.max(room.along, 1) } : room };
}
