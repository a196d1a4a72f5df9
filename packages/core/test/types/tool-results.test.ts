/** Types of the results of tools, and options that other systems type differently. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineTool, ToolError, type ToolResult, toolNode } from "../../src/index.ts";

const input = z.object({ word: z.string() });
const base = { description: "Searches.", input } as const;

declare const result: ToolResult;

test("the details of a result have the type that the tool returned (types) [FX90]", () => {
  const plain = defineTool({
    ...base,
    name: "plain",
    run: ({ word }) => ({ content: word, details: { files: [word], total: 2 } }),
  });
  const later = defineTool({
    ...base,
    name: "later",
    output: z.object({ hits: z.int() }),
    run: async ({ word }) => {
      if (word === "") throw ToolError.failed("no word");
      return { content: "2 hits", value: { hits: 2 }, details: { page: 1 } };
    },
  });
  const either = defineTool({
    ...base,
    name: "either",
    run: ({ word }) => (word === "" ? "nothing" : { content: word, details: { at: 1 } }),
  });
  const text = defineTool({ ...base, name: "text", run: () => "x" });
  const check = (): void => {
    if (plain.isResult(result))
      expectTypeOf(result.details).toEqualTypeOf<{ files: string[]; total: number } | undefined>();
    if (later.isResult(result)) {
      expectTypeOf(result.details).toEqualTypeOf<{ page: number } | undefined>();
      expectTypeOf(result.value).toEqualTypeOf<{ hits: number } | undefined>();
    }
    if (either.isResult(result)) expectTypeOf(result.details).toEqualTypeOf<{ at: number } | undefined>();
    if (text.isResult(result)) expectTypeOf(result.details).toEqualTypeOf<unknown>();
  };
  expect(check).toBeTypeOf("function");
  const wrong = () =>
    defineTool({
      ...base,
      name: "wrong",
      output: z.object({ hits: z.int() }),
      // @ts-expect-error the value is not what the output schema says
      run: () => ({ content: "x", value: { hits: "2" }, details: {} }),
    });
  expect(wrong).toBeTypeOf("function");
});

test("safety.spend has no limit of money, which only a budget enforces [FX90]", () => {
  const pay = (spend: unknown) => () =>
    defineTool({ ...base, name: "pay", safety: { access: "write", spend: spend as boolean }, run: () => "paid" });
  expect(pay(true)().spec.safety.spend).toBe(true);
  expect(pay({ maxUsd: 5 })).toThrow("true or false; limit money with budget");
});

test("a strategy with a batch and a further option is refused, and so is one with two spellings of its size [FX90]", () => {
  const tools = [defineTool({ ...base, name: "look", run: () => "x" })];
  expect(toolNode({ tools, strategy: { batch: 2 } }).strategy).toEqual({ batch: 2 });
  for (const strategy of [{ batch: 2, size: 3 }, { size: 3 }, { batch: 2, size: 2 }])
    expect(() => toolNode({ tools, strategy: strategy as never })).toThrow(/strategy/);
});
