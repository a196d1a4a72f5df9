/** `generate` in nodes, tools and model routes across crashes, and with a replaced model. */
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  type Model,
  modelRoute,
  START,
  toolNode,
  userMessage,
} from "@statewright/core";
import { crashMatrix } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import * as z from "zod";

/** Answers by the question, so that a repeated request gets the same answer. */
const model: Model = {
  id: "house/small",
  structuredOutput: true,
  respond: async ({ messages, output }) => {
    const asked = getMessageText(messages.at(-1));
    const answers: Readonly<Record<string, unknown>> = {
      "Which way?": { value: "work" },
      "Rate it": { stars: 4 },
    };
    const text = output === undefined ? `About ${asked}` : JSON.stringify(answers[asked]);
    return { content: [{ type: "text", text }], finish: "stop", usage: { inputTokens: 3, outputTokens: 1 } };
  },
};

function createGraph() {
  const look = defineTool({
    name: "look",
    description: "Looks a page up.",
    input: z.object({}),
    effect: "idempotent",
    run: async (_args, { generate }) => (await generate({ model, prompt: "the page" })).text,
  });
  return defineGraph({
    name: "asking",
    state: defineState({ messages: channel.messages(), stars: z.number().default(0), log: channel.list(z.string()) }),
  })
    .nodes({
      work: async (_state, { generate }) => {
        const { object } = await generate({ model, prompt: "Rate it", output: z.object({ stars: z.number() }) });
        const { text } = await generate({ model, prompt: "the rating" });
        const content = [{ type: "call" as const, id: "c1", name: "look", args: {} }];
        return {
          stars: object.stars,
          log: [text],
          messages: [{ role: "assistant" as const, id: "", content, finish: "calls" as const }],
        };
      },
      tools: toolNode({ tools: [look] }),
    })
    .edges({
      [START]: modelRoute(["work", END], { model, prompt: () => "Which way?" }),
      work: "tools",
      tools: END,
    });
}

test("generate in a node, in a tool and in a model route survives a crash at every point [Y2]", async () => {
  const input = { messages: [userMessage("Hi")] };
  expect(await crashMatrix(() => ({ graph: createGraph(), input }))).toSurviveCrashes();
});

test("testRun replaces the model of generate in nodes, tools and model routes [Y2]", async () => {
  const texts = ['{"value":"work"}', '{"stars":1}', "A replaced rating", "A replaced page"];
  const replaced: Model = {
    ...model,
    respond: async () => ({ content: [{ type: "text", text: texts.shift() ?? "" }], finish: "stop" }),
  };
  const t = await testRun(createGraph(), { input: { messages: [userMessage("Hi")] }, model: replaced });
  await t.finish();
  const { state } = t;
  expect(state.stars).toBe(1);
  expect(state.log).toEqual(["A replaced rating"]);
  expect(getMessageText(state.messages.at(-1))).toBe("A replaced page");
});
