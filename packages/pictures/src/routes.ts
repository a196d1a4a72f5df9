/**
 * What leads where in one frame: between which of its boxes each edge runs, and through which of its borders, when its other
 * end lies outside.
 */
import type { Outline, OutlineEdge } from "@statewright/core";
import { type Drawn, dot, type Extent, noRoom, upright } from "./geometry.ts";
import { type RankedEdge, rank } from "./ranks.ts";

/** Lines go before what they lead to and after what they come from, save those that lead back. */
type Side = "before" | "after";

/** The part of an edge inside a frame, when its other end lies outside. */
export interface Crossing {
  readonly key: string;
  /** The end that lies inside: which it is, and its id. */
  readonly is: "source" | "target";
  readonly id: string;
  /** The side of the frame on which the edge passes its border. */
  readonly side: Side;
}

/** An edge as this frame sees it: from box to box, where a box may be a region that holds its end, or a gate in the border. */
export interface Route {
  readonly id: string;
  readonly edge: OutlineEdge | undefined;
  readonly source: End;
  readonly target: End;
  readonly gate: { readonly id: string; readonly crossing: Crossing } | undefined;
}

/** An end of a route; `key` names the part inside the box, when the edge goes on there. */
export interface End {
  readonly box: string;
  readonly key?: string;
  readonly id: string;
}

function endIn(outline: Outline, id: string, key: string): End {
  const box = outline.nodes.find((node) => node.id === id || id.startsWith(`${node.id}.`))?.id ?? id;
  return box === id ? { box, id } : { box, id, key };
}

export function routeOf(outline: Outline, edge: OutlineEdge): Route {
  const source = endIn(outline, edge.from, `${edge.id} source`);
  const target = endIn(outline, edge.to, `${edge.id} target`);
  return { id: edge.id, edge, source, target, gate: undefined };
}

/** A crossing leads through a gate before or after all boxes of the frame. */
export function gateTo(outline: Outline, crossing: Crossing): Route {
  const { key, is, id } = crossing;
  const inner = endIn(outline, id, key);
  const gate: End = { box: `gate ${key}`, id: "" };
  const ends = is === "source" ? { source: inner, target: gate } : { source: gate, target: inner };
  return { id: key, edge: undefined, ...ends, gate: { id: gate.box, crossing } };
}

/** Whether an edge leads on, or back against the flow. Where a gate stands, its side says so. */
export type Flow = (route: Route) => "on" | "back";

/** Ranks do not depend on sizes: a first placing of points tells where edges lead, so that regions know on which side. */
export function flowOf(outline: Outline, routes: readonly Route[]): Flow {
  const isNeeded = routes.some(({ source, target, gate }) => (source.key ?? target.key ?? gate) !== undefined);
  const points = new Map(outline.nodes.map(({ id }) => [id, dot]));
  const edges = routes.filter(({ gate }) => gate === undefined);
  const ranked = isNeeded
    ? rank(
        points,
        edges.map((route) => rankedRoute(route, undefined, false)),
      )
    : undefined;
  return ({ source, target, gate }) => {
    if (gate !== undefined) return (gate.crossing.is === "source") === (gate.crossing.side === "after") ? "on" : "back";
    const [from, to] = [ranked?.nodes.get(source.box), ranked?.nodes.get(target.box)];
    return (to?.along ?? 0) >= (from?.along ?? 0) ? "on" : "back";
  };
}

export function crossingsOf(
  route: Route,
  flow: Flow,
): readonly { readonly box: string; readonly crossing: Crossing }[] {
  const { source, target } = route;
  const [leaves, enters]: readonly [Side, Side] = flow(route) === "on" ? ["after", "before"] : ["before", "after"];
  const of = ({ box, key, id }: End, is: Crossing["is"], side: Side) =>
    key === undefined ? [] : [{ box, crossing: { key, is, id, side } }];
  return [...of(source, "source", leaves), ...of(target, "target", enters)];
}

const beforeAll = "border before";
const afterAll = "border after";

export function borders(routes: readonly Route[]): ReadonlyMap<string, Extent> {
  return routes.some(({ gate }) => gate !== undefined)
    ? new Map([
        [beforeAll, dot],
        [afterAll, dot],
      ])
    : new Map();
}

/** Gates stand next to the borders, and the borders beyond all boxes. */
export function towardsBorders(outline: Outline, routes: readonly Route[], flow: Flow): readonly RankedEdge[] {
  const gates = routes.flatMap(({ gate }) => (gate === undefined ? [] : [gate]));
  if (gates.length === 0) return [];
  const led = (way: (route: Route) => string): ReadonlySet<string> =>
    new Set(routes.filter(({ edge, source, target }) => edge !== undefined && source.box !== target.box).map(way));
  const followed = led((route) => (flow(route) === "on" ? route.source : route.target).box);
  const preceded = led((route) => (flow(route) === "on" ? route.target : route.source).box);
  const edge = (from: string, to: string, weight: number): RankedEdge => ({
    id: `${from} to ${to}`,
    from,
    to,
    weight,
    label: { across: 0, along: 0 },
  });
  return [
    ...outline.nodes.flatMap(({ id }) => (preceded.has(id) ? [] : [edge(beforeAll, id, 0)])),
    ...outline.nodes.flatMap(({ id }) => (followed.has(id) ? [] : [edge(id, afterAll, 0)])),
    ...gates.map(({ id, crossing }) => (crossing.side === "before" ? edge(beforeAll, id, 4) : edge(id, afterAll, 4))),
  ];
}

/** How much room a line takes beside its node when it leads back to it. */
export const loopRoom = 26;

export function rankedRoute(
  { id, source, target, gate }: Route,
  label: (Drawn & { readonly text: string }) | undefined,
  turned: boolean,
): RankedEdge {
  const room = label === undefined ? noRoom : upright(label, turned);
  const loops = source.box === target.box;
  const backwards = gate !== undefined && (gate.crossing.is === "source") !== (gate.crossing.side === "after");
  const [from, to] = backwards ? [target.box, source.box] : [source.box, target.box];
  return { id, from, to, label: loops ? { across: room.across + loopRoom, along: Math.max(room.along, 1) } : room };
}
