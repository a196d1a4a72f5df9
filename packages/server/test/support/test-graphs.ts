/**
 * Graphs of the tests, deterministic: an agent that answers by rules and asks for approval of a tool, and a graph with
 * a question of its own and a private channel.
 */
import { createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  type Graph,
  getMessageText,
  type ModelRequest,
  START,
} from "@statewright/core";
import { call, failWith, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import * as z from "zod";

/** Sixty words, for streams. */
export const sixtyWords: readonly string[] = Array.from({ length: 60 }, (_, index) => `word${index + 1}`);

/** Transfers that the tool has made, by the text of their arguments. */
export interface TestGraphs {
  readonly graphs: readonly Graph[];
  /** Effects of the tool `transfer`, in order. */
  readonly transfers: { readonly to: string; readonly amount: number }[];
}

/**
 * Reply to the newest message: "transfer" calls the tool that needs approval, "lookup" the tool that needs none, "long"
 * says sixty words, "fail" fails; the result of a tool is repeated; another text is echoed.
 */
function reply({ messages }: ModelRequest): ScriptedReply {
  const newest = messages.at(-1);
  if (newest === undefined) return say("Nothing to say");
  const text = getMessageText(newest);
  if (newest.role === "tool") return say(`Result: ${text}`);
  if (text.includes("transfer")) return call("transfer", { to: "ann", amount: 5 });
  if (text.includes("lookup")) return call("lookup", { query: text });
  if (text.includes("long")) return say(sixtyWords.join(" "));
  if (text.includes("fail")) return failWith(new Error("the provider said secret things"));
  return say(`You said: ${text}`);
}

/** Creates the graphs `assistant` (an agent) and `review` (a graph that asks whether a draft is good). */
export function createTestGraphs(): TestGraphs {
  const transfers: { readonly to: string; readonly amount: number }[] = [];
  const transfer = defineTool({
    name: "transfer",
    description: "Transfers money.",
    input: z.object({ to: z.string(), amount: z.number() }),
    safety: { confirm: "always" },
    run: ({ to, amount }) => {
      transfers.push({ to, amount });
      return `Sent ${amount} to ${to}`;
    },
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
  });
  const Draft = defineState({ draft: z.string().default(""), log: channel.list(z.string()) });
  const review = defineGraph({
    name: "review",
    state: Draft,
    interrupts: { approve: { payload: z.object({ draft: z.string() }), answer: z.boolean() } },
  })
    .nodes({
      write: ({ draft }) => ({ log: [`wrote ${draft}`] }),
      ask: async ({ draft }, { interrupt }) => {
        const isGood = await interrupt("approve", { payload: { draft } });
        return { log: [isGood ? "approved" : "rejected"] };
      },
    })
    .edges({ [START]: "write", write: "ask", ask: END });
  return { graphs: [assistant, review], transfers };
}
