import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { stats } from "../src/stats.ts";
import { schemaOf, talk, textOfResult } from "./support/talk.ts";

const ask = async (args: { numbers?: unknown; precision?: number }) => {
  const live = await talk([stats], [call("stats", JSON.parse(JSON.stringify(args)))]);
  const [result] = live.results();
  return { result, text: textOfResult(result), live };
};

test("S3.22 numbers are required, the precision is 2 when absent; an empty or another thing is refused in the tool's own words", async () => {
  const { live } = await ask({ numbers: [1] });
  expect(schemaOf(live.wires[0])).toMatchObject({ required: ["numbers"], properties: { precision: { default: 2 } } });
  for (const numbers of [[], "12", { 0: 1 }, null]) {
    const { result, text } = await ask({ numbers });
    expect(result?.error?.kind).toBe("invalid_args");
    expect(text).toContain("numbers must be a non-empty array");
  }
  const missing = await ask({});
  expect(missing.text).toContain("numbers must be a non-empty array");
});

test("S3.23 an element that is no number is named by its place", async () => {
  const { result, text } = await ask({ numbers: [1, 2, "x"] });
  expect(result?.error?.kind).toBe("invalid_args");
  expect(text).toContain("element 2 is not a number");
});

test("S3.24 the line, with two spaces between its parts, and the details unrounded", async () => {
  const { text, result } = await ask({ numbers: [1, 2, 3, 4, 5] });
  expect(text).toBe("n=5  min=1.00  max=5.00  mean=3.00  stddev=1.41");
  expect(result?.details).toEqual({ n: 5, min: 1, max: 5, mean: 3, stddev: Math.SQRT2 });
  expect((await ask({ numbers: [1, 2, 3, 4, 5], precision: 0 })).text).toBe("n=5  min=1  max=5  mean=3  stddev=1");
});
