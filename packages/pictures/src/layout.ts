/**
 * Computes the layout. Each graph is laid out separately, from the innermost outwards, and is a box in its parent
 * graph. An edge between different regions is laid out in segments: a segment in each region that the edge
 * leaves or enters, and a segment between the regions.
 */
import type { Outline } from "@statewright/core/inspect";
import { drawFrame, type Frame, type FrameContext, translateLine } from "./frame.ts";
import {
  type Direction,
  type Extent,
  emptyExtent,
  origin,
  type Point,
  pointExtent,
  toExtent,
  translate,
} from "./geometry.ts";
import type { Layout } from "./layout-types.ts";
import { rank } from "./ranks.ts";
import {
  type Crossing,
  createBorderEdges,
  createBorders,
  createFlow,
  createGateRoute,
  createRoute,
  listCrossings,
  toRankedEdge,
} from "./routes.ts";
import { getFramePadding, measureLabel, measureNode } from "./sizes.ts";

/** Returns the layout of an outline; the direction of flow decides which rendered sizes lie across the flow. */
export function createLayout(outline: Outline, direction: Direction): Layout {
  return createFrame(outline, [], { direction, depth: 0, parent: undefined });
}

function createFrame(outline: Outline, crossings: readonly Crossing[], context: FrameContext): Frame {
  const routes = [
    ...outline.edges.map((edge) => createRoute(outline, edge)),
    ...crossings.map((each) => createGateRoute(outline, each)),
  ];
  const flow = createFlow(outline, routes);
  const passing = routes.flatMap((route) => listCrossings(route, flow));
  const frames = new Map<string, Frame>();
  for (const node of outline.nodes) {
    if (node.inside === undefined) continue;
    const nodeCrossings = passing.filter(({ box }) => box === node.id).map(({ crossing }) => crossing);
    frames.set(
      node.id,
      createFrame(node.inside, nodeCrossings, { ...context, depth: context.depth + 1, parent: node }),
    );
  }
  const sizes = new Map<string, Extent>(
    outline.nodes.map((node) => [node.id, frames.get(node.id) ?? toExtent(measureNode(node), context.direction)]),
  );
  for (const { gate } of routes) if (gate !== undefined) sizes.set(gate.id, pointExtent);
  const labels = new Map(outline.edges.map((edge) => [edge.id, measureLabel(edge, outline)]));
  const ranked = rank(new Map([...sizes, ...createBorders(routes)]), [
    ...routes.map((route) => toRankedEdge(route, labels.get(route.id), context.direction)),
    ...createBorderEdges(outline, routes, flow),
  ]);
  return addBorder(drawFrame({ outline, routes, frames, sizes, labels, ranked, context }), crossings, context);
}

/** Adds a border to a drawing; the corner of the border becomes the origin. */
function addBorder(
  drawn: Omit<Frame, keyof Extent>,
  crossings: readonly Crossing[],
  { direction, parent }: FrameContext,
): Frame {
  const { low, high } = measureBounds(drawn);
  const padding = getFramePadding(parent);
  const gates = crossings.map((crossing) => ({
    ...crossing,
    at: getGatePoint(drawn.crossings.get(crossing.key), crossing),
  }));
  // Lines that enter through the border with the title pass beside the title.
  const first = Math.min(
    ...gates.flatMap(({ side, at }) => (side === "before" && direction === "down" ? [at.across - low.across] : [])),
  );
  const left = Math.max(padding.left, padding.minWidth - first);
  const before = toExtent({ width: left, height: padding.top }, direction);
  const after = toExtent({ width: padding.right, height: padding.bottom }, direction);
  const minimum = toExtent({ width: padding.minWidth, height: 0 }, direction);
  const measureNeeded = (axis: keyof Extent): number => high[axis] - low[axis] + before[axis] + after[axis];
  const size = {
    across: Math.max(minimum.across, measureNeeded("across")),
    along: Math.max(minimum.along, measureNeeded("along")),
  };
  const getOffset = (axis: keyof Extent): number => before[axis] - low[axis] + (size[axis] - measureNeeded(axis)) / 2;
  const offset = { across: getOffset("across"), along: getOffset("along") };
  return {
    ...size,
    boxes: drawn.boxes.map((box) => ({ ...box, at: translate(box.at, offset) })),
    lines: drawn.lines.map((line) => translateLine(line, offset)),
    crossings: new Map(
      gates.map(({ key, is, side, at }) => {
        const points = (drawn.crossings.get(key) ?? []).map((point) => translate(point, offset));
        const border = { across: at.across + offset.across, along: side === "after" ? size.along : 0 };
        return [key, is === "source" ? [...points, border] : [border, ...points]];
      }),
    ),
  };
}

/** Returns the point at which a crossing line meets the border. */
function getGatePoint(points: readonly Point[] = [], { is }: Crossing): Point {
  return points[is === "source" ? points.length - 1 : 0] ?? origin;
}

/** Returns the bounding box of a drawing. */
function measureBounds({ boxes, lines, crossings }: Omit<Frame, keyof Extent>): {
  readonly low: Point;
  readonly high: Point;
} {
  const low = { across: Number.POSITIVE_INFINITY, along: Number.POSITIVE_INFINITY };
  const high = { across: Number.NEGATIVE_INFINITY, along: Number.NEGATIVE_INFINITY };
  const extend = (at: Point, size: Extent = emptyExtent): void => {
    for (const axis of ["across", "along"] as const) {
      low[axis] = Math.min(low[axis], at[axis]);
      high[axis] = Math.max(high[axis], at[axis] + size[axis]);
    }
  };
  for (const box of boxes) extend(box.at, box);
  for (const { points, label } of lines) {
    for (const point of points) extend(point);
    if (label !== undefined)
      extend(translate(label.centre, { across: -label.across / 2, along: -label.along / 2 }), label);
  }
  for (const points of crossings.values()) for (const point of points) extend(point);
  return { low, high };
}
