/** Outline of a graph version as JSON text. A store may be a file from elsewhere: the text is checked on reading. */
import { isPlainObject } from "../../base/json.ts";
import type { Outline, OutlineEdge, OutlineNode } from "../../define/outline.ts";
import { checkList, checkOptional, findViolation, isName, type RowShape } from "./row-shapes.ts";

/** Maximum depth of graphs inside of graphs. */
const maxDepth = 64;

const nodeKinds: readonly OutlineNode["kind"][] = ["start", "end", "body", "input", "tools", "turn", "state"];
const edgeKinds: readonly OutlineEdge["kind"][] = ["to", "join", "route", "each", "otherwise", "goto", "event"];

const edgeShape: RowShape<OutlineEdge> = {
  id: isName,
  from: isName,
  to: isName,
  kind: (value) => edgeKinds.some((kind) => kind === value),
  label: checkOptional(isName),
};

function createNodeShape(depth: number): RowShape<OutlineNode> {
  return {
    id: isName,
    name: isName,
    kind: (value) => nodeKinds.some((kind) => kind === value),
    deferred: (value) => typeof value === "boolean",
    interrupts: checkOptional(checkList(isName)),
    inside: checkOptional((value) => isOutline(value, depth + 1)),
  };
}

/** Returns true for an outline whose edges connect its own nodes. */
function isOutline(value: unknown, depth = 0): value is Outline {
  if (depth > maxDepth || !isPlainObject(value) || Object.keys(value).length !== 2) return false;
  const { nodes, edges } = value;
  const nodeShape = createNodeShape(depth);
  const hasRows =
    checkList((node) => findViolation(nodeShape, node) === undefined)(nodes) &&
    checkList((edge) => findViolation(edgeShape, edge) === undefined)(edges);
  if (!hasRows) return false;
  const ids = new Set((nodes as readonly OutlineNode[]).map(({ id }) => id));
  return (edges as readonly OutlineEdge[]).every(({ from, to }) => ids.has(from) && ids.has(to));
}

/** Parses the text of a saved outline; undefined for a text that is not the outline of a graph. */
export function parseOutline(text: string): Outline | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isOutline(value) ? value : undefined;
}
