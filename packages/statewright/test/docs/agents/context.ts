import { createAgent, defineMiddleware, defineTool, type Model, memoryStore } from "statewright";
import { clearToolResults, promptCache, summarise, trimMessages } from "statewright/middleware";
import * as z from "zod";

const store = memoryStore();

const look = defineTool({
  name: "look",
  description: "Look at a part of the garden.",
  input: z.object({ at: z.string() }),
  effect: "pure",
  run: ({ at }) => `The ${at}: ${"green ".repeat(200)}`,
});

// shorten requests
export const gardener = (model: Model, small: Model) =>
  createAgent({
    name: "gardener",
    model,
    instructions: "Help with the garden.",
    tools: [look],
    store,
    middleware: [
      clearToolResults({ triggerTokens: 1_000, keep: 2 }),
      summarise({ model: small, triggerTokens: 2_000, keepTokens: 500 }),
      trimMessages({ maxTokens: 4_000 }),
      promptCache(),
    ],
  });

// count with your own tokenizer
export const exact = (count: (text: string) => number) => trimMessages({ maxTokens: 8_000, countTokens: count });

// write your own middleware
export const withoutImages = defineMiddleware({
  name: "without images",
  beforeModel: (request) => ({
    ...request,
    messages: request.messages.map((message) =>
      message.role === "user"
        ? { ...message, content: message.content.filter(({ type }) => type !== "image") }
        : message,
    ),
  }),
});
