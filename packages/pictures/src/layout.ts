/**
 * Where everything stands. Each graph is laid out by itself, from the innermost outwards, and stands in the one around it as
 * a box. An edge between states of different regions is laid out in parts: one in each region that it leaves or enters, and
 * one between them.
 */
import type { Outline } from "@statewright/core";
import { drawFrame, type Frame, movedLine, type Place } from "./frame.ts";
import { dot, type Extent, moved, noRoom, origin, type Point, upright } from "./geometry.ts";
import type { Layout } from "./layout-types.ts";
import { rank } from "./ranks.ts";
import { borders, type Crossing, crossingsOf, flowOf, gateTo, rankedRoute, routeOf, towardsBorders } from "./routes.ts";
import { drawnLabel, drawnSize, framePadding } from "./sizes.ts";

/** Lay out a picture whose flow goes down; with `turned` it goes right, and what is across is upright. */
export function layOut(outline: Outline, turned: boolean): Layout {
  return layOutFrame(outline, [], { turned, depth: 0, around: undefined });
}

function layOutFrame(outline: Outline, crossings: readonly Crossing[], place: Place): Frame {
  const routes = [
    ...outline.edges.map((edge) => routeOf(outline, edge)),
    ...crossings.map((each) => gateTo(outline, each)),
  ];
  const flow = flowOf(outline, routes);
  const passing = routes.flatMap((route) => crossingsOf(route, flow));
  const frames = new Map<string, Frame>();
  for (const node of outline.nodes) {
    if (node.inside === undefined) continue;
    const own = passing.filter(({ box }) => box === node.id).map(({ crossing }) => crossing);
    frames.set(node.id, layOutFrame(node.inside, own, { ...place, depth: place.depth + 1, around: node }));
  }
  const sizes = new Map<string, Extent>(
    outline.nodes.map((node) => [node.id, frames.get(node.id) ?? upright(drawnSize(node), place.turned)]),
  );
  for (const { gate } of routes) if (gate !== undefined) sizes.set(gate.id, dot);
  const labels = new Map(outline.edges.map((edge) => [edge.id, drawnLabel(edge, outline)]));
  const ranked = rank(new Map([...sizes, ...borders(routes)]), [
    ...routes.map((route) => rankedRoute(route, labels.get(route.id), place.turned)),
    ...towardsBorders(outline, routes, flow),
  ]);
  return framed(drawFrame({ outline, routes, frames, sizes, labels, ranked, place }), crossings, place);
}

/** Put a frame around what was drawn: its corner is the origin. */
function framed(drawn: Omit<Frame, keyof Extent>, crossings: readonly Crossing[], { turned, around }: Place): Frame {
  const { low, high } = reachOf(drawn);
  const padding = framePadding(around);
  const gates = crossings.map((crossing) => ({ ...crossing, at: gateOf(drawn.crossings.get(crossing.key), crossing) }));
  // Lines that come in over the border with the title pass beside it.
  const first = Math.min(
    ...gates.flatMap(({ side, at }) => (side === "before" && !turned ? [at.across - low.across] : [])),
  );
  const left = Math.max(padding.left, padding.leastWidth - first);
  const before = turned ? { across: padding.top, along: left } : { across: left, along: padding.top };
  const { right, bottom } = padding;
  const after = turned ? { across: bottom, along: right } : { across: right, along: bottom };
  const least = upright({ width: padding.leastWidth, height: 0 }, turned);
  const needed = (axis: keyof Extent): number => high[axis] - low[axis] + before[axis] + after[axis];
  const size = { across: Math.max(least.across, needed("across")), along: Math.max(least.along, needed("along")) };
  const start = (axis: keyof Extent): number => before[axis] - low[axis] + (size[axis] - needed(axis)) / 2;
  const by = { across: start("across"), along: start("along") };
  return {
    ...size,
    boxes: drawn.boxes.map((box) => ({ ...box, at: moved(box.at, by) })),
    lines: drawn.lines.map((line) => movedLine(line, by)),
    crossings: new Map(
      gates.map(({ key, is, side, at }) => {
        const points = (drawn.crossings.get(key) ?? []).map((point) => moved(point, by));
        const border = { across: at.across + by.across, along: side === "after" ? size.along : 0 };
        return [key, is === "source" ? [...points, border] : [border, ...points]];
      }),
    ),
  };
}

/** Where a line that crosses the border comes to it. */
function gateOf(points: readonly Point[] = [], { is }: Crossing): Point {
  return points[is === "source" ? points.length - 1 : 0] ?? origin;
}

/** How far everything reaches. */
function reachOf({ boxes, lines, crossings }: Omit<Frame, keyof Extent>): {
  readonly low: Point;
  readonly high: Point;
} {
  const low = { across: Number.POSITIVE_INFINITY, along: Number.POSITIVE_INFINITY };
  const high = { across: Number.NEGATIVE_INFINITY, along: Number.NEGATIVE_INFINITY };
  const cover = (at: Point, size: Extent = noRoom): void => {
    for (const axis of ["across", "along"] as const) {
      low[axis] = Math.min(low[axis], at[axis]);
      high[axis] = Math.max(high[axis], at[axis] + size[axis]);
    }
  };
  for (const box of boxes) cover(box.at, box);
  for (const { points, label } of lines) {
    for (const point of points) cover(point);
    if (label !== undefined) cover(moved(label.centre, { across: -label.across / 2, along: -label.along / 2 }), label);
  }
  for (const points of crossings.values()) for (const point of points) cover(point);
  return { low, high };
}
