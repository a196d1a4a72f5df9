import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext, defineMiddleware, defineState, defineTool, sqliteStore } from "statewright";
import { budget, clearToolResults, confirmTools, summarise } from "statewright/middleware";
import * as z from "zod";

const model = scriptedModel([call("get_weather", { city: "Oslo" }), say("It rains in Oslo.")]);
const small = scriptedModel([say("They spoke of the weather.")]);

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `${city}: rain`,
});

const Request = defineContext({ role: z.enum(["guest", "expert"]) });
const Notes = defineState({ topics: z.array(z.string()).default([]) });

const timing = defineMiddleware({
  name: "timing",
  aroundModel: async (request, next, { clock }) => {
    const begin = clock.now();
    const reply = await next(request);
    console.log(`a model call, ${clock.now() >= begin}`);
    return reply;
  },
});

const agent = createAgent({
  name: "agent",
  model,
  tools: [weather],
  instructions: (_state, { role }) => (role === "expert" ? "Use terms of the field." : "Be simple."),
  context: Request,
  state: Notes,
  middleware: [
    timing,
    summarise({ model: small, triggerTokens: 4_000 }),
    clearToolResults({ triggerTokens: 100_000, keep: 3 }),
    budget({ turns: 10, toolCalls: 20 }),
    confirmTools(),
  ],
  store: sqliteStore("agent.db"),
});

const { text, state } = await agent.run({ thread: "t1", input: "Does it rain?", context: { role: "guest" } }).result;
console.log(text);
console.log(state.messages.length, state.topics);
