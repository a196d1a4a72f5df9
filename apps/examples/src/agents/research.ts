/** Research: a lead agent runs several research agents in parallel, and writes a report with their sources. */
import { type AnyModel, agentTool, createAgent, defineTool, type Store } from "statewright";
import { budget } from "statewright/middleware";
import * as z from "zod";

/** Searchable library of the research agents. */
export interface Library {
  readonly search: (keywords: string, options: { readonly signal: AbortSignal }) => Promise<readonly Source[]>;
}

/** Search result. */
export interface Source {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** Report with the source ids of each claim. */
const Report = z.object({
  title: z.string(),
  findings: z.array(z.object({ claim: z.string(), sources: z.array(z.string()).min(1) })),
  open: z.array(z.string()).describe("Questions without an answer"),
});

/** Models: `lead` plans and writes, the smaller `reader` searches. */
export interface ResearchModels {
  readonly lead: AnyModel;
  readonly reader: AnyModel;
}

/** Creates a lead agent and its research agents, with a shared budget of 60 turns. */
export function createResearchAgent(
  { lead, reader }: ResearchModels,
  { library, store }: { readonly library: Library; readonly store: Store },
) {
  const searchLibrary = defineTool({
    name: "search_library",
    description: "Search for sources by keywords.",
    input: z.object({ words: z.string() }),
    effect: "pure",
    safety: { access: "read", network: true },
    retry: { attempts: 3, on: ["unavailable", "timeout"] },
    timeoutMs: 10_000,
    run: async ({ words }, { signal }) => {
      const sources = await library.search(words, { signal });
      if (sources.length === 0) return "No sources found.";
      return sources.map(({ id, title, text }) => `[${id}] ${title}\n${text}`).join("\n\n");
    },
  });
  const researcher = createAgent({
    name: "researcher",
    model: reader,
    instructions: "Answer one question from the library. Cite the source id after each sentence.",
    tools: [searchLibrary],
    maxTurns: 8,
  });
  return createAgent({
    name: "research",
    model: lead,
    instructions: "Split the question into parts, research the parts in parallel, then write the report.",
    tools: [agentTool(researcher, { name: "look_into", description: "Research one question." })],
    maxToolConcurrency: 4,
    middleware: [budget({ turns: 60 })],
    output: Report,
    store,
  });
}
