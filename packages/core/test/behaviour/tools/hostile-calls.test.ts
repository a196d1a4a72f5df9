import { expect, test } from "vitest";
import * as z from "zod";
import { defineTool, memoryStore, type ToolCallBlock, toolRegistry } from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { call, createToolLoop, getAnswerText, listToolAnswers } from "../../support/tool-loop.ts";

const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });
const names = ["constructor", "toString", "__proto__", "prototype", "hasOwnProperty", "valueOf"];

test.each(names)(
  "a call of a tool with the inherited name %s is answered as unknown, also by a resume [FX76]",
  async (name) => {
    const store = memoryStore();
    const loop = createToolLoop({
      tools: [look],
      store,
      turns: [
        [call(name, {}, "c1"), call("look", {}, "c2")],
        ({ messages }) => {
          if (messages.length < 5) throw new Error("the model is down");
          return ["done"];
        },
        ["done"],
      ],
    });
    await getFailure(loop.start().result);
    await getFailure(loop.again().result);
    const messages = loop.requests.at(-1)?.messages ?? [];
    const answers = messages.filter((message) => message.role === "tool");
    expect(answers.map((answer) => [answer.name, answer.isError])).toEqual([
      [name, true],
      ["look", false],
    ]);
    expect(getAnswerText(answers[0])).toContain(name);
  },
);

test.each(names)("a tool cannot be registered under the inherited name %s [FX76]", (name) => {
  const create = () => defineTool({ name, description: "Bad.", input: z.object({}), run: () => "x" });
  expect(() => toolRegistry([create()], { names: "provider-safe" })).toThrow("is not a tool name");
});

const raws: readonly unknown[] = [{ city: "Oslo" }, 7, ["x"], true, null];

test.each(raws)(
  "a call whose raw arguments are %j and not a text is answered, and a resume works [FX76]",
  async (raw) => {
    const block = { ...call("look", {}, "c1"), raw } as ToolCallBlock;
    let isDown = true;
    const loop = createToolLoop({
      tools: [look],
      turns: [
        [block],
        () => {
          if (isDown) throw new Error("the model is down");
          return ["done"];
        },
      ],
    });
    await getFailure(loop.start().result);
    isDown = false;
    const result = await loop.again().result;
    expect(result.status).toBe("done");
    const [answer] = listToolAnswers(result);
    expect([answer?.isError, getAnswerText(answer).includes("not valid JSON")]).toEqual(
      raw === null ? [false, false] : [true, true],
    );
  },
);
