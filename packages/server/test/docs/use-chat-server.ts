import process from "node:process";
import { createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import { defineTool, engine } from "@statewright/core";
import { serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { sqliteStore } from "@statewright/sqlite";
import { call, say, scriptedModel } from "@statewright/testing";
import * as z from "zod";

const token = process.env["TOKEN"] ?? "a-token-of-at-least-16-characters";
const pay = defineTool({
  name: "pay",
  description: "Pays an amount to a person.",
  input: z.object({ to: z.string(), euros: z.number() }),
  safety: { access: "write", confirm: "always" },
  run: ({ to, euros }) => `Paid ${euros} to ${to}.`,
});
const assistant = createAgent({
  name: "assistant",
  model: scriptedModel([call(pay, { to: "Ada", euros: 5 }), say("Ada has her money.")]),
  tools: [pay],
  middleware: [confirmTools()],
});

const host = engine({ store: sqliteStore("agent.db"), graphs: [assistant] });
const server = serve({ engine: host, access: { token }, protocols: [uiStream()] });
await host.start();
const { url } = await server.listen({ port: Number(process.env["PORT"] ?? 4270) });

console.log(url);
