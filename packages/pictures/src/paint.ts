/** Renders a layout as SVG text: boxes, lines and labels, each with a title and a class of its kind. */
import { END, START } from "@statewright/core";
import type { OutlineEdge, OutlineNode } from "@statewright/core/inspect";
import type { Point } from "./geometry.ts";
import type { Box, Layout, Line } from "./layout-types.ts";
import { cornerCut, getDisplayName, labelSize, nameSize, sheetOffset, titlePosition } from "./sizes.ts";
import { style } from "./style.ts";
import { escapeXml } from "./text.ts";

/** Highlight of a node or an edge. */
export type Mark = "good" | "bad" | "current";

/** Options of `paint`. */
export interface PaintOptions {
  readonly name: string;
  readonly turned: boolean;
  readonly mark: (part: OutlineNode | OutlineEdge) => Mark | undefined;
}

/** Renders a diagram. Regions come first, then lines, then nodes and labels, so that no shape covers a name. */
export function paint(layout: Layout, options: PaintOptions): string {
  const { boxes, lines } = layout;
  const [width, height] = options.turned ? [layout.along, layout.across] : [layout.across, layout.along];
  const size = `${round(width)} ${round(height)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="statewright" viewBox="0 0 ${size}" width="${round(width)}" height="${round(height)}" role="img" aria-label="${escapeXml(`Graph ${options.name}`)}">`,
    `<style>${style}</style>`,
    `<rect class="canvas" width="100%" height="100%" rx="10"/>`,
    ...boxes.filter(({ node }) => node.inside !== undefined).map((box) => renderRegion(box, options)),
    ...lines.map((line) => renderLine(line, options)),
    ...boxes.filter(({ node }) => node.inside === undefined).map((box) => renderNode(box, options)),
    ...lines.map((line) => renderLabel(line, options)),
    "</svg>",
    "",
  ].join("\n");
}

interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function toRect({ at, across, along }: Box, turned: boolean): Rect {
  return turned
    ? { x: at.along, y: at.across, width: along, height: across }
    : { x: at.across, y: at.along, width: across, height: along };
}

