import { anthropic } from "@ai-sdk/anthropic";
import { serve } from "@statewright/server";
import { createAgent, defineTool, engine, sqliteStore } from "statewright";
import * as z from "zod";

const { HOST = "127.0.0.1", PORT = "4270", DATA = ".", API_TOKEN } = process.env;
const { PUBLIC_URL = `http://127.0.0.1:${PORT}` } = process.env;

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string().describe("City name") }),
  effect: "pure",
  run: ({ city }) => `It rains in ${city}, 7 °C.`,
});

const store = sqliteStore(`${DATA}/threads.db`);
const assistant = createAgent({ name: "assistant", model: anthropic("claude-sonnet-4-5"), tools: [weather], store });
const host = engine({ store, graphs: [assistant] });
await host.start();

const server = serve({ engine: host, access: { token: API_TOKEN }, publicUrl: PUBLIC_URL });
const { url } = await server.listen({ host: HOST, port: Number(PORT), graceMs: 30_000 });
console.log(`listening on ${url}`);
