import type { JsonObject, ModelReply } from "@statewright/core";
import { modelConformance, type OpenModel } from "@statewright/testing/conformance";
import { expect, test } from "vitest";
import { call, type ScriptedCall, type ScriptedText, say, scriptedModel } from "../src/index.ts";

const scripted: OpenModel = (answers) => {
  const model = scriptedModel(answers.map(getScript));
  return { model, listRequests: () => model.requests.map((request) => JSON.stringify(request)) };
};

function getScript({ content }: ModelReply): readonly (ScriptedText | ScriptedCall)[] {
  return content.flatMap((block): readonly (ScriptedText | ScriptedCall)[] => {
    if (block.type === "text") return [say(block.text)];
    return block.type === "call" ? [call(block.name, block.args as JsonObject, { id: block.id })] : [];
  });
}

test("the scripted model passes every test of the model suite [S1.88]", async () => {
  expect(await listFailed(scripted)).toEqual([]);
});

async function listFailed(open: OpenModel): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of modelConformance) await run(open).catch(() => failed.push(name));
  return failed;
}

test("the model suite detects an adapter that loses arguments, ids, images and files", async () => {
  const createCarelessModel: OpenModel = (answers) => {
    const wires: string[] = [];
    return {
      listRequests: () => wires,
      model: {
        id: "careless",
        respond: async (request) => {
          const messages = request.messages.map(({ role, content }) => ({
            role,
            content: (content as readonly { readonly type: string }[]).filter(({ type }) => type !== "image"),
          }));
          wires.push(JSON.stringify({ messages: messages.map(({ role }) => role), tools: request.tools }));
          const [answer] = answers;
          if (answer === undefined) throw new Error("no answer");
          return { ...answer, content: answer.content.slice(0, 1).map((block) => ({ ...block, args: {} })) as never };
        },
      },
    };
  };
  expect(await listFailed(createCarelessModel)).toEqual([
    "arguments arrive complete: unicode, quotes, nesting and numbers",
    "two tool calls in one response arrive in order, and the reply finishes with calls",
    "streamed argument pieces add up to the complete arguments, with the id and the name of their tool call",
    "the id of a tool call is sent to the provider with the call and with its result",
    "the results of two tool calls are sent in the order of the calls",
    "an error of a tool reaches the model unchanged",
    "an image in a tool result reaches the model, or is replaced by a note where images are not supported",
    "a file in a user message reaches the model, or is replaced by a note: by bytes and by URL",
  ]);
});
