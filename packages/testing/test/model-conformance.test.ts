import type { JsonObject, ModelReply } from "@statewright/core";
import { modelConformance, type OpenModel } from "@statewright/testing/conformance";
import { expect, test } from "vitest";
import { call, type ScriptedCall, type ScriptedText, say, scriptedModel } from "../src/index.ts";

const scripted: OpenModel = (answers) => {
  const model = scriptedModel(answers.map(scriptOf));
  return { model, listRequests: () => model.requests.map((request) => JSON.stringify(request)) };
};

function scriptOf({ content }: ModelReply): readonly (ScriptedText | ScriptedCall)[] {
  return content.flatMap((block): readonly (ScriptedText | ScriptedCall)[] => {
    if (block.type === "text") return [say(block.text)];
    return block.type === "call" ? [call(block.name, block.args as JsonObject, { id: block.id })] : [];
  });
}

test("the scripted model passes every test of the model suite [S1.88]", async () => {
  expect(await failedOf(scripted)).toEqual([]);
});

async function failedOf(open: OpenModel): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of modelConformance) await run(open).catch(() => failed.push(name));
  return failed;
}

test("the model suite detects an adapter that loses arguments, ids, images and files", async () => {
  const careless: OpenModel = (answers) => {
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
  expect(await failedOf(careless)).toEqual([
    "arguments arrive whole: unicode, quotes, nesting and numbers",
    "two calls in one response arrive as two, in their order, and the reply says that it calls",
    "streamed arguments come in pieces that make up the whole, under the id and the name of their call",
    "the id of a call comes back with the call and with its answer",
    "the answers to two calls go out in the order of the calls",
    "an error of a tool reaches the model in its own words",
    "an image in a result reaches the model, or is named where there can be none",
    "a file of a person reaches the model, or is named where it reads none: by bytes and by address",
  ]);
});
