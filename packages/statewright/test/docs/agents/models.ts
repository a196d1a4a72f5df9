import { anthropic } from "@ai-sdk/anthropic";
import { createOpenAI, openai } from "@ai-sdk/openai";
import { createAgent, getMessageText, type Message, type Model, sqliteStore } from "statewright";
import { listProviderCalls, listSources, modelRegistry } from "statewright/adapter";

const lastWords = (messages: readonly Message[]): string => messages.slice(-1).map(getMessageText).join();

// four ways to pass a model
const models = modelRegistry({
  anthropic,
  openai,
  house: createOpenAI({ baseURL: process.env["HOUSE_URL"] ?? "", apiKey: process.env["HOUSE_KEY"] ?? "" }).chat,
});

const agents = [
  createAgent({ name: "made", model: anthropic("claude-sonnet-4-5") }),
  createAgent({ name: "named", model: "anthropic/claude-sonnet-4-5" }),
  createAgent({ name: "looked-up", model: "house/gpt-4o-mini", models }),
  createAgent({ name: "several", model: ["house/locked", "anthropic/claude-sonnet-4-5"], models }),
];
for (const agent of agents) {
  const { state } = await agent.run({ input: "hello" }).result;
  console.log(`${agent.name}: ${lastWords(state.messages)}`);
}

// settings, and warnings about ignored ones
const careful = createAgent({
  name: "careful",
  model: models.model("house/gpt-4o-mini"),
  settings: { reasoning: "low", topK: 40, maxOutputTokens: 2_000, stopSequences: ["END"] },
});
const run = careful.run({ input: "hello" });
run.on((event) => {
  if (event.type === "model.warned") console.log(`${event.model}: ${event.warning}`);
});
await run.result;

// one thread, two providers
const store = sqliteStore(":memory:");
const question = { text: "What do you see?", files: [new URL("https://pictures.example/oslo.png")] };
await createAgent({ name: "eyes", model: models.model("openai/gpt-5"), store }).run({ thread: "t1", input: question })
  .result;
const other = createAgent({ name: "eyes", model: models.model("anthropic/claude-sonnet-4-5"), store });
const { state } = await other.run({ thread: "t1", input: "Say it in other words." }).result;
console.log(state.messages.map((message) => `${message.role}: ${getMessageText(message)}`).join("\n"));

// a tool that the provider runs
const reader = createAgent({
  name: "reader",
  model: openai("gpt-5"),
  providerTools: [openai.tools.webSearch({ searchContextSize: "low" })],
});
const read = await reader.run({ input: "What is the news in Oslo?" }).result;
for (const message of read.state.messages) {
  if (message.role !== "assistant") continue;
  for (const { name, args } of listProviderCalls(message)) console.log(`${name} was run: ${JSON.stringify(args)}`);
  console.log(`${getMessageText(message)} (${listSources(message).length} sources)`);
}

// write a model by hand
const echo: Model = {
  id: "echo/one",
  name: "The parrot",
  respond: async ({ messages }, { signal, delta }) => {
    signal.throwIfAborted();
    const text = `You said: ${lastWords(messages)}`;
    delta?.({ type: "text", text });
    return { content: [{ type: "text", text }], finish: "stop", usage: { inputTokens: 3, outputTokens: 3 } };
  },
};
const parrot = createAgent({ name: "parrot", model: echo });
console.log(lastWords((await parrot.run({ input: "hello" }).result).state.messages));
