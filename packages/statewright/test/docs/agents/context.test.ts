import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { expect, test } from "vitest";
import { exact, gardener, withoutImages } from "./context.ts";

test("the agent of the context page sends requests of bounded size and keeps every message", async () => {
  const model = scriptedModel((request) =>
    request.messages.at(-1)?.role === "user" ? call("look", { at: "roses" }) : say("They are green."),
  );
  const small = scriptedModel(() => say("The user asks about roses; they are green."));
  const agent = gardener(model, small);
  for (let turn = 0; turn < 40; turn++) {
    const { status } = await agent.run({ thread: "t", input: `Turn ${turn}: ${"how are the roses? ".repeat(20)}` })
      .result;
    expect(status).toBe("done");
  }
  const { state } = await agent.run({ thread: "t", input: "And now?" }).result;
  expect(state.messages).toHaveLength(41 * 4);
  expect(Math.max(...model.requests.map((request) => JSON.stringify(request.messages).length))).toBeLessThan(20_000);
  expect(small.requests.length).toBeGreaterThan(1);
  expect(JSON.stringify(model.requests.at(-1))).toContain('"cacheControl":{"type":"ephemeral"}');
});

test("a custom tokenizer counts tokens, and custom middleware changes the request", async () => {
  const model = scriptedModel([say("ok")]);
  const middleware = [exact((text) => text.length), withoutImages];
  const image = { type: "image" as const, mimeType: "image/png", data: "aGk=" };
  const input = [{ role: "user" as const, id: "u", content: [{ type: "text" as const, text: "Look" }, image] }];
  const { state } = await createAgent({ name: "a", model, middleware }).run({ input }).result;
  expect(model.requests[0]?.messages).toMatchObject([{ content: [{ text: "Look" }] }]);
  expect(state.messages[0]?.content).toHaveLength(2);
});
