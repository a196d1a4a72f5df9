import { createAgent, logCalls } from "@statewright/agent";
import { memoryStore, StatewrightError } from "@statewright/core";
import { call, failWith, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { noting } from "../support/desk.ts";

async function logged(script: Parameters<typeof scriptedModel>[0], args = false): Promise<readonly string[]> {
  const lines: string[] = [];
  const middleware = [logCalls({ log: (line) => lines.push(line), args })];
  const agent = createAgent({
    name: "a",
    model: scriptedModel(script),
    tools: [noting([], "ping")],
    middleware,
    store: memoryStore(),
    retry: { attempts: 1 },
  });
  await agent
    .run({ thread: "t1", input: "my secret", world: virtualClock() })
    .result.catch((error: unknown) => lines.push(`thrown ${error instanceof StatewrightError}`));
  return lines;
}

test("each call of a model and a tool is a line, and the end of the agent; no text and no argument stands in it", async () => {
  expect(await logged([call("ping", { text: "hidden" }), say("my answer")])).toEqual([
    expect.stringMatching(/^t1 model scripted: 1 messages, 1 tools, calls ping, \d+ \+ \d+ tokens, 0 ms$/),
    "t1 tool ping, ok, 0 ms",
    expect.stringMatching(/^t1 model scripted: 3 messages, 1 tools, stop, \d+ \+ \d+ tokens, 0 ms$/),
    "t1 ended by answer",
  ]);
});

test("failures are lines too, and a name that a model made up makes no line of its own", async () => {
  const away = new StatewrightError("model_failed", {
    what: "secret text",
    next: "Wait",
    details: { retryable: false },
  });
  const lines = await logged([call("no\nsuch", {}), failWith(away)]);
  expect(lines[1]).toBe('t1 tool "no\\nsuch", failed: not_found, 0 ms');
  expect(lines[2]).toBe("t1 model scripted: 3 messages, 1 tools, failed: model_failed, 0 ms");
});

test("arguments are shown when asked for", async () => {
  const lines = await logged([call("ping", { text: "x".repeat(500) }), say("ok")], true);
  expect(lines[1]).toMatch(/^t1 tool ping \{"text":"x{191}, ok, 0 ms$/);
});

test("settings that are none are refused", () => {
  for (const options of [{}, { log: 3 }, { log: () => undefined, args: "yes" }, { log: () => undefined, level: 1 }])
    expect(() => logCalls(options as never)).toThrow(/invalid_option/);
});
