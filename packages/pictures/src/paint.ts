/** Renders a layout as SVG text: boxes, lines and labels, each with a title and a class of its kind. */
import { END, START } from "@statewright/core";
import type { OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import {
  type Direction,
  type Point,
  type RenderedPoint,
  type RenderedSize,
  toRenderedPoint,
  toRenderedSize,
} from "./geometry.ts";
import type { Box, Layout, Line } from "./layout-types.ts";
import { cornerCut, getDisplayName, labelSize, nameSize, sheetOffset, titlePosition } from "./sizes.ts";
import { style } from "./style.ts";
import { escapeXml } from "./text.ts";

/** Highlight of a node or an edge. */
export type Mark = "good" | "bad" | "current";

/** Picture to paint: its name for screen readers, the direction of flow, and the highlight of each part. */
export interface PaintOptions {
  readonly name: string;
  readonly direction: Direction;
  /** False for a picture without a style sheet of its own. */
  readonly style: boolean;
  readonly mark: (part: OutlineNode | OutlineEdge) => Mark | undefined;
}

/** Renders a diagram. Regions come first, then lines, then nodes and labels, so that no shape covers a name. */
export function paint(layout: Layout, options: PaintOptions): string {
  const { boxes, lines } = layout;
  const { width, height } = getRoundedSize(layout, options.direction);
  const size = `${width} ${height}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="statewright" viewBox="0 0 ${size}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(`Graph ${options.name}`)}">`,
    ...(options.style ? [`<style>${style}</style>`] : []),
    `<rect class="canvas" width="100%" height="100%" rx="10"/>`,
    ...boxes.filter(({ node }) => node.inside !== undefined).map((box) => renderRegion(box, options)),
    ...lines.map((line) => renderLine(line, options)),
    ...boxes.filter(({ node }) => node.inside === undefined).map((box) => renderNode(box, options)),
    ...lines.map((line) => renderLabel(line, options)),
    "</svg>",
    "",
  ].join("\n");
}

/** Returns the size of a picture, in pixels with a single decimal. */
export function getRoundedSize(layout: Layout, direction: Direction): RenderedSize {
  const { width, height } = toRenderedSize(layout, direction);
  return { width: round(width), height: round(height) };
}

interface Rect extends RenderedPoint, RenderedSize {}

function toRect(box: Box, direction: Direction): Rect {
  return { ...toRenderedPoint(box.at, direction), ...toRenderedSize(box, direction) };
}

/** Returns the number of sheets of a node: two for a node that runs several times. */
function countSheets({ kind }: OutlineNode): 1 | 2 {
  return kind === "input" ? 2 : 1;
}

/** Renders the shape of a node as sheets with rounded corners. */
function renderSheets(rect: Rect, sheets: 1 | 2, corner: number): string {
  if (sheets === 1) return renderRectangle(rect, corner);
  const { x, y, width, height } = rect;
  const size = { width: width - sheetOffset, height: height - sheetOffset };
  return (
    renderRectangle({ x: x + sheetOffset, y, ...size }, corner) +
    renderRectangle({ x, y: y + sheetOffset, ...size }, corner)
  );
}

function renderRectangle({ x, y, width, height }: Rect, corner: number): string {
  return `<rect class="shape" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${corner}"/>`;
}

/** Content of an outline part in the picture. */
interface Group {
  readonly classes: readonly string[];
  readonly tooltip: string;
  readonly content: string;
}

function renderGroup(
  part: OutlineNode | OutlineEdge,
  { classes, tooltip, content }: Group,
  options: PaintOptions,
): string {
  const mark = options.mark(part);
  const names = mark === undefined ? classes : [...classes, mark];
  return `<g class="${names.join(" ")}" data-id="${escapeXml(part.id)}"><title>${escapeXml(tooltip)}</title>${content}</g>`;
}

