/** A graph as a Mermaid flowchart: every edge that can be taken and none that cannot. */
import type { GraphDefinition } from "../define/graph.ts";
import { type Outline, type OutlineEdge, type OutlineNode, outlineOf } from "./outline.ts";

/**
 * Draw a graph as Mermaid text. Routes and commands are dashed, sends are thick, joins end in a circle; subgraphs and nested
 * states are regions, and the edges of a machine drawn by hand carry their events.
 */
export function toMermaid(graph: GraphDefinition): string {
  const outline = outlineOf(graph);
  const names = namesOf(outline);
  return ["flowchart TD", ...lines(outline, names, "  "), ""].join("\n");
}

function lines(outline: Outline, names: Names, indent: string): readonly string[] {
  const nodes = outline.nodes.flatMap((node) => drawNode(node, names, indent));
  return [...nodes, ...outline.edges.map((edge) => indent + drawEdge(edge, names))];
}

function drawNode(node: OutlineNode, names: Names, indent: string): readonly string[] {
  const name = named(names, node.id);
  if (node.inside === undefined) return [`${indent}${name}${shape(node)}`];
  return [
    `${indent}subgraph ${name} [${text(node.name)}]`,
    ...lines(node.inside, names, `${indent}  `),
    `${indent}end`,
  ];
}

function shape({ kind, name }: OutlineNode): string {
  switch (kind) {
    case "start":
      return "((start))";
    case "end":
      return "((done))";
    case "task":
      return `[[${text(name)}]]`;
    case "tools":
      return `{{${text(name)}}}`;
    case "state":
      return `(${text(name)})`;
    case "body":
      return `[${text(name)}]`;
  }
}

const arrows: Readonly<Record<OutlineEdge["kind"], string>> = {
  to: "-->",
  join: "--o",
  route: "-.->",
  each: "==>",
  otherwise: "-.->",
  goto: "-.->",
  event: "-->",
};

function drawEdge({ from, to, kind, label }: OutlineEdge, names: Names): string {
  const said = label === undefined ? "" : `|${text(label, true)}|`;
  return `${named(names, from)} ${arrows[kind]}${said} ${named(names, to)}`;
}

/** What each part is called in the text, by its id: `start` and `done`, or a name without what Mermaid reads as a sign. */
type Names = ReadonlyMap<string, string>;

const words: ReadonlySet<string> = new Set(
  "call class classdef click default direction end flowchart graph href interpolate linkstyle style subgraph".split(
    " ",
  ),
);

function namesOf(outline: Outline): Names {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const add = ({ nodes }: Outline, path: string): void => {
    for (const { id, kind, name, inside } of nodes) {
      const own = kind === "start" ? "start" : kind === "end" ? "done" : name.replaceAll(/[^A-Za-z0-9_]/g, "_");
      const base = `${path}${own}`;
      const free = /^[A-Za-z]/.test(base) && !words.has(base.toLowerCase()) ? base : `n_${base}`;
      let given = free;
      for (let count = 2; taken.has(given); count++) given = `${free}_${count}`;
      taken.add(given);
      names.set(id, given);
      if (inside !== undefined) add(inside, `${given}_`);
    }
  };
  add(outline, "");
  return names;
}

function named(names: Names, id: string): string {
  return names.get(id) ?? id;
}

/** A text in which Mermaid finds no sign of its own: plain words stay as they are, anything else is quoted and escaped. */
function text(words: string, always = false): string {
  if (!always && /^[A-Za-z][A-Za-z0-9_]*$/.test(words) && !isWord(words)) return words;
  return `"${words.replaceAll(/[^\p{L}\p{N} _.,:()[\]-]/gu, (sign) => `#${sign.codePointAt(0) ?? 32};`)}"`;
}

function isWord(name: string): boolean {
  return words.has(name.toLowerCase());
}
