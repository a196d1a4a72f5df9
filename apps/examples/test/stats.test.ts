import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { stats } from "../src/stats.ts";
import { getResultText, getSchema, runConversation } from "./support/talk.ts";

const ask = async (args: { numbers?: unknown; precision?: number }) => {
  const live = await runConversation([stats], [call(stats, JSON.parse(JSON.stringify(args)))]);
  const [result] = live.results();
  return { result, text: getResultText(result), live };
};

test("stats requires numbers, defaults precision to 2, and refuses empty or wrong input with its own text [S3.22]", async () => {
  const { live } = await ask({ numbers: [1] });
  expect(getSchema(live.wires[0])).toMatchObject({ required: ["numbers"], properties: { precision: { default: 2 } } });
  for (const numbers of [[], "12", { 0: 1 }, null]) {
    const { result, text } = await ask({ numbers });
    expect(result?.error?.kind).toBe("invalid_args");
    expect(text).toContain("numbers must be a non-empty array");
  }
  const missing = await ask({});
  expect(missing.text).toContain("numbers must be a non-empty array");
});

test("stats names a non-numeric element by its index [S3.23]", async () => {
  const { result, text } = await ask({ numbers: [1, 2, "x"] });
  expect(result?.error?.kind).toBe("invalid_args");
  expect(text).toContain("element 2 is not a number");
});

test("stats prints its values with two spaces between and unrounded details [S3.24]", async () => {
  const { text, result } = await ask({ numbers: [1, 2, 3, 4, 5] });
  expect(text).toBe("n=5  min=1.00  max=5.00  mean=3.00  stddev=1.41");
  expect(result?.details).toEqual({ n: 5, min: 1, max: 5, mean: 3, stddev: Math.SQRT2 });
  expect((await ask({ numbers: [1, 2, 3, 4, 5], precision: 0 })).text).toBe("n=5  min=1  max=5  mean=3  stddev=1");
});
