/** Mermaid's own reading of a flowchart. There is no page to keep clean, so that its sanitizer is left out. */
import DOMPurify from "dompurify";
import mermaid from "mermaid";

export interface MermaidPicture {
  /** Texts by name. */
  readonly nodes: ReadonlyMap<string, string>;
  readonly regions: readonly { readonly id: string; readonly title: string; readonly nodes: readonly string[] }[];
  readonly edges: readonly {
    readonly from: string;
    readonly to: string;
    readonly text: string;
    readonly look: string;
  }[];
}

/** What Mermaid's reader keeps of a flowchart; it is not in its types. */
interface FlowDatabase {
  getVertices(): ReadonlyMap<string, { readonly text?: string }>;
  getSubGraphs(): readonly { readonly id: string; readonly title: string; readonly nodes: readonly string[] }[];
  getEdges(): readonly {
    readonly start: string;
    readonly end: string;
    readonly text: string;
    readonly type: string;
    readonly stroke: string;
  }[];
}

Object.assign(DOMPurify, { addHook: () => undefined, sanitize: (text: string) => text });

/** Read a flowchart; throws what Mermaid throws for a text that is none. */
export async function readMermaid(text: string): Promise<MermaidPicture> {
  await mermaid.parse(text);
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
  const flow = db as object as FlowDatabase;
  const regions = flow.getSubGraphs().map(({ id, title, nodes }) => ({ id, title: decoded(title), nodes }));
  const names = new Set(regions.map(({ id }) => id));
  return {
    nodes: new Map(
      [...flow.getVertices()].flatMap(([id, { text = "" }]) => (names.has(id) ? [] : [[id, decoded(text)] as const])),
    ),
    regions,
    edges: flow.getEdges().map(({ start, end, text, type, stroke }) => ({
      from: start,
      to: end,
      text: decoded(text),
      look: `${stroke} ${type}`,
    })),
  };
}

/** Mermaid keeps a numbered sign in a form of its own until it draws it. */
function decoded(text: string): string {
  return text.replaceAll(/ﬂ°°(\d+)¶ß/g, (_sign, code: string) => String.fromCodePoint(Number(code)));
}
