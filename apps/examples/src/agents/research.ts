/** Research: an agent sends several others out at once, and writes a report with the sources that they found. */
import { type AnyModel, agentTool, budget, createAgent, defineTool, type Store } from "statewright";
import * as z from "zod";

/** Where the researchers look. */
export interface Library {
  readonly search: (words: string, options: { readonly signal: AbortSignal }) => Promise<readonly Source[]>;
}

/** Something that was found. */
export interface Source {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

/** A report whose claims name their sources. */
const Report = z.object({
  title: z.string(),
  findings: z.array(z.object({ claim: z.string(), sources: z.array(z.string()).min(1) })),
  open: z.array(z.string()).describe("What could not be answered"),
});

/** The models: one that plans and writes, and a smaller one that reads. */
export interface ResearchModels {
  readonly lead: AnyModel;
  readonly reader: AnyModel;
}

/** A lead and its researchers. Together they may spend 60 turns, however they share them. */
export function research(
  { lead, reader }: ResearchModels,
  { library, store }: { readonly library: Library; readonly store: Store },
) {
  const searchLibrary = defineTool({
    name: "search_library",
    description: "Find sources by words.",
    input: z.object({ words: z.string() }),
    effect: "pure",
    safety: { access: "read", network: true },
    retry: { attempts: 3, on: ["unavailable", "timeout"] },
    timeoutMs: 10_000,
    run: async ({ words }, { signal }) => {
      const found = await library.search(words, { signal });
      if (found.length === 0) return "Nothing was found.";
      return found.map(({ id, title, text }) => `[${id}] ${title}\n${text}`).join("\n\n");
    },
  });
  const researcher = createAgent({
    name: "researcher",
    model: reader,
    instructions: "Answer one question from the library. Name the id of the source behind each sentence.",
    tools: [searchLibrary],
    maxTurns: 8,
  });
  return createAgent({
    name: "research",
    model: lead,
    instructions: "Cut the question into parts, have them researched at the same time, then write the report.",
    tools: [agentTool(researcher, { name: "look_into", description: "Have one question researched." })],
    maxToolConcurrency: 4,
    middleware: [budget({ turns: 60 })],
    output: Report,
    store,
  });
}
