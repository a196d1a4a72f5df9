import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { calculator, evaluate } from "../src/calculator.ts";
import { getResultText, runConversation } from "./support/talk.ts";

test("the calculator returns the expression with its value, and an invalid expression is a quoted error [S4.13]", async () => {
  const { results } = await runConversation(
    [calculator],
    [call(calculator, { expression: "1+2" }), call(calculator, { expression: "process.exit()" })],
  );
  expect(results().map(getResultText)).toEqual(["1+2 = 3", "Invalid expression: process.exit()"]);
  expect(results().map(({ isError }) => isError)).toEqual([false, true]);
});

test("the calculator applies operator precedence and parentheses, and refuses everything except arithmetic", () => {
  expect(evaluate("1 + 2 * 3")).toBe(7);
  expect(evaluate("(1 + 2) * -3 / 2")).toBe(-4.5);
  expect(evaluate("10 - 4 - 3")).toBe(3);
  for (const text of ["", "1 +", "(1", "1 2", "1 / 0", "2 ** 3", "alert(1)", "1)"])
    expect(evaluate(text)).toBeUndefined();
});
