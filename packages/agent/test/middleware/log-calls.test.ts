import { createAgent } from "@statewright/agent";
import { logCalls } from "@statewright/agent/middleware";
import { defineTool, inject, memoryStore, StatewrightError } from "@statewright/core";
import { call, failWith, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createRecordingTool } from "../support/desk.ts";

async function logged(script: Parameters<typeof scriptedModel>[0], args = false): Promise<readonly string[]> {
  const lines: string[] = [];
  const middleware = [logCalls({ log: (line) => lines.push(line), args })];
  const agent = createAgent({
    name: "a",
    model: scriptedModel(script),
    tools: [createRecordingTool([], "ping")],
    middleware,
    store: memoryStore(),
    retry: { attempts: 1 },
  });
  await agent
    .run({ thread: "t1", input: "my secret", world: virtualClock() })
    .result.catch((error: unknown) => lines.push(`thrown ${error instanceof StatewrightError}`));
  return lines;
}

test("logCalls writes a line per model call, tool call and agent end, without texts and arguments", async () => {
  expect(await logged([call("ping", { text: "hidden" }), say("my answer")])).toEqual([
    expect.stringMatching(/^t1 model scripted: 1 messages, 1 tools, calls ping, \d+ \+ \d+ tokens, 0 ms$/),
    "t1 tool ping, ok, 0 ms",
    expect.stringMatching(/^t1 model scripted: 3 messages, 1 tools, stop, \d+ \+ \d+ tokens, 0 ms$/),
    "t1 ended by answer",
  ]);
});

test("logCalls writes a line for a failure, and escapes a tool name made up by a model", async () => {
  const away = new StatewrightError("model_failed", {
    what: "secret text",
    next: "Wait",
    details: { retryable: false },
  });
  const lines = await logged([call("no\nsuch", {}), failWith(away)]);
  expect(lines[1]).toBe('t1 tool "no\\nsuch", failed: not_found, 0 ms');
  expect(lines[2]).toBe("t1 model scripted: 3 messages, 1 tools, failed: model_failed, 0 ms");
});

test("logCalls escapes control characters in names, arguments and errors [R20]", async () => {
  const steers = "\u001b[2J\u009b31m\u202egnp\r";
  const thrown = Object.assign(new Error("x"), { name: `E${steers}` });
  const lines = await logged([call(`no${steers}`, { [steers]: steers }), failWith(thrown)], true);
  expect(lines.length).toBeGreaterThan(2);
  expect(lines[1]).toContain("\\u001b[2J\\u009b31m\\u202egnp");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches terminal control characters
  for (const line of lines) expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
});

test("logCalls with args shows truncated arguments", async () => {
  const lines = await logged([call("ping", { text: "x".repeat(500) }), say("ok")], true);
  expect(lines[1]).toMatch(/^t1 tool ping \{"text":"x{191}, ok, 0 ms$/);
});

test("logCalls with args redacts the secrets of the run [FX72]", async () => {
  const lines: string[] = [];
  const unlock = defineTool({
    name: "unlock",
    description: "Reads a secret.",
    input: z.object({ text: z.string() }),
    inject: { key: inject.secret("KEY") },
    run: () => "ok",
  });
  const agent = createAgent({
    name: "a",
    model: scriptedModel([call("unlock", { text: "opaque-0123456789" }), say("ok")]),
    tools: [unlock],
    middleware: [logCalls({ log: (line) => lines.push(line), args: true })],
  });
  await agent.run({ input: "Go", secrets: { get: () => "opaque-0123456789" } }).result;
  expect(lines.join("\n")).toContain('tool unlock {"text":"[secret]"}');
  expect(lines.join("\n")).not.toContain("opaque");
});

test("logCalls refuses invalid options", () => {
  for (const options of [{}, { log: 3 }, { log: () => undefined, args: "yes" }, { log: () => undefined, level: 1 }])
    expect(() => logCalls(options as never)).toThrow(/invalid_option/);
});
