import { anthropic } from "@ai-sdk/anthropic";
import { google } from "@ai-sdk/google";
import { openai } from "@ai-sdk/openai";
import type { ModelReply } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { aiModel, listProviderCalls, listSources, providerTool } from "../src/index.ts";
import { createModelV4, finish } from "./support/language-models.ts";
import { ask, createCallOptions } from "./support/requests.ts";

describe("provider tools", () => {
  test("providerTool reads a tool of a provider's package under its provider name without the date", () => {
    expect(providerTool(anthropic.tools.webSearch_20250305({ maxUses: 3 }))).toEqual({
      name: "web_search",
      id: "anthropic.web_search_20250305",
      args: { maxUses: 3 },
    });
    expect(providerTool(openai.tools.webSearch({}))).toMatchObject({ name: "web_search", id: "openai.web_search" });
    expect(providerTool(google.tools.googleSearch({}), { name: "search" }).name).toBe("search");
    expect(providerTool({ type: "provider-defined", id: "x.y", name: "own", args: {} }).name).toBe("own");
  });

  test.each([
    undefined,
    {},
    { type: "function", id: "x.y" },
    { type: "provider", args: {} },
    { type: "provider", id: "x.y", args: 7 },
  ])("providerTool refuses %o", (given) => {
    expect(() => providerTool(given as never)).toThrow(
      "providerTool: expected a provider-defined tool of the AI SDK, got ",
    );
  });
});

test("provider-executed calls and sources are read from the saved reply", async () => {
  const ran = { type: "tool-call", toolName: "web_search", input: '{"q":"oslo"}', providerExecuted: true } as const;
  const { model } = createModelV4([
    { ...ran, toolCallId: "s1" },
    { type: "tool-result", toolCallId: "s1", toolName: "web_search", result: ["a"] },
    { ...ran, toolCallId: "s2" },
    { type: "tool-result", toolCallId: "s2", toolName: "web_search", result: "no", isError: true },
    { ...ran, toolCallId: "s3" },
    { type: "source", sourceType: "url", id: "1", url: "https://a.example", title: "A" },
    { type: "source", sourceType: "document", id: "2", mediaType: "application/pdf", title: "B" },
    finish(),
  ]);
  const reply = JSON.parse(JSON.stringify(await aiModel(model).respond(ask("Hi"), createCallOptions()))) as ModelReply;
  const call = { name: "web_search", args: { q: "oslo" } };
  expect(listProviderCalls(reply)).toEqual([
    { ...call, id: "s1", isError: false, result: ["a"] },
    { ...call, id: "s2", isError: true, result: "no" },
    { ...call, id: "s3", isError: false },
  ]);
  expect(listSources(reply)).toEqual([
    { id: "1", url: "https://a.example", title: "A" },
    { id: "2", title: "B", mimeType: "application/pdf" },
  ]);
  expect([listProviderCalls({}), listSources({})]).toEqual([[], []]);
});
