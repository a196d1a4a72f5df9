/** Calculator: a parser of its own, since text from a model is never evaluated as code. */
import { defineTool } from "statewright";
import * as z from "zod";

export const calculator = defineTool({
  name: "calculator",
  label: "Pocket Calculator",
  description: "Evaluate an arithmetic expression with + - * / and parentheses.",
  input: z.object({ expression: z.string().max(1_000).describe("Such as (1 + 2) * 3") }),
  effect: "pure",
  run: ({ expression }) => {
    const value = evaluate(expression);
    if (value === undefined) throw new Error(`Invalid expression: ${expression}`);
    return { content: `${expression} = ${value}`, details: { expression, value } };
  },
});

/** The value of an expression; undefined where it is none, or has no finite value. */
export function evaluate(expression: string): number | undefined {
  const tokens = expression.match(/\d+(?:\.\d+)?|\S/g) ?? [];
  let position = 0;

  function sum(): number {
    let value = product();
    while (tokens[position] === "+" || tokens[position] === "-")
      value = tokens[position++] === "+" ? value + product() : value - product();
    return value;
  }

  function product(): number {
    let value = factor();
    while (tokens[position] === "*" || tokens[position] === "/")
      value = tokens[position++] === "*" ? value * factor() : value / factor();
    return value;
  }

  function factor(): number {
    const token = tokens[position++];
    if (token === "-") return -factor();
    if (token !== "(") return token === undefined || !/^\d/.test(token) ? Number.NaN : Number(token);
    const value = sum();
    return tokens[position++] === ")" ? value : Number.NaN;
  }

  const value = sum();
  return position === tokens.length && Number.isFinite(value) ? value : undefined;
}
