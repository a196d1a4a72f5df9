import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, hasToolCall, memoryStore, turnCountIs } from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

const model = scriptedModel(({ messages }) =>
  messages.length === 1 ? call(weather, { city: "Oslo" }) : say("It rains in Oslo."),
);

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `${city}: rain`,
});

const assistant = createAgent({
  name: "assistant",
  model, // openai("gpt-5"), anthropic("claude-sonnet-4-5"), or "openai/gpt-5"
  instructions: "You tell the weather.",
  tools: [weather],
  settings: { temperature: 0 },
  stopWhen: turnCountIs(10),
});

const { text, state } = await assistant.run({ input: "Does it rain in Oslo?" }).result;
console.log(text);
console.log(state.messages.map(({ role }) => role).join(", "));

const streaming = assistant.run({ input: "Does it rain in Oslo?" });
for await (const piece of streaming.text()) process.stdout.write(piece);
process.stdout.write("\n");

const recipe = createAgent({
  name: "recipe",
  model: scriptedModel([call("final_answer", { title: "Waffles", minutes: 20 })]),
  output: z.object({ title: z.string(), minutes: z.int() }),
});
const { output } = await recipe.run({ input: "Something with eggs." }).result;
console.log(output?.title, output?.minutes);

const each = createAgent({
  name: "each",
  model: scriptedModel([call(weather, { city: "Oslo" }), say("Rain.")]),
  tools: [weather],
  prepareStep: ({ turn }) =>
    turn === 1 ? { toolChoice: { tool: "get_weather" } } : { allowedTools: [], settings: { temperature: 1 } },
  stopWhen: [turnCountIs(10), hasToolCall("hand_over")],
  onFinish: ({ ended, messages }) => console.log(ended.by, messages.length),
});
await each.run({ input: "Weather?" }).result;

const pay = defineTool({
  name: "pay",
  description: "Pay an amount.",
  input: z.object({ euros: z.number() }),
  safety: { access: "write", spend: true, confirm: "always" },
  run: ({ euros }) => `Paid ${euros} euros.`,
});
const teller = createAgent({
  name: "teller",
  model: scriptedModel([call(pay, { euros: 9 }), say("Paid.")]),
  tools: [pay],
  middleware: [confirmTools()],
  store: memoryStore(),
});
const asked = await teller.run({ thread: "t1", input: "Pay nine euros." }).result;
console.log(asked.status);
const paid = await teller.resume({ thread: "t1", answers: { approve: true } }).result;
console.log(paid.text);
