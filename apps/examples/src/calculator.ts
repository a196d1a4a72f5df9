/** Calculator with its own parser: model output is never evaluated as code. */
import { defineTool } from "statewright";
import * as z from "zod";

export const calculator = defineTool({
  name: "calculator",
  label: "Pocket Calculator",
  description: "Evaluate an arithmetic expression with + - * / and parentheses.",
  input: z.object({ expression: z.string().max(1_000).describe("Expression, such as (1 + 2) * 3") }),
  effect: "pure",
  run: ({ expression }) => {
    const value = evaluate(expression);
    if (value === undefined) throw new Error(`Invalid expression: ${expression}`);
    return { content: `${expression} = ${value}`, details: { expression, value } };
  },
});

/** Evaluates an expression. Returns undefined for an invalid expression or a non-finite value. */
export function evaluate(expression: string): number | undefined {
  const tokens = expression.match(/\d+(?:\.\d+)?|\S/g) ?? [];
  let position = 0;

  function parseSum(): number {
    let value = parseProduct();
    while (tokens[position] === "+" || tokens[position] === "-")
      value = tokens[position++] === "+" ? value + parseProduct() : value - parseProduct();
    return value;
  }

  function parseProduct(): number {
    let value = parseFactor();
    while (tokens[position] === "*" || tokens[position] === "/")
      value = tokens[position++] === "*" ? value * parseFactor() : value / parseFactor();
    return value;
  }

  function parseFactor(): number {
    const token = tokens[position++];
    if (token === "-") return -parseFactor();
    if (token !== "(") return token === undefined || !/^\d/.test(token) ? Number.NaN : Number(token);
    const value = parseSum();
    return tokens[position++] === ")" ? value : Number.NaN;
  }

  const value = parseSum();
  return position === tokens.length && Number.isFinite(value) ? value : undefined;
}
