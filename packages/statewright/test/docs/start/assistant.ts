import { anthropic } from "@ai-sdk/anthropic";
import { createAgent, defineTool, sqliteStore } from "statewright";
import * as z from "zod";

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string().describe("City name") }),
  effect: "pure",
  run: ({ city }) => `It rains in ${city}, 7 °C.`,
});

const assistant = createAgent({
  name: "assistant",
  model: anthropic("claude-sonnet-4-5"),
  tools: [weather],
  store: sqliteStore("agent.db"),
});

const run = assistant.run({ thread: "t1", input: "Is it raining in Oslo?" });
for await (const text of run.text()) process.stdout.write(text);
const { status, state } = await run.result;
console.log(`\n${status}: ${state.messages.length} messages saved in agent.db`);
