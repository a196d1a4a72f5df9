import process from "node:process";
import { createAgent } from "@statewright/agent";
import { engine } from "@statewright/core";
import { serve } from "@statewright/server";
import { langgraph } from "@statewright/server/langgraph";
import { sqliteStore } from "@statewright/sqlite";
import { say, scriptedModel } from "@statewright/testing";

const token = process.env["TOKEN"] ?? "a-token-of-at-least-16-characters";
const assistant = createAgent({ name: "assistant", model: scriptedModel(() => say("It rains in Oslo.")) });

const host = engine({ store: sqliteStore("agent.db"), graphs: [assistant] });
const server = serve({ engine: host, access: { token }, protocols: [langgraph()] });
await host.start();
const { url } = await server.listen({ port: Number(process.env["PORT"] ?? 4270) });

console.log(url);
