/** Draws a frame: corners of boxes, lines between boxes, and line segments that cross its border. */
import type { Outline, OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import {
  type Direction,
  type Extent,
  origin,
  type Point,
  pointExtent,
  type RenderedSize,
  toExtent,
  translate,
} from "./geometry.ts";
import type { Box, Layout, Line } from "./layout-types.ts";
import { spreadPorts } from "./ports.ts";
import type { Ranked } from "./ranks.ts";
import { type End, loopExtent, type Route } from "./routes.ts";

/** Context of a frame. */
export interface FrameContext {
  readonly direction: Direction;
  readonly depth: number;
  /** Node that contains the frame. */
  readonly parent: OutlineNode | undefined;
}

/** A layout with the segments of border-crossing edges, from source to target. */
export interface Frame extends Layout {
  readonly crossings: ReadonlyMap<string, readonly Point[]>;
}

/** Content of a frame: outline, sizes, and the positions computed by dagre. */
interface FrameParts {
  readonly outline: Outline;
  readonly routes: readonly Route[];
  readonly frames: ReadonlyMap<string, Frame>;
  readonly sizes: ReadonlyMap<string, Extent>;
  readonly labels: ReadonlyMap<string, (RenderedSize & { readonly text: string }) | undefined>;
  readonly ranked: Ranked;
  readonly context: FrameContext;
}

/** Draws the content of a frame at the positions computed by dagre. */
export function drawFrame(parts: FrameParts): Omit<Frame, keyof Extent> {
  const { outline, routes, frames, sizes, context } = parts;
  const corners = new Map([...sizes].map(([id, size]) => [id, getCorner(parts, id, size)]));
  const boxes = outline.nodes.flatMap((node): readonly Box[] => {
    const at = corners.get(node.id) ?? origin;
    const nodeBox = { node, at, depth: context.depth, ...(sizes.get(node.id) ?? pointExtent) };
    return [nodeBox, ...(frames.get(node.id)?.boxes ?? []).map((box) => ({ ...box, at: translate(box.at, at) }))];
  });
  const innerLines = outline.nodes.flatMap(({ id }) => {
    const at = corners.get(id) ?? origin;
    return (frames.get(id)?.lines ?? []).map((line) => translateLine(line, at));
  });
  const placement = { corners, ports: assignPorts(parts, corners) };
  const lines: Line[] = [];
  const crossings = new Map<string, readonly Point[]>();
  for (const route of routes) {
    if (route.edge === undefined) crossings.set(route.id, createPoints(route, parts, placement));
    else lines.push(createLine(route, route.edge, parts, placement));
  }
  return { boxes, lines: [...innerLines, ...lines], crossings };
}

/** Returns a line moved by an offset. */
export function translateLine(line: Line, offset: Point): Line {
  const label = line.label === undefined ? undefined : { ...line.label, centre: translate(line.label.centre, offset) };
  return { ...line, label, points: line.points.map((point) => translate(point, offset)) };
}

function getCorner({ ranked }: FrameParts, id: string, { across, along }: Extent): Point {
  return translate(ranked.nodes.get(id) ?? origin, { across: -across / 2, along: -along / 2 });
}

/** Positions at which lines touch boxes, by route and end. */
type Ports = ReadonlyMap<string, number>;
/** Upper left corners of boxes, by id. */
type Corners = ReadonlyMap<string, Point>;

/** Positions of boxes, and of lines at boxes. */
interface Placement {
  readonly corners: Corners;
  readonly ports: Ports;
}

function assignPorts(parts: FrameParts, corners: Corners): Ports {
  const requests = parts.routes.flatMap((route) => {
    if (route.source.box === route.target.box) return [];
    const passes = listPasses(route, parts);
    const forward = isForward(route, parts);
    return (["source", "target"] as const).map((is) => {
      const { box } = route[is];
      const next = is === "source" ? passes[0] : passes[passes.length - 1];
      return {
        key: `${route.id} ${is}`,
        box,
        side: forward === (is === "source") ? "after" : "before",
        wish: next?.across ?? parts.ranked.nodes.get(box)?.across ?? 0,
        fixed: findGateway(route, is, parts, corners),
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
      const sideRequests = requests.filter((wish) => wish.box === box && wish.side === side);
      for (const [key, at] of spreadPorts(sideRequests, centre - reach, centre + reach)) ports.set(key, at);
    }
  }
  return ports;
}

/** Returns the position at which the inner segment of a route leaves its region. */
function findGateway(
  route: Route,
  is: "source" | "target",
  { frames }: FrameParts,
  corners: Corners,
): number | undefined {
  const { box, key } = route[is];
  const points = key === undefined ? undefined : frames.get(box)?.crossings.get(key);
  const point = is === "source" ? points?.[points.length - 1] : points?.[0];
  return point === undefined ? undefined : translate(point, corners.get(box) ?? origin).across;
}

/** Returns the points at which a route crosses ranks, from source to target. */
function listPasses(route: Route, parts: FrameParts): readonly Point[] {
  const passes = parts.ranked.edges.get(route.id)?.passes ?? [];
  const [first, last] = [passes[0], passes[passes.length - 1]];
  const downward = (last?.along ?? 0) >= (first?.along ?? 0);
  return passes.length < 2 || downward === isForward(route, parts) ? passes : passes.toReversed();
}

function isForward({ source, target }: Route, { ranked }: FrameParts): boolean {
  return (ranked.nodes.get(target.box)?.along ?? 0) >= (ranked.nodes.get(source.box)?.along ?? 0);
}

/**
 * Returns the points of a line. The line crosses each rank straight, over the extent of its largest box, and touches
 * no box.
 */
function createPoints(route: Route, parts: FrameParts, { corners, ports }: Placement): readonly Point[] {
  const forward = isForward(route, parts);
  const { source, target } = route;
  const crossRank = (point: Point): readonly Point[] => {
    const half = getHalfRankExtent(parts, point.along);
    const [first, last] = [point.along - half, point.along + half];
    const both = [
      { across: point.across, along: first },
      { across: point.across, along: last },
    ];
    return forward ? both : both.toReversed();
  };
  const connectBox = (end: End, is: "source" | "target"): readonly Point[] => {
    const across = ports.get(`${route.id} ${is}`) ?? 0;
    const corner = corners.get(end.box) ?? origin;
    const after = forward === (is === "source");
    const border = { across, along: corner.along + (after ? (parts.sizes.get(end.box)?.along ?? 0) : 0) };
    const rankAt = parts.ranked.nodes.get(end.box)?.along ?? 0;
    const half = getHalfRankExtent(parts, rankAt);
    const clear = { across, along: after ? rankAt + half : rankAt - half };
    const points = is === "source" ? [border, clear] : [clear, border];
    const inner = end.key === undefined ? [] : (parts.frames.get(end.box)?.crossings.get(end.key) ?? []);
    const innerPoints = inner.map((point) => translate(point, corner));
    return is === "source" ? [...innerPoints, ...points] : [...points, ...innerPoints];
  };
  const points = [
    ...connectBox(source, "source"),
    ...listPasses(route, parts).flatMap(crossRank),
    ...connectBox(target, "target"),
  ];
  return points.filter((point, index) => index === 0 || !isSamePoint(point, points[index - 1] ?? point));
}

function isSamePoint(first: Point, second: Point): boolean {
  return Math.abs(first.across - second.across) < 0.05 && Math.abs(first.along - second.along) < 0.05;
}

/** Returns half of the largest extent in the rank at a position. */
function getHalfRankExtent({ ranked, sizes, labels, context }: FrameParts, along: number): number {
  let half = 0;
  for (const [id, size] of sizes)
    if (Math.abs((ranked.nodes.get(id)?.along ?? Number.NaN) - along) < 0.5) half = Math.max(half, size.along / 2);
  for (const [id, label] of labels) {
    if (label === undefined || Math.abs((ranked.edges.get(id)?.label.along ?? Number.NaN) - along) >= 0.5) continue;
    half = Math.max(half, toExtent(label, context.direction).along / 2);
  }
  return half;
}

function createLine(route: Route, edge: OutlineEdge, parts: FrameParts, placement: Placement): Line {
  const drawn = parts.labels.get(edge.id);
  const room = drawn === undefined ? undefined : toExtent(drawn, parts.context.direction);
  const at = parts.ranked.edges.get(edge.id)?.label ?? origin;
  const { depth } = parts.context;
  if (route.source.box !== route.target.box) {
    const label = drawn && room && { text: drawn.text, centre: at, ...room };
    return { edge, points: createPoints(route, parts, placement), loop: false, label, depth };
  }
  const size = parts.sizes.get(route.source.box) ?? pointExtent;
  const corner = placement.corners.get(route.source.box) ?? origin;
  const [side, middle] = [corner.across + size.across, corner.along + size.along / 2];
  const far = at.across - ((room?.across ?? 0) + loopExtent) / 2 + loopExtent - 8;
  const label = drawn &&
    room && { text: drawn.text, centre: { across: far + 4 + room.across / 2, along: middle }, ...room };
  const points = [
    { across: side, along: middle - 9 },
    { across: far, along: middle },
    { across: side, along: middle + 9 },
  ];
  return { edge, points, loop: true, label, depth };
}
