/** A layout as SVG text: boxes, lines and labels, each with a title and a class for what it is. */
import { END, type OutlineEdge, type OutlineNode, START } from "@statewright/core";
import type { Point } from "./geometry.ts";
import type { Box, Layout, Line } from "./layout-types.ts";
import { cut, drawnName, labelSize, nameSize, sheet, title } from "./sizes.ts";
import { style } from "./style.ts";
import { escapeXml } from "./text.ts";

/** What a part of a picture is painted as. */
export type Mark = "good" | "bad" | "current";

/** What painting takes besides the layout. */
export interface Painting {
  readonly name: string;
  readonly turned: boolean;
  readonly mark: (part: OutlineNode | OutlineEdge) => Mark | undefined;
}

/** Paint a picture. Regions come first, then lines, then nodes and labels, so that nothing covers a name. */
export function paint(layout: Layout, painting: Painting): string {
  const { boxes, lines } = layout;
  const [width, height] = painting.turned ? [layout.along, layout.across] : [layout.across, layout.along];
  const size = `${round(width)} ${round(height)}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="statewright" viewBox="0 0 ${size}" width="${round(width)}" height="${round(height)}" role="img" aria-label="${escapeXml(`Graph ${painting.name}`)}">`,
    `<style>${style}</style>`,
    `<rect class="canvas" width="100%" height="100%" rx="10"/>`,
    ...boxes.filter(({ node }) => node.inside !== undefined).map((box) => region(box, painting)),
    ...lines.map((line) => drawLine(line, painting)),
    ...boxes.filter(({ node }) => node.inside === undefined).map((box) => drawNode(box, painting)),
    ...lines.map((line) => drawLabel(line, painting)),
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

function rectOf({ at, across, along }: Box, turned: boolean): Rect {
  return turned
    ? { x: at.along, y: at.across, width: along, height: across }
    : { x: at.across, y: at.along, width: across, height: along };
}

/** A node that runs many times stands before a second sheet. */
function sheets(rect: Rect, many: boolean, corner: number): string {
  if (!many) return rectangle(rect, corner);
  const { x, y, width, height } = rect;
  const size = { width: width - sheet, height: height - sheet };
  return rectangle({ x: x + sheet, y, ...size }, corner) + rectangle({ x, y: y + sheet, ...size }, corner);
}

function rectangle({ x, y, width, height }: Rect, corner: number): string {
  return `<rect class="shape" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${corner}"/>`;
}

function group(
  part: OutlineNode | OutlineEdge,
  classes: readonly string[],
  painting: Painting,
  said: string,
  drawn: string,
): string {
  const mark = painting.mark(part);
  const names = mark === undefined ? classes : [...classes, mark];
  return `<g class="${names.join(" ")}" data-id="${escapeXml(part.id)}"><title>${escapeXml(said)}</title>${drawn}</g>`;
}

function region(box: Box, painting: Painting): string {
  const { node, depth } = box;
  const rect = rectOf(box, painting.turned);
  const many = node.kind === "task";
  const top = rect.y + title.top + (many ? sheet : 0);
  const name = `<text class="title" x="${round(rect.x + title.left)}" y="${round(top)}">${escapeXml(drawnName(node))}${node.deferred ? " (deferred)" : ""}</text>`;
  const classes = ["region", depth % 2 === 0 ? "odd" : "even", ...deferredClass(node)];
  return group(node, classes, painting, nodeInWords(node), sheets(rect, many, 14) + name);
}

function drawNode(box: Box, painting: Painting): string {
  const { node } = box;
  const rect = rectOf(box, painting.turned);
  const [x, y] = [rect.x + rect.width / 2, rect.y + rect.height / 2];
  const classes = [node.kind, ...deferredClass(node)];
  if (node.kind === "start" || node.kind === "end") {
    const circle = (name: string, radius: number): string =>
      `<circle class="${name}" cx="${round(x)}" cy="${round(y)}" r="${radius}"/>`;
    const drawn = node.kind === "start" ? circle("shape", 9) : circle("shape", 8.2) + circle("dot", 4.5);
    return group(node, classes, painting, nodeInWords(node), drawn);
  }
  const many = node.kind === "task";
  const shape = node.kind === "tools" ? cutCorners(rect) : sheets(rect, many, node.kind === "state" ? 18 : 8);
  const middle = { x: x - (many ? sheet / 2 : 0), y: y + (many ? sheet / 2 : 0) };
  const line = node.deferred ? middle.y - 3 : middle.y + nameSize * 0.35;
  const name = textAt(middle.x, line, drawnName(node));
  const note = node.deferred ? textAt(middle.x, middle.y + 13, "deferred", "note") : "";
  return group(node, classes, painting, nodeInWords(node), shape + name + note);
}

function deferredClass({ deferred }: OutlineNode): readonly string[] {
  return deferred ? ["deferred"] : [];
}

function textAt(x: number, y: number, text: string, name?: string): string {
  const named = name === undefined ? "" : ` class="${name}"`;
  return `<text${named} x="${round(x)}" y="${round(y)}">${escapeXml(text)}</text>`;
}

function cutCorners({ x, y, width, height }: Rect): string {
  const [right, bottom] = [x + width, y + height];
  const corners = [
    [x + cut, y],
    [right - cut, y],
    [right, y + cut],
    [right, bottom - cut],
    [right - cut, bottom],
    [x + cut, bottom],
    [x, bottom - cut],
    [x, y + cut],
  ];
  return `<polygon class="shape" points="${corners.map(([left = 0, top = 0]) => `${round(left)},${round(top)}`).join(" ")}"/>`;
}

const tipLength = 9;
const tipWidth = 4;

function drawLine(line: Line, painting: Painting): string {
  const { edge, points, loop } = line;
  const drawn = loop ? loopPath(points, painting.turned) : pathThrough(points, painting.turned, edge.kind === "join");
  return group(edge, ["edge", edge.kind], painting, edgeInWords(edge), drawn);
}

/** Straight where two points stand one behind the other; else a curve that leaves and arrives along the flow. */
function pathThrough(points: readonly Point[], turned: boolean, joins: boolean): string {
  const [last, before] = [points[points.length - 1], points[points.length - 2]];
  if (last === undefined || before === undefined) return "";
  const onward = last.along === before.along ? 1 : Math.sign(last.along - before.along);
  const tip = joins ? 2 * tipWidth : tipLength;
  const end = { across: last.across, along: last.along - onward * tip };
  const path = [...points.slice(0, -1), end];
  const parts = path.map((point, index) => {
    const from = path[index - 1];
    if (from === undefined) return `M${spot(point, turned)}`;
    if (Math.abs(from.across - point.across) < 0.05) return `L${spot(point, turned)}`;
    const half = (from.along + point.along) / 2;
    const bends = [
      { across: from.across, along: half },
      { across: point.across, along: half },
    ];
    return `C${[...bends, point].map((each) => spot(each, turned)).join(" ")}`;
  });
  const head = joins
    ? ring({ across: last.across, along: last.along - onward * tipWidth }, turned)
    : arrow(last, { across: 0, along: onward }, turned);
  return `<path class="line" d="${parts.join("")}"/>${head}`;
}

function loopPath([leaves, far, returns]: readonly Point[], turned: boolean): string {
  if (leaves === undefined || far === undefined || returns === undefined) return "";
  const end = { across: returns.across + tipLength, along: returns.along };
  const reach = far.across + (far.across - leaves.across) / 3;
  const bends = [{ across: reach, along: leaves.along - 6 }, { across: reach, along: returns.along + 6 }, end];
  const path = `M${spot(leaves, turned)}C${bends.map((each) => spot(each, turned)).join(" ")}`;
  return `<path class="line" d="${path}"/>${arrow(returns, { across: -1, along: 0 }, turned)}`;
}

function arrow(at: Point, towards: Point, turned: boolean): string {
  const back = (side: number): Point => ({
    across: at.across - towards.across * tipLength + side * towards.along * tipWidth,
    along: at.along - towards.along * tipLength + side * towards.across * tipWidth,
  });
  return `<path class="tip" d="M${spot(at, turned)}L${spot(back(1), turned)}L${spot(back(-1), turned)}Z"/>`;
}

function ring(at: Point, turned: boolean): string {
  const [x, y] = turned ? [at.along, at.across] : [at.across, at.along];
  return `<circle class="tip" cx="${round(x)}" cy="${round(y)}" r="${tipWidth}"/>`;
}

function drawLabel({ edge, label, depth }: Line, painting: Painting): string {
  if (label === undefined) return "";
  const [x, y] = painting.turned
    ? [label.centre.along, label.centre.across]
    : [label.centre.across, label.centre.along];
  const [width, height] = painting.turned ? [label.along, label.across] : [label.across, label.along];
  const ground = depth === 0 ? 0 : 2 - (depth % 2);
  const back = `<rect class="ground${ground}" x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}" rx="4"/>`;
  const mark = painting.mark(edge);
  return `<g class="label${mark === undefined ? "" : ` ${mark}`}" data-of="${escapeXml(edge.id)}">${back}${textAt(x, y + labelSize * 0.35, label.text)}</g>`;
}

function spot({ across, along }: Point, turned: boolean): string {
  return turned ? `${round(along)} ${round(across)}` : `${round(across)} ${round(along)}`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function nodeInWords({ name, kind, deferred, inside }: OutlineNode): string {
  if (kind === "start") return "start";
  if (kind === "end") return "end";
  const words = {
    body: inside === undefined ? "node" : "subgraph",
    task: inside === undefined ? "task node" : "subgraph, once for each input",
    tools: "tool node",
    state: "state",
  };
  return `${name}: ${words[kind]}${deferred ? ", runs when nothing else is runnable" : ""}`;
}

function edgeInWords({ from, to, kind, label }: OutlineEdge): string {
  const end = (id: string): string => id.replace(START, "start").replace(END, "end");
  const words = {
    to: "",
    join: ", when all joins to it have come",
    route: ", when it is chosen",
    each: ", once for each input",
    otherwise: ", when there is no input",
    goto: ", when the node says so",
    event: `: ${label ?? ""}`,
  };
  return `${end(from)} → ${end(to)}${words[kind]}`;
}
