/** Types of the models and provider tools that an agent accepts. Nothing here is called. */
import { anthropic } from "@ai-sdk/anthropic";
import { google } from "@ai-sdk/google";
import { createOpenAI, openai } from "@ai-sdk/openai";
import { say, scriptedModel } from "@statewright/testing";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { aiModel, modelRegistry, providerTool } from "../../src/adapter.ts";
import { createAgent, defineState, type Model } from "../../src/index.ts";

function taken() {
  const name = "assistant";
  const models = modelRegistry({
    anthropic,
    openai,
    google,
    house: createOpenAI().chat,
    mine: () => scriptedModel([]),
  });
  expectTypeOf(models.model("house/gpt-4o")).toEqualTypeOf<Model>();
  expectTypeOf(aiModel(google("gemini-2.5-flash"), { name: "The fast one" })).toEqualTypeOf<Model>();
  createAgent({ name, model: anthropic("claude-sonnet-4-5") });
  createAgent({ name, model: "openai/gpt-5", models });
  createAgent({ name, model: "openai/gpt-5", models: { openai } });
  createAgent({ name, model: [openai("gpt-5"), "anthropic/claude", scriptedModel([say("Hi")])] });
  createAgent({ name, model: openai("gpt-5"), fallback: ["google/gemini"], settings: { reasoning: "low", topP: 0.5 } });
  createAgent({ name, model: openai("gpt-5"), prepareStep: () => ({ model: "google/gemini" }) });
  createAgent({
    name,
    model: openai("gpt-5"),
    providerTools: [openai.tools.webSearch({}), google.tools.googleSearch({})],
  });
  createAgent({ name, model: anthropic("claude"), providerTools: [providerTool(anthropic.tools.bash_20250124({}))] });
  const Own = defineState({ count: z.number().default(0) });
  const own = createAgent({ name, model: ["openai/gpt-5"], state: Own, instructions: ({ count }) => `${count}` });
  expectTypeOf<Awaited<ReturnType<typeof own.run>["result"]>["state"]["count"]>().toEqualTypeOf<number>();
}

function defineInvalidModels() {
  const name = "assistant";
  // @ts-expect-error a number is no model
  createAgent({ name, model: 7 });
  // @ts-expect-error a provider is no model
  createAgent({ name, model: anthropic });
  // @ts-expect-error a list holds models
  createAgent({ name, model: ["openai/gpt-5", 7] });
  // @ts-expect-error an unknown setting
  createAgent({ name, model: "openai/gpt-5", settings: { temprature: 1 } });
  // @ts-expect-error an unknown reasoning effort
  createAgent({ name, model: "openai/gpt-5", settings: { reasoning: "hard" } });
  // @ts-expect-error a tool of ours is no tool of a provider
  createAgent({ name, model: "openai/gpt-5", providerTools: ["web_search"] });
  // @ts-expect-error a registry is made of providers
  modelRegistry({ openai: "openai" });
}

test("models, model names, model lists and provider tools type-check", () => {
  expect([taken, defineInvalidModels]).toHaveLength(2);
});
