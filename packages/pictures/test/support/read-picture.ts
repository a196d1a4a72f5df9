/** Parses a picture: XML structure and geometry. */
import { DOMParser, type Element, onErrorStopParsing } from "@xmldom/xmldom";

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A node or an edge: id, classes, title and label. */
export interface Part {
  readonly id: string;
  readonly classes: readonly string[];
  readonly title: string;
  readonly texts: readonly string[];
}

export interface Node extends Part {
  readonly rect: Rect;
  /** Box of the name of a region. */
  readonly heading: Rect;
}

export interface Edge extends Part {
  /** Points on the line, a few units apart. */
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface Label extends Rect {
  /** Id of the edge. */
  readonly id: string;
  readonly text: string;
}

export interface Picture {
  readonly box: Rect;
  readonly root: Element;
  readonly names: ReadonlySet<string>;
  readonly nodes: readonly Node[];
  readonly regions: readonly Node[];
  readonly edges: readonly Edge[];
  readonly labels: readonly Label[];
}

/** Parses a picture; throws for text that is not well-formed XML. */
export function readPicture(svg: string): Picture {
  const root = new DOMParser({ onError: onErrorStopParsing }).parseFromString(svg, "image/svg+xml").documentElement;
  if (root === null) throw new Error("the picture is empty");
  const [x = 0, y = 0, width = 0, height = 0] = (root.getAttribute("viewBox") ?? "").split(" ").map(Number);
  const all = listElements(root);
  const groups = all.filter((element) => element.hasAttribute("data-id"));
  const isEdge = (element: Element): boolean => listClasses(element).includes("edge");
  const nodes = groups
    .filter((element) => !isEdge(element))
    .map((element) => ({ ...getPart(element), rect: getBoundingBox(element), heading: getHeading(element) }));
  return {
    box: { x, y, width, height },
    root,
    names: new Set(all.map(({ tagName }) => tagName)),
    nodes: nodes.filter(({ classes }) => !classes.includes("region")),
    regions: nodes.filter(({ classes }) => classes.includes("region")),
    edges: groups.filter(isEdge).map((element) => ({ ...getPart(element), points: listPoints(element) })),
    labels: all
      .filter((element) => listClasses(element).includes("label"))
      .map((element) => {
        const back = listElements(element).find(({ tagName }) => tagName === "rect");
        const id = element.getAttribute("data-of") ?? "";
        return { ...getRect(back), id, text: getPart(element).texts[0] ?? "" };
      }),
  };
}

/** Returns whether two rectangles share more than a border. */
export function isOverlapping(one: Rect, other: Rect): boolean {
  const areApart = (low: number, size: number, otherLow: number, otherSize: number): boolean =>
    low + size <= otherLow + 0.2 || otherLow + otherSize <= low + 0.2;
  return !areApart(one.x, one.width, other.x, other.width) && !areApart(one.y, one.height, other.y, other.height);
}

/** Returns whether a rectangle is inside another one. */
export function isInside(inner: Rect, outer: Rect): boolean {
  return (
    inner.x >= outer.x - 0.2 &&
    inner.y >= outer.y - 0.2 &&
    inner.x + inner.width <= outer.x + outer.width + 0.2 &&
    inner.y + inner.height <= outer.y + outer.height + 0.2
  );
}

function listElements(element: Element): readonly Element[] {
  return [...element.getElementsByTagName("*")];
}

function listClasses(element: Element): readonly string[] {
  return (element.getAttribute("class") ?? "").split(" ");
}

function getPart(element: Element): Part {
  const below = listElements(element);
  const readTexts = (name: string): readonly string[] =>
    below.flatMap(({ tagName, textContent }) => (tagName === name ? [textContent ?? ""] : []));
  return {
    id: element.getAttribute("data-id") ?? "",
    classes: listClasses(element),
    title: readTexts("title")[0] ?? "",
    texts: readTexts("text"),
  };
}

function listNumbers(element: Element | undefined, ...names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name) => [name, Number(element?.getAttribute(name))]));
}

function getRect(element: Element | undefined): Rect {
  const { x = 0, y = 0, width = 0, height = 0 } = listNumbers(element, "x", "y", "width", "height");
  return { x, y, width, height };
}

/** The label of a region, in a monospaced font of 13, starts at the position of its text. */
function getHeading(element: Element): Rect {
  const text = listElements(element).find(({ tagName }) => tagName === "text");
  const { x = 0, y = 0 } = listNumbers(text, "x", "y");
  return { x, y: y - 11, width: (text?.textContent ?? "").length * 8, height: 14 };
}

/** Returns the bounding box of the shapes of a node. */
function getBoundingBox(element: Element): Rect {
  const rects = listElements(element).flatMap((shape): readonly Rect[] => {
    if (shape.tagName === "rect") return [getRect(shape)];
    if (shape.tagName === "circle") {
      const { cx = 0, cy = 0, r = 0 } = listNumbers(shape, "cx", "cy", "r");
      return [{ x: cx - r, y: cy - r, width: 2 * r, height: 2 * r }];
    }
    if (shape.tagName !== "polygon") return [];
    const corners = (shape.getAttribute("points") ?? "").split(" ").map((corner) => corner.split(",").map(Number));
    return corners.map(([x = 0, y = 0]) => ({ x, y, width: 0, height: 0 }));
  });
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  return {
    x,
    y,
    width: Math.max(...rects.map((rect) => rect.x + rect.width)) - x,
    height: Math.max(...rects.map((rect) => rect.y + rect.height)) - y,
  };
}

/** Samples the line of an edge. Its path has absolute moves, lines and cubic curves. */
function listPoints(element: Element): Edge["points"] {
  const path =
    listElements(element)
      .find((each) => listClasses(each).includes("line"))
      ?.getAttribute("d") ?? "";
  const points: { x: number; y: number }[] = [];
  for (const [, command, given = ""] of path.matchAll(/([MLC])([^MLC]*)/g)) {
    const numbers = given.trim().split(/\s+/).map(Number);
    const [x = 0, y = 0] = numbers.slice(-2);
    const from = points[points.length - 1] ?? { x, y };
    const [x1 = from.x, y1 = from.y, x2 = x, y2 = y] = command === "C" ? numbers : [];
    for (let step = 1; step <= 24; step++) {
      const t = step / 24;
      const mix = (a: number, b: number, c: number, d: number): number =>
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
      points.push({ x: mix(from.x, x1, x2, x), y: mix(from.y, y1, y2, y) });
    }
  }
  return points;
}