/** Renders the shape of a node; a node that runs several times gets a second sheet. */
function renderSheets(rect: Rect, many: boolean, corner: number): string {
  if (!many) return renderRectangle(rect, corner);
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

function renderGroup(
  part: OutlineNode | OutlineEdge,
  classes: readonly string[],
  options: PaintOptions,
  tooltip: string,
  content: string,
): string {
  const mark = options.mark(part);
  const names = mark === undefined ? classes : [...classes, mark];
  return `<g class="${names.join(" ")}" data-id="${escapeXml(part.id)}"><title>${escapeXml(tooltip)}</title>${content}</g>`;
}

function renderRegion(box: Box, options: PaintOptions): string {
  const { node, depth } = box;
  const rect = toRect(box, options.turned);
  const many = node.kind === "input";
  const top = rect.y + titlePosition.top + (many ? sheetOffset : 0);
  const name = `<text class="title" x="${round(rect.x + titlePosition.left)}" y="${round(top)}">${escapeXml(getDisplayName(node))}${node.deferred ? " (deferred)" : ""}</text>`;
  const classes = ["region", depth % 2 === 0 ? "odd" : "even", ...listDeferredClasses(node)];
  return renderGroup(node, classes, options, describeNode(node), renderSheets(rect, many, 14) + name);
}

function renderNode(box: Box, options: PaintOptions): string {
  const { node } = box;
  const rect = toRect(box, options.turned);
  const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
  const classes = [node.kind, ...listDeferredClasses(node)];
  if (node.kind === "start" || node.kind === "end") {
    const renderCircle = (name: string, radius: number): string =>
      `<circle class="${name}" cx="${round(x)}" cy="${round(y)}" r="${radius}"/>`;
    const drawn =
      node.kind === "start" ? renderCircle("shape", 9) : renderCircle("shape", 8.2) + renderCircle("dot", 4.5);
    return renderGroup(node, classes, options, describeNode(node), drawn);
  }
  const many = node.kind === "input";
  const shape = node.kind === "tools" ? renderOctagon(rect) : renderSheets(rect, many, node.kind === "state" ? 18 : 8);
  const middle = { x: x - (many ? sheetOffset / 2 : 0), y: y + (many ? sheetOffset / 2 : 0) };
  const line = node.deferred ? middle.y - 3 : middle.y + nameSize * 0.35;
  const name = renderText(middle.x, line, getDisplayName(node));
  const note = node.deferred ? renderText(middle.x, middle.y + 13, "deferred", "note") : "";
  return renderGroup(node, classes, options, describeNode(node), shape + name + note);
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
  const { edge, points, loop } = line;
  const drawn = loop ? renderLoop(points, options.turned) : renderPath(points, options.turned, edge.kind === "join");
  return renderGroup(edge, ["edge", edge.kind], options, describeEdge(edge), drawn);
}

/** Renders a line: straight between aligned points, otherwise a curve that starts and ends along the flow. */
function renderPath(points: readonly Point[], turned: boolean, joins: boolean): string {
  const [last, before] = [points[points.length - 1], points[points.length - 2]];
  if (last === undefined || before === undefined) return "";
  const direction = last.along === before.along ? 1 : Math.sign(last.along - before.along);
  const tip = joins ? 2 * tipWidth : tipLength;
  const end = { across: last.across, along: last.along - direction * tip };
  const path = [...points.slice(0, -1), end];
  const parts = path.map((point, index) => {
    const from = path[index - 1];
    if (from === undefined) return `M${formatPoint(point, turned)}`;
    if (Math.abs(from.across - point.across) < 0.05) return `L${formatPoint(point, turned)}`;
    const half = (from.along + point.along) / 2;
    const bends = [
      { across: from.across, along: half },
      { across: point.across, along: half },
    ];
    return `C${[...bends, point].map((each) => formatPoint(each, turned)).join(" ")}`;
  });
  const head = joins
    ? renderRing({ across: last.across, along: last.along - direction * tipWidth }, turned)
    : renderArrow(last, { across: 0, along: direction }, turned);
  return `<path class="line" d="${parts.join("")}"/>${head}`;
}

function renderLoop([leaves, far, returns]: readonly Point[], turned: boolean): string {
  if (leaves === undefined || far === undefined || returns === undefined) return "";
  const end = { across: returns.across + tipLength, along: returns.along };
  const reach = far.across + (far.across - leaves.across) / 3;
  const bends = [{ across: reach, along: leaves.along - 6 }, { across: reach, along: returns.along + 6 }, end];
  const path = `M${formatPoint(leaves, turned)}C${bends.map((each) => formatPoint(each, turned)).join(" ")}`;
  return `<path class="line" d="${path}"/>${renderArrow(returns, { across: -1, along: 0 }, turned)}`;
}

function renderArrow(at: Point, direction: Point, turned: boolean): string {
  const getTailPoint = (side: number): Point => ({
    across: at.across - direction.across * tipLength + side * direction.along * tipWidth,
    along: at.along - direction.along * tipLength + side * direction.across * tipWidth,
  });
  return `<path class="tip" d="M${formatPoint(at, turned)}L${formatPoint(getTailPoint(1), turned)}L${formatPoint(getTailPoint(-1), turned)}Z"/>`;
}

function renderRing(at: Point, turned: boolean): string {
  const [x, y] = turned ? [at.along, at.across] : [at.across, at.along];
  return `<circle class="tip" cx="${round(x)}" cy="${round(y)}" r="${tipWidth}"/>`;
}

function renderLabel({ edge, label, depth }: Line, options: PaintOptions): string {
  if (label === undefined) return "";
  const [x, y] = options.turned ? [label.centre.along, label.centre.across] : [label.centre.across, label.centre.along];
  const [width, height] = options.turned ? [label.along, label.across] : [label.across, label.along];
  const ground = depth === 0 ? 0 : 2 - (depth % 2);
  const back = `<rect class="ground${ground}" x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}" rx="4"/>`;
  const mark = options.mark(edge);
  return `<g class="label${mark === undefined ? "" : ` ${mark}`}" data-of="${escapeXml(edge.id)}">${back}${renderText(x, y + labelSize * 0.35, label.text)}</g>`;
}

function formatPoint({ across, along }: Point, turned: boolean): string {
  return turned ? `${round(along)} ${round(across)}` : `${round(across)} ${round(along)}`;
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
