/** A graph as a Mermaid flowchart: every edge that can be taken and none that cannot. */
import { END, START } from "../define/edge.ts";
import type { EdgeRecord, GraphDefinition } from "../define/graph.ts";

/** Draw a graph as Mermaid text. Routes and commands are dashed, sends are thick, joins end in a circle. */
export function toMermaid(graph: GraphDefinition): string {
  const nodes = [...graph.nodes.values()].map((node) => `  ${node.name}${shape(node.kind, node.name)}`);
  const edges = [...graph.edges].flatMap(([source, edge]) => arrows(source, edge));
  return ["flowchart TD", "  start((start))", ...nodes, "  done((done))", ...edges, ""].join("\n");
}

function shape(kind: "body" | "task" | "tools", name: string): string {
  if (kind === "task") return `[[${name}]]`;
  return kind === "tools" ? `{{${name}}}` : `[${name}]`;
}

function arrows(source: string, edge: EdgeRecord): readonly string[] {
  const from = named(source);
  switch (edge.kind) {
    case "to":
      return edge.targets.map((target) => `  ${from} --> ${named(target)}`);
    case "join":
      return edge.targets.map((target) => `  ${from} --o ${named(target)}`);
    case "sends":
      return edge.targets.map((target) => `  ${from} ${target === edge.target ? "==>" : "-.->"} ${named(target)}`);
    case "route":
      return edge.targets.map((target) => `  ${from} -.-> ${named(target)}`);
    case "gotos":
      return [...new Set([...edge.targets, END])].map((target) => `  ${from} -.-> ${named(target)}`);
  }
}

function named(node: string): string {
  if (node === START) return "start";
  return node === END ? "done" : node;
}
