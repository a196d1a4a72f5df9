/** Parses flowcharts with Mermaid itself, without its sanitizer: there is no page to protect. */
import DOMPurify from "dompurify";
import mermaid from "mermaid";

export interface MermaidPicture {
  /** Labels by node id. */
  readonly nodes: ReadonlyMap<string, string>;
  readonly regions: readonly { readonly id: string; readonly title: string; readonly nodes: readonly string[] }[];
  readonly edges: readonly {
    readonly from: string;
    readonly to: string;
    readonly text: string;
    readonly look: string;
  }[];
}

/** Parser state of Mermaid that its types do not declare. */
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

/** Parses a flowchart; throws the error of Mermaid for invalid text. */
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

/** Decodes numeric character references, which Mermaid keeps in an internal form until it renders. */
function decoded(text: string): string {
  return text.replaceAll(/ﬂ°°(\d+)¶ß/g, (_sign, code: string) => String.fromCodePoint(Number(code)));
}
