/** Renders a graph as a Mermaid flowchart with every possible edge. */
import { checkGraphOption } from "../define/check-graph-option.ts";
import type { GraphDefinition } from "../define/graph.ts";
import type { Outline, OutlineEdge, OutlineNode } from "../define/outline.ts";
import { describeGraph } from "./outline.ts";

/**
 * Returns a graph as Mermaid text. Routes and commands are dashed, sends are thick, joins end in a circle; subgraphs
 * and nested states are regions; edges of a user-written machine are labeled with their events.
 */
export function toMermaid(graph: GraphDefinition): string {
  checkGraphOption("toMermaid", graph);
  const outline = describeGraph(graph);
  const names = assignNames(outline);
  return ["flowchart TD", ...renderOutline(outline, names, "  "), ""].join("\n");
}

function renderOutline(outline: Outline, names: Names, indent: string): readonly string[] {
  const nodes = outline.nodes.flatMap((node) => renderNode(node, names, indent));
  return [...nodes, ...outline.edges.map((edge) => indent + renderEdge(edge, names))];
}

function renderNode(node: OutlineNode, names: Names, indent: string): readonly string[] {
  const name = getName(names, node.id);
  if (node.inside === undefined) return [`${indent}${name}${renderShape(node)}`];
  return [
    `${indent}subgraph ${name} [${quoteText(node.name)}]`,
    ...renderOutline(node.inside, names, `${indent}  `),
    `${indent}end`,
  ];
}

function renderShape({ kind, name }: OutlineNode): string {
  switch (kind) {
    case "start":
      return "((start))";
    case "end":
      return "((done))";
    case "input":
      return `[[${quoteText(name)}]]`;
    case "tools":
      return `{{${quoteText(name)}}}`;
    case "state":
      return `(${quoteText(name)})`;
    case "body":
    case "turn":
      return `[${quoteText(name)}]`;
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

function renderEdge({ from, to, kind, label }: OutlineEdge, names: Names): string {
  const labelText = label === undefined ? "" : `|${quoteText(label, { always: true })}|`;
  return `${getName(names, from)} ${arrows[kind]}${labelText} ${getName(names, to)}`;
}

/** Mermaid identifiers by node id: `start`, `done`, or the node name without Mermaid syntax characters. */
type Names = ReadonlyMap<string, string>;

const reservedWords: ReadonlySet<string> = new Set(
  "call class classdef click default direction end flowchart graph href interpolate linkstyle style subgraph".split(
    " ",
  ),
);

function assignNames(outline: Outline): Names {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const add = ({ nodes }: Outline, path: string): void => {
    for (const { id, kind, name, inside } of nodes) {
      const localName = kind === "start" ? "start" : kind === "end" ? "done" : name.replaceAll(/[^A-Za-z0-9_]/g, "_");
      const base = `${path}${localName}`;
      const candidate = /^[A-Za-z]/.test(base) && !reservedWords.has(base.toLowerCase()) ? base : `n_${base}`;
      let unique = candidate;
      for (let count = 2; taken.has(unique); count++) unique = `${candidate}_${count}`;
      taken.add(unique);
      names.set(id, unique);
      if (inside !== undefined) add(inside, `${unique}_`);
    }
  };
  add(outline, "");
  return names;
}

function getName(names: Names, id: string): string {
  return names.get(id) ?? id;
}

/** Returns text free of Mermaid syntax: plain words unchanged, other text quoted and escaped. */
function quoteText(value: string, { always = false }: { readonly always?: boolean | undefined } = {}): string {
  if (!always && /^[A-Za-z][A-Za-z0-9_]*$/.test(value) && !isReservedWord(value)) return value;
  return `"${value.replaceAll(/[^\p{L}\p{N} _.,:()[\]-]/gu, (character) => `#${character.codePointAt(0) ?? 32};`)}"`;
}

function isReservedWord(name: string): boolean {
  return reservedWords.has(name.toLowerCase());
}
