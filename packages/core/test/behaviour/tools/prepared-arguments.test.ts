/** `prepareArguments` coerces arguments before validation. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineTool, memoryStore } from "../../../src/index.ts";
import {
  call,
  createRawCall,
  createToolLoop,
  Desk,
  getAnswerText,
  listEvents,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

function numbers(args: unknown): unknown {
  const given = args as Record<string, unknown>;
  if (typeof given["n"] === "string") given["n"] = Number(given["n"]);
  return given;
}

function square(prepareArguments?: (args: unknown) => unknown) {
  return defineTool({
    name: "square",
    description: "Square a number.",
    input: z.object({ n: z.number() }),
    ...(prepareArguments && { prepareArguments }),
    run: ({ n }) => `${n * n}`,
  });
}

test("arguments are strict by default; a tool may coerce them first, and then raw and final arguments are emitted [D11]", async () => {
  const strict = await runToolLoop({ tools: [square()], turns: [[call("square", { n: "5" })], ["ok"]] });
  expect(listToolAnswers(strict).map(({ isError }) => isError)).toEqual([true]);
  const turns = [[call("square", { n: "5" }, "a"), call("square", { n: 6 }, "b")], ["ok"]];
  const repairedLoop = await runToolLoop({ tools: [square(numbers)], turns });
  expect(listToolAnswers(repairedLoop).map(getAnswerText)).toEqual(["25", "36"]);
  expect(listEvents(repairedLoop, "tool.args_rewritten")).toMatchObject([
    { callId: "a", by: "prepareArguments", raw: { n: "5" }, args: { n: 5 } },
  ]);
  expect(listEvents(repairedLoop, "tool.started").map(({ args }) => args)).toEqual([{ n: 5 }, { n: 6 }]);
  const asked = repairedLoop.result.state.messages.find((message) => message.role === "assistant");
  expect(JSON.stringify(asked)).toContain('{"n":"5"}');
});

describe("prepareArguments", () => {
  test("the return of prepareArguments is validated, and its error is reported to the model", async () => {
    const tools = [
      square((args) => {
        const n = Reflect.get(args as object, "n") as unknown;
        if (n === "throw") throw new Error("no number at all");
        return n === "drop" ? undefined : { n, extra: 1 };
      }),
    ];
    const turns = [
      [call("square", { n: "throw" }, "a"), call("square", { n: "drop" }, "b"), call("square", { n: 1 }, "c")],
      ["ok"],
    ];
    const done = await runToolLoop({ tools, turns });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual([
      'The arguments of "square" are invalid: "square" cannot prepare the arguments: no number at all.',
      'The arguments of "square" are invalid: expected an object of arguments.',
      'The arguments of "square" are invalid: extra: unknown argument.',
    ]);
    expect(listEvents(done, "tool.args_rewritten")).toEqual([]);
  });

  test("prepareArguments gets no hidden name, and is not called for malformed JSON", async () => {
    const seen: unknown[] = [];
    const tool = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({ cents: z.int() }),
      inject: { customer: Desk.from((desk) => desk.customer) },
      prepareArguments: (args) => {
        seen.push(args);
        return args;
      },
      run: () => "paid",
    });
    const turns = [
      [call("pay", { cents: 1, customer: "forged" }, "a"), createRawCall("pay", '{"cents":', "b")],
      ["ok"],
    ];
    await runToolLoop({ tools: [tool], context: { customer: "real" }, turns });
    expect(seen).toEqual([{ cents: 1 }]);
  });

  test("prepareArguments runs again after a crash, and is not called for a tool call with a recorded result", async () => {
    const store = memoryStore();
    let repairs = 0;
    const tools = [
      square((args) => {
        repairs += 1;
        return numbers(args);
      }),
    ];
    const loop = createToolLoop({ tools, store, turns: [[call("square", { n: "5" })]] });
    await loop.start().result.catch((error: unknown) => error);
    expect(repairs).toBe(1);
    const later = createToolLoop({ tools, store, turns: [[call("square", { n: "5" })], ["ok"]] });
    expect(listToolAnswers(await later.again().result).map(getAnswerText)).toEqual(["25"]);
    expect(repairs).toBe(1);
  });
});