function renderRegion(box: Box, options: PaintOptions): string {
  const { node, depth } = box;
  const rect = toRect(box, options.direction);
  const sheets = countSheets(node);
  const top = rect.y + titlePosition.top + (sheets === 2 ? sheetOffset : 0);
  const name = `<text class="title" x="${round(rect.x + titlePosition.left)}" y="${round(top)}">${escapeXml(getDisplayName(node))}${node.deferred ? " (deferred)" : ""}</text>`;
  const classes = ["region", depth % 2 === 0 ? "odd" : "even", ...listDeferredClasses(node)];
  const content = renderSheets(rect, sheets, 14) + name;
  return renderGroup(node, { classes, tooltip: describeNode(node), content }, options);
}

function renderNode(box: Box, options: PaintOptions): string {
  const { node } = box;
  const rect = toRect(box, options.direction);
  const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
  const classes = [node.kind, ...listDeferredClasses(node)];
  const tooltip = describeNode(node);
  if (node.kind === "start" || node.kind === "end") {
    const renderCircle = (name: string, radius: number): string =>
      `<circle class="${name}" cx="${round(x)}" cy="${round(y)}" r="${radius}"/>`;
    const content =
      node.kind === "start" ? renderCircle("shape", 9) : renderCircle("shape", 8.2) + renderCircle("dot", 4.5);
    return renderGroup(node, { classes, tooltip, content }, options);
  }
  const sheets = countSheets(node);
  const shape =
    node.kind === "tools" ? renderOctagon(rect) : renderSheets(rect, sheets, node.kind === "state" ? 18 : 8);
  const shift = sheets === 2 ? sheetOffset / 2 : 0;
  const middle = { x: x - shift, y: y + shift };
  const line = node.deferred ? middle.y - 3 : middle.y + nameSize * 0.35;
  const name = renderText(middle.x, line, getDisplayName(node));
  const note = node.deferred ? renderText(middle.x, middle.y + 13, "deferred", "note") : "";
  return renderGroup(node, { classes, tooltip, content: shape + name + note }, options);
}

function listDeferredClasses({ deferred }: OutlineNode): readonly string[] {
  return deferred ? ["deferred"] : [];
}

function renderText(x: number, y: number, text: string, name?: string): string {
  const classAttribute = name === undefined ? "" : ` class="${name}"`;
  return `<text${classAttribute} x="${round(x)}" y="${round(y)}">${escapeXml(text)}</text>`;
}

function renderOctagon({ x, y, width, height }: Rect): string {
  const [right, bottom] = [x + width, y + height];
  const corners = [
    [x + cornerCut, y],
    [right - cornerCut, y],
    [right, y + cornerCut],
    [right, bottom - cornerCut],
    [right - cornerCut, bottom],
    [x + cornerCut, bottom],
    [x, bottom - cornerCut],
    [x, y + cornerCut],
  ];
  return `<polygon class="shape" points="${corners.map(([left = 0, top = 0]) => `${round(left)},${round(top)}`).join(" ")}"/>`;
}

const tipLength = 9;
const tipWidth = 4;

function renderLine(line: Line, options: PaintOptions): string {
  const { edge, loop } = line;
  const content = loop ? renderLoop(line, options.direction) : renderPath(line, options.direction);
  return renderGroup(edge, { classes: ["edge", edge.kind], tooltip: describeEdge(edge), content }, options);
}

