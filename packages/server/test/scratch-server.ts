import { createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import { defineTool, getMessageText, type ModelRequest } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { call, failWith, say, scriptedModel, think } from "@statewright/testing";
import * as z from "zod";
import { createLangGraphServer } from "./support/create-langgraph-server.ts";

function reply({ messages }: ModelRequest): any {
  const newest = messages.at(-1)!;
  const text = getMessageText(newest);
  if (newest.role === "tool") return say(`Result: ${text}`);
  if (text.startsWith("pay"))
    return text
      .split(" ")
      .slice(1)
      .map((n) => call("pay", { amount: Number(n) }));
  if (text.startsWith("look")) return [say("Let me look."), call("look", { word: text.slice(5) })];
  if (text.startsWith("words")) return say(Array.from({ length: Number(text.slice(6)) }, (_, i) => `w${i + 1} `));
  if (text.startsWith("fail")) return failWith(new Error("secret"));
  if (text.startsWith("think")) return [think("Hm hm."), say("I thought.")];
  return say(`You said: ${text}`);
}
const pay = defineTool({
  name: "pay",
  description: "Pays.",
  input: z.object({ amount: z.number() }),
  safety: { confirm: "always" },
  run: ({ amount }) => `paid ${amount}`,
});
const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({ word: z.string() }),
  effect: "pure",
  run: ({ word }) => `${word} found`,
});
const world = systemWorld();
const agent = createAgent({
  name: "assistant",
  model: scriptedModel(reply as any, { pace: { world, chunkMs: Number(process.argv[4] ?? 10) } }),
  tools: [pay, look],
  middleware: [confirmTools()],
});
const store = sqliteStore(process.argv[2]!);
const { server, host } = createLangGraphServer({ store, graphs: [agent as any] });
await host.start();
const l = await server.listen({ port: Number(process.argv[3] ?? 4271) });
console.log(l.url);
