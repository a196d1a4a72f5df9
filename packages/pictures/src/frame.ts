/** A frame drawn: corners of boxes, lines between them, and the parts of lines that cross its border. */
import type { Outline, OutlineEdge, OutlineNode } from "@statewright/core";
import { type Drawn, dot, type Extent, moved, origin, type Point, upright } from "./geometry.ts";
import type { Box, Layout, Line } from "./layout-types.ts";
import { spreadPorts } from "./ports.ts";
import type { Ranked } from "./ranks.ts";
import { type End, loopRoom, type Route } from "./routes.ts";

/** What a frame must know of where it stands. */
export interface Place {
  readonly turned: boolean;
  readonly depth: number;
  /** The node whose inside this is. */
  readonly around: OutlineNode | undefined;
}

/** A layout with the parts of the edges that cross its border, from source to target. */
export interface Frame extends Layout {
  readonly crossings: ReadonlyMap<string, readonly Point[]>;
}

/** What a frame is drawn from: what stands in it, how large it is, and where dagre puts it. */
interface Parts {
  readonly outline: Outline;
  readonly routes: readonly Route[];
  readonly frames: ReadonlyMap<string, Frame>;
  readonly sizes: ReadonlyMap<string, Extent>;
  readonly labels: ReadonlyMap<string, (Drawn & { readonly text: string }) | undefined>;
  readonly ranked: Ranked;
  readonly place: Place;
}

/** Draw what stands in a frame, at the places that dagre gave. */
export function drawFrame(parts: Parts): Omit<Frame, keyof Extent> {
  const { outline, routes, frames, sizes, place } = parts;
  const corners = new Map([...sizes].map(([id, size]) => [id, cornerOf(parts, id, size)]));
  const boxes = outline.nodes.flatMap((node): readonly Box[] => {
    const at = corners.get(node.id) ?? origin;
    const own = { node, at, depth: place.depth, ...(sizes.get(node.id) ?? dot) };
    return [own, ...(frames.get(node.id)?.boxes ?? []).map((box) => ({ ...box, at: moved(box.at, at) }))];
  });
  const innerLines = outline.nodes.flatMap(({ id }) => {
    const at = corners.get(id) ?? origin;
    return (frames.get(id)?.lines ?? []).map((line) => movedLine(line, at));
  });
  const ports = portsOf(parts, corners);
  const lines: Line[] = [];
  const crossings = new Map<string, readonly Point[]>();
  for (const route of routes) {
    if (route.edge === undefined) crossings.set(route.id, pointsOf(route, parts, corners, ports));
    else lines.push(lineOf(route, route.edge, parts, corners, ports));
  }
  return { boxes, lines: [...innerLines, ...lines], crossings };
}

/** A line elsewhere. */
export function movedLine(line: Line, by: Point): Line {
  const label = line.label === undefined ? undefined : { ...line.label, centre: moved(line.label.centre, by) };
  return { ...line, label, points: line.points.map((point) => moved(point, by)) };
}

function cornerOf({ ranked }: Parts, id: string, { across, along }: Extent): Point {
  return moved(ranked.nodes.get(id) ?? origin, { across: -across / 2, along: -along / 2 });
}

/** Where lines touch boxes, by route and end. */
type Ports = ReadonlyMap<string, number>;
type Corners = ReadonlyMap<string, Point>;

function portsOf(parts: Parts, corners: Corners): Ports {
  const wishes = parts.routes.flatMap((route) => {
    if (route.source.box === route.target.box) return [];
    const passes = passesOf(route, parts);
    const onward = leadsOn(route, parts);
    return (["source", "target"] as const).map((is) => {
      const { box } = route[is];
      const next = is === "source" ? passes[0] : passes[passes.length - 1];
      return {
        key: `${route.id} ${is}`,
        box,
        side: onward === (is === "source") ? "after" : "before",
        wish: next?.across ?? parts.ranked.nodes.get(box)?.across ?? 0,
        fixed: gateway(route, is, parts, corners),
      };
    });
  });
  const ports = new Map<string, number>();
  for (const [box, size] of parts.sizes) {
    const node = parts.outline.nodes.find(({ id }) => id === box);
    const isPoint = node === undefined || node.kind === "start" || node.kind === "end";
    const reach = isPoint ? 0 : size.across / 2 - Math.min(14, size.across / 4);
    const centre = parts.ranked.nodes.get(box)?.across ?? 0;
    for (const side of ["before", "after"]) {
      const here = wishes.filter((wish) => wish.box === box && wish.side === side);
      for (const [key, at] of spreadPorts(here, centre - reach, centre + reach)) ports.set(key, at);
    }
  }
  return ports;
}