/** Renders a line: straight between aligned points, otherwise a curve that starts and ends along the flow. */
function renderPath({ edge, points }: Line, direction: Direction): string {
  const [last, before] = [points[points.length - 1], points[points.length - 2]];
  if (last === undefined || before === undefined) return "";
  const sign = last.along === before.along ? 1 : Math.sign(last.along - before.along);
  const isJoin = edge.kind === "join";
  const tip = isJoin ? 2 * tipWidth : tipLength;
  const end = { across: last.across, along: last.along - sign * tip };
  const path = [...points.slice(0, -1), end];
  const parts = path.map((point, index) => {
    const from = path[index - 1];
    if (from === undefined) return `M${formatPoint(point, direction)}`;
    if (Math.abs(from.across - point.across) < 0.05) return `L${formatPoint(point, direction)}`;
    const half = (from.along + point.along) / 2;
    const bends = [
      { across: from.across, along: half },
      { across: point.across, along: half },
    ];
    return `C${[...bends, point].map((each) => formatPoint(each, direction)).join(" ")}`;
  });
  const head = isJoin
    ? renderRing({ across: last.across, along: last.along - sign * tipWidth }, direction)
    : renderArrow(last, { across: 0, along: sign }, direction);
  return `<path class="line" d="${parts.join("")}"/>${head}`;
}

function renderLoop({ points }: Line, direction: Direction): string {
  const [leaves, far, returns] = points;
  if (leaves === undefined || far === undefined || returns === undefined) return "";
  const end = { across: returns.across + tipLength, along: returns.along };
  const reach = far.across + (far.across - leaves.across) / 3;
  const bends = [{ across: reach, along: leaves.along - 6 }, { across: reach, along: returns.along + 6 }, end];
  const path = `M${formatPoint(leaves, direction)}C${bends.map((each) => formatPoint(each, direction)).join(" ")}`;
  return `<path class="line" d="${path}"/>${renderArrow(returns, { across: -1, along: 0 }, direction)}`;
}

/** Renders an arrow head that points at `at` in a unit direction. */
function renderArrow(at: Point, unit: Point, direction: Direction): string {
  const getTailPoint = (side: number): Point => ({
    across: at.across - unit.across * tipLength + side * unit.along * tipWidth,
    along: at.along - unit.along * tipLength + side * unit.across * tipWidth,
  });
  return `<path class="tip" d="M${formatPoint(at, direction)}L${formatPoint(getTailPoint(1), direction)}L${formatPoint(getTailPoint(-1), direction)}Z"/>`;
}

function renderRing(at: Point, direction: Direction): string {
  const { x, y } = toRenderedPoint(at, direction);
  return `<circle class="tip" cx="${round(x)}" cy="${round(y)}" r="${tipWidth}"/>`;
}

function renderLabel({ edge, label, depth }: Line, options: PaintOptions): string {
  if (label === undefined) return "";
  const { x, y } = toRenderedPoint(label.centre, options.direction);
  const { width, height } = toRenderedSize(label, options.direction);
  const ground = depth === 0 ? 0 : 2 - (depth % 2);
  const back = `<rect class="ground${ground}" x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}" rx="4"/>`;
  const mark = options.mark(edge);
  return `<g class="label${mark === undefined ? "" : ` ${mark}`}" data-of="${escapeXml(edge.id)}">${back}${renderText(x, y + labelSize * 0.35, label.text)}</g>`;
}

function formatPoint(point: Point, direction: Direction): string {
  const { x, y } = toRenderedPoint(point, direction);
  return `${round(x)} ${round(y)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function describeNode({ name, kind, deferred, inside }: OutlineNode): string {
  if (kind === "start") return "start";
  if (kind === "end") return "end";
  const words = {
    body: inside === undefined ? "node" : "subgraph",
    input: inside === undefined ? "input node" : "subgraph, once for each input",
    tools: "tool node",
    turn: "agent turn",
    state: "state",
  };
  return `${name}: ${words[kind]}${deferred ? ", runs when no other node is runnable" : ""}`;
}

function describeEdge({ from, to, kind, label }: OutlineEdge): string {
  const formatId = (id: string): string => id.replace(START, "start").replace(END, "end");
  const words = {
    to: "",
    join: ", when all joined nodes have finished",
    route: ", when chosen",
    each: ", once for each input",
    otherwise: ", without inputs",
    goto: ", on a command of the node",
    event: `: ${label ?? ""}`,
  };
  return `${formatId(from)} → ${formatId(to)}${words[kind]}`;
}
