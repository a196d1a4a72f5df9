import { describe, expect, test } from "vitest";
import * as z from "zod";
import { finalCall, jsonSchemaInput } from "../../src/adapter.ts";
import { outputSchema } from "../../src/index.ts";

describe("output schema", () => {
  test("an output schema is shown to the model as an object without additional properties at every depth", () => {
    const { jsonSchema } = outputSchema(z.object({ a: z.object({ b: z.string() }), c: z.array(z.object({})) }));
    expect(jsonSchema).toEqual({
      type: "object",
      properties: {
        a: {
          type: "object",
          properties: { b: { type: "string" } },
          required: ["b"],
          additionalProperties: false,
        },
        c: { type: "array", items: { type: "object", properties: {}, additionalProperties: false } },
      },
      required: ["a", "c"],
      additionalProperties: false,
    });
  });

  test("an output schema keeps explicit additionalProperties and leaves plain values unchanged", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "object", properties: {}, additionalProperties: { type: "string" } } },
      default: { type: "object", properties: {} },
    };
    expect(outputSchema(jsonSchemaInput(schema)).jsonSchema).toEqual({ ...schema, additionalProperties: false });
  });

  test("an output schema accepts a valid value and reports the issues of an invalid value", () => {
    const { read } = outputSchema(z.object({ count: z.int().positive() }));
    expect(read({ count: 2 })).toEqual({ ok: true, value: { count: 2 } });
    expect(read({ count: 0 })).toMatchObject({ ok: false, issues: expect.stringContaining("count: ") });
    expect(read("two")).toMatchObject({ ok: false });
  });

  test("an output schema that is not an object is wrapped in an object with a value field", () => {
    const { jsonSchema, read } = outputSchema(z.array(z.int()));
    expect(jsonSchema).toMatchObject({ properties: { value: { type: "array" } }, required: ["value"] });
    expect(read({ value: [1] })).toEqual({ ok: true, value: [1] });
    expect(read([1])).toEqual({ ok: false, issues: 'expected an object with "value"' });
  });

  test("an output schema refuses a value that is too large, too deep, or has a key that leads to a prototype", () => {
    const { read } = outputSchema(z.record(z.string(), z.unknown()));
    expect(read(JSON.parse('{"__proto__": 1}'))).toMatchObject({
      ok: false,
      issues: expect.stringContaining("__proto__"),
    });
    expect(read({ text: "x".repeat(2 ** 20 + 1) })).toMatchObject({
      ok: false,
      issues: expect.stringContaining("bytes"),
    });
    let deep: object = {};
    for (let level = 0; level < 100; level++) deep = { deep };
    expect(read(deep)).toMatchObject({ ok: false, issues: expect.stringContaining("levels") });
  });

  test("an output schema with a validator that throws refuses the value with that error", () => {
    const broken = jsonSchemaInput(
      { type: "object" },
      {
        validator: () => () => {
          throw new Error("it broke");
        },
      },
    );
    expect(outputSchema(broken).read({})).toMatchObject({ ok: false, issues: expect.stringContaining("it broke") });
  });

  test.each([
    ["an invalid value", 7, /expected a schema of plain types, got 7/],
    ["undefined", undefined, /undefined/],
    [
      "a schema that JSON Schema cannot express",
      z.object({ at: z.date() }),
      /a part that JSON Schema cannot represent/,
    ],
    [
      "a schema without a JSON Schema",
      { "~standard": { version: 1, vendor: "own", validate: (value: unknown) => ({ value }) } },
      /without support for JSON Schema/,
    ],
  ])("outputSchema refuses %s", (_what, given, says) => {
    expect(() => outputSchema(given as never)).toThrow(says);
    expect(() => outputSchema(given as never)).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});

test("a final call is shown to the model as a tool with the output schema, and reports invalid arguments", () => {
  const { tool, findIssues } = finalCall(outputSchema(z.object({ n: z.int() })), "How many.");
  expect(tool).toMatchObject({ name: "final_answer", inputSchema: { type: "object", required: ["n"] } });
  expect(tool.description).toMatch(/How many\.$/);
  expect(findIssues({ n: 1 })).toBeUndefined();
  expect(findIssues({})).toContain("n: ");
});
