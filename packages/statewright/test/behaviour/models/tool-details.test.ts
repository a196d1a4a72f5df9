import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createAgent, defineTool, type LanguageModel, type RunEvent, sqliteStore, type ToolResult } from "statewright";
import { createCodec } from "statewright/store";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { anthropicServer } from "../../support/anthropic-server.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tool-details-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a language model of a specification: calls the tool, then answers with text; `asked` returns the requests as JSON. */
function createLanguageModel(specificationVersion: "v2" | "v3" | "v4"): {
  readonly model: LanguageModel;
  readonly asked: () => string;
} {
  const asked: unknown[] = [];
  const old = specificationVersion === "v2";
  const usage = old
    ? { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
    : {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      };
  const finish = (reason: "stop" | "tool-calls") => ({
    type: "finish",
    finishReason: old ? reason : { unified: reason, raw: reason },
    usage,
  });
  const model: LanguageModel = {
    specificationVersion,
    provider: "made.chat",
    modelId: "one",
    doStream: async (options: { readonly prompt: readonly { readonly role: string }[] }) => {
      asked.push(options);
      const parts = options.prompt.some(({ role }) => role === "tool")
        ? [
            { type: "text-start", id: "1" },
            { type: "text-delta", id: "1", delta: "ok" },
            { type: "text-end", id: "1" },
            finish("stop"),
          ]
        : [
            { type: "tool-call", toolCallId: "call_1", toolName: "get_weather", input: '{"city":"Oslo"}' },
            finish("tool-calls"),
          ];
      return { stream: ReadableStream.from<object>(parts) };
    },
  };
  return { model, asked: () => JSON.stringify(asked) };
}

const weather = defineTool({
  name: "get_weather",
  label: "SENTINEL-label",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  run: (_args, { update, progress }) => {
    progress("SENTINEL-progress");
    update?.({ content: "SENTINEL-partial", details: { partial: "SENTINEL" } });
    return {
      content: [
        { type: "text", text: "Rain" },
        { type: "json", value: { mm: 3 } },
      ],
      value: { only: "SENTINEL-value" },
      details: { card: "SENTINEL-details", rows: [1, 2] },
      provider: { request: "SENTINEL-provider" },
      usage: { inputTokens: 7 },
    };
  },
});

describe("tool output for programs", () => {
  test("tool details stay out of the requests of every kind of language model, also after the file is reopened [T21]", async () => {
    await using server = await openServer();
    const anthropic = createAnthropic({ baseURL: server.baseUrl, apiKey: "test" })("claude-sonnet-4-5");
    const models: Readonly<Record<string, { readonly model: LanguageModel; readonly asked: () => string }>> = {
      v2: createLanguageModel("v2"),
      v3: createLanguageModel("v3"),
      v4: createLanguageModel("v4"),
      anthropic: { model: anthropic, asked: () => JSON.stringify(server.requests) },
    };
    for (const [name, { model, asked }] of Object.entries(models)) {
      const path = join(folder, `${name}.db`);
      const events: RunEvent[] = [];
      for (const [index, words] of ["Is it raining?", "And now?"].entries()) {
        const store = sqliteStore(path, { durability: "normal" });
        const agent = createAgent({ name: "assistant", model, tools: [weather], store });
        const handle = agent.run({ thread: "t1", input: words });
        handle.on((event) => events.push(event));
        expect([name, index, (await handle.result).status]).toEqual([name, index, "done"]);
        await store.close();
      }
      expect(asked(), name).toContain("Rain");
      expect(asked(), name).not.toContain("SENTINEL");
      const ended = events.filter((event) => event.type === "tool.completed");
      expect(JSON.stringify(ended), name).toContain("SENTINEL-details");
    }
  });

  test("structured output and artifact references are stored byte for byte as reported [S1.10, S1.69]", async () => {
    const path = join(folder, "threads.db");
    const tool = defineTool({
      name: "get_weather",
      description: "Current weather for a city.",
      input: z.object({ city: z.string() }),
      output: z.object({ mm: z.number(), when: z.string() }),
      run: ({ city }) => ({
        content: `Rain in ${city}`,
        value: { mm: 0.1 + 0.2, when: "2026-01-01T00:00:00Z" },
        artifacts: [{ name: "radar.txt", mimeType: "text/plain", body: "rain ".repeat(1_000) }],
      }),
    });
    const { model } = createLanguageModel("v3");
    const store = sqliteStore(path, { durability: "normal" });
    const observed: ToolResult[] = [];
    const handle = createAgent({ name: "assistant", model, tools: [tool], store }).run({
      thread: "t1",
      input: "Is it raining?",
    });
    handle.on((event) => {
      if (event.type === "tool.completed") observed.push(event.result);
    });
    expect((await handle.result).status).toBe("done");
    await store.close();
    const again = sqliteStore(path, { durability: "normal" });
    const rows = (await again.effects("t1", "main")).filter(({ kind }) => kind === "tool");
    const [storedResult] = rows.map(({ outcome }) => createCodec().decode(outcome ?? "") as ToolResult);
    expect(storedResult).toEqual(observed[0]);
    expect(JSON.stringify(storedResult)).toBe(JSON.stringify(observed[0]));
    expect([storedResult?.value, storedResult?.artifacts?.length]).toEqual([
      { mm: 0.1 + 0.2, when: "2026-01-01T00:00:00Z" },
      1,
    ]);
    expect(storedResult?.artifacts?.[0]).toMatchObject({ name: "radar.txt", mimeType: "text/plain", bytes: 5_000 });
    await again.close();
  });
});

async function openServer() {
  const server = await anthropicServer();
  return { ...server, requests: server.requests, [Symbol.asyncDispose]: () => server.close() };
}
