/** Graphs of the fuzzed server: an agent that answers by rules, and a graph with an interrupt and a private channel. */
import { call, failWith, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  channel,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Graph,
  getMessageText,
  type ModelRequest,
  START,
} from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

function reply({ messages }: ModelRequest): ScriptedReply {
  const newest = messages.at(-1);
  const text = getMessageText(newest);
  if (newest?.role === "tool") return say(`Result: ${text}`);
  if (text.includes("transfer")) return call("transfer", { to: "ann" });
  if (text.includes("lookup")) return call("lookup", { query: text.slice(0, 50) });
  if (text.includes("fail")) return failWith(new Error("the provider failed"));
  return say(`You said: ${text.slice(0, 50)}`);
}

/** Creates the graphs `assistant` and `review`. */
export function createServedGraphs(): readonly Graph[] {
  const transfer = defineTool({
    name: "transfer",
    description: "Transfers money.",
    input: z.object({ to: z.string() }),
    safety: { confirm: "always" },
    run: ({ to }) => `Paid ${to}`,
  });
  const lookup = defineTool({
    name: "lookup",
    description: "Looks something up.",
    input: z.object({ query: z.string() }),
    effect: "pure",
    run: ({ query }) => `Found ${query}`,
  });
  const assistant = createAgent({
    name: "assistant",
    model: scriptedModel(reply),
    tools: [transfer, lookup],
    middleware: [confirmTools()],
    retry: { attempts: 1 },
  });
  const review = defineGraph({
    name: "review",
    state: defineState({
      draft: z.string().default(""),
      log: channel.list(z.string()),
      plan: z.string().default(""),
    }),
    private: ["plan"],
    interrupts: { approve: { payload: z.object({ draft: z.string() }), answer: z.boolean() } },
  })
    .nodes({
      write: ({ draft }) => ({ plan: "hidden", log: [`wrote ${draft}`] }),
      ask: async ({ draft }, { interrupt }) => {
        const isGood = await interrupt("approve", { payload: { draft } });
        return { log: [isGood ? "approved" : "rejected"] };
      },
    })
    .edges({ [START]: "write", write: "ask", ask: END });
  return [assistant, review];
}