/** Where the part of a route inside a region comes out of it. */
function gateway(route: Route, is: "source" | "target", { frames }: Parts, corners: Corners): number | undefined {
  const { box, key } = route[is];
  const points = key === undefined ? undefined : frames.get(box)?.crossings.get(key);
  const point = is === "source" ? points?.[points.length - 1] : points?.[0];
  return point === undefined ? undefined : moved(point, corners.get(box) ?? origin).across;
}

/** The points at which a route passes ranks, from its source to its target. */
function passesOf(route: Route, parts: Parts): readonly Point[] {
  const passes = parts.ranked.edges.get(route.id)?.passes ?? [];
  const [first, last] = [passes[0], passes[passes.length - 1]];
  const downward = (last?.along ?? 0) >= (first?.along ?? 0);
  return passes.length < 2 || downward === leadsOn(route, parts) ? passes : passes.toReversed();
}

function leadsOn({ source, target }: Route, { ranked }: Parts): boolean {
  return (ranked.nodes.get(target.box)?.along ?? 0) >= (ranked.nodes.get(source.box)?.along ?? 0);
}

/** A line goes straight through each rank, as far as the largest box in it reaches, so that it touches none. */
function pointsOf(route: Route, parts: Parts, corners: Corners, ports: Ports): readonly Point[] {
  const onward = leadsOn(route, parts);
  const { source, target } = route;
  const through = (point: Point): readonly Point[] => {
    const half = halfOfRank(parts, point.along);
    const [first, last] = [point.along - half, point.along + half];
    const both = [
      { across: point.across, along: first },
      { across: point.across, along: last },
    ];
    return onward ? both : both.toReversed();
  };
  const edgeOfBox = (end: End, is: "source" | "target"): readonly Point[] => {
    const across = ports.get(`${route.id} ${is}`) ?? 0;
    const corner = corners.get(end.box) ?? origin;
    const after = onward === (is === "source");
    const border = { across, along: corner.along + (after ? (parts.sizes.get(end.box)?.along ?? 0) : 0) };
    const rankAt = parts.ranked.nodes.get(end.box)?.along ?? 0;
    const half = halfOfRank(parts, rankAt);
    const clear = { across, along: after ? rankAt + half : rankAt - half };
    const points = is === "source" ? [border, clear] : [clear, border];
    const inner = end.key === undefined ? [] : (parts.frames.get(end.box)?.crossings.get(end.key) ?? []);
    const within = inner.map((point) => moved(point, corner));
    return is === "source" ? [...within, ...points] : [...points, ...within];
  };
  const points = [
    ...edgeOfBox(source, "source"),
    ...passesOf(route, parts).flatMap(through),
    ...edgeOfBox(target, "target"),
  ];
  return points.filter((point, index) => index === 0 || !same(point, points[index - 1] ?? point));
}

function same(one: Point, other: Point): boolean {
  return Math.abs(one.across - other.across) < 0.05 && Math.abs(one.along - other.along) < 0.05;
}

/** Half of the largest extent in the rank around a place. */
function halfOfRank({ ranked, sizes, labels, place }: Parts, along: number): number {
  let half = 0;
  for (const [id, size] of sizes)
    if (Math.abs((ranked.nodes.get(id)?.along ?? Number.NaN) - along) < 0.5) half = Math.max(half, size.along / 2);
  for (const [id, label] of labels) {
    if (label === undefined || Math.abs((ranked.edges.get(id)?.label.along ?? Number.NaN) - along) >= 0.5) continue;
    half = Math.max(half, upright(label, place.turned).along / 2);
  }
  return half;
}

function lineOf(route: Route, edge: OutlineEdge, parts: Parts, corners: Corners, ports: Ports): Line {
  const drawn = parts.labels.get(edge.id);
  const room = drawn === undefined ? undefined : upright(drawn, parts.place.turned);
  const at = parts.ranked.edges.get(edge.id)?.label ?? origin;
  const { depth } = parts.place;
  if (route.source.box !== route.target.box) {
    const label = drawn && room && { text: drawn.text, centre: at, ...room };
    return { edge, points: pointsOf(route, parts, corners, ports), loop: false, label, depth };
  }
  const size = parts.sizes.get(route.source.box) ?? dot;
  const corner = corners.get(route.source.box) ?? origin;
  const [side, middle] = [corner.across + size.across, corner.along + size.along / 2];
  const far = at.across - ((room?.across ?? 0) + loopRoom) / 2 + loopRoom - 8;
  const label = drawn &&
    room && { text: drawn.text, centre: { across: far + 4 + room.across / 2, along: middle }, ...room };
  const points = [
    { across: side, along: middle - 9 },
    { across: far, along: middle },
    { across: side, along: middle + 9 },
  ];
  return { edge, points, loop: true, label, depth };
}
