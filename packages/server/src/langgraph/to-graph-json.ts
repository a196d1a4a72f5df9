/** Graph of an assistant as nodes and edges. */
import type { GraphDetails } from "../service/caller-service.ts";
import type { WireObject } from "./to-wire-message.ts";

/** Edge of a flowchart: `a --> b`, or `a -.-> b` for a conditional edge. */
const arrow = /^\s*([\w-]+)\s*(-->|-\.->)(?:\|[^|]*\|)?\s*([\w-]+)/;

const marks: Readonly<Record<string, string>> = { start: "__start__", done: "__end__" };

/** Returns the nodes of a graph, and its edges as its picture shows them. */
export function toGraphJson({ nodes, mermaid }: GraphDetails): WireObject {
  const ids = new Set(["__start__", ...nodes, "__end__"]);
  const toId = (name: string): string => (ids.has(name) ? name : (marks[name] ?? name));
  const edges = mermaid.split("\n").flatMap((line) => {
    const [, from = "", kind = "", to = ""] = arrow.exec(line) ?? [];
    const [source, target] = [toId(from), toId(to)];
    return ids.has(source) && ids.has(target) ? [{ source, target, conditional: kind === "-.->" }] : [];
  });
  return { nodes: [...ids].map((id) => ({ id, type: "runnable", data: { id, name: id } })), edges };
}
