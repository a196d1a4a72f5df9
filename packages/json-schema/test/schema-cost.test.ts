import type { JsonObject } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { ajvValidator, isNestedDeeper, jsonSchema } from "../src/index.ts";

/** Levels of alternatives between two equal references: 1.5 KB of text, and 2 to the power of `levels` checks. */
function nestAlternatives(levels: number, toRef = (name: string): object => ({ $ref: `#/$defs/${name}` })) {
  const $defs: Record<string, object> = { l0: { type: "string" } };
  for (let level = 1; level <= levels; level++) {
    const part = toRef(`l${level - 1}`);
    $defs[`l${level}`] = { $anchor: `l${level}`, anyOf: [part, part] };
  }
  return { type: "object", properties: { a: { $ref: `#/$defs/l${levels}` } }, $defs };
}

/** A recursive schema whose alternatives multiply with the depth of the value. */
const recursive = {
  type: "object",
  properties: { a: { $ref: "#/$defs/node" } },
  $defs: {
    node: {
      anyOf: [
        { type: "object", properties: { n: { $ref: "#/$defs/node" } }, required: ["n"] },
        { type: "object", properties: { n: { $ref: "#/$defs/node" } }, required: ["n"] },
      ],
    },
  },
};

function nestValue(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = { n: value };
  return { a: value };
}

describe.each([
  ["ajv", (schema: object) => jsonSchema(schema).validate],
  ["the checker of core", (schema: object) => jsonSchemaInput(schema).validate],
] as const)("cost of a schema for %s", (name, load) => {
  test.each([23, 26])(
    "a small schema of %i levels of equal alternatives is refused when it is loaded [FX64]",
    (levels) => {
      const schema = nestAlternatives(levels, (to) => ({ $ref: `#/$defs/${to}` }));
      for (const level of Object.values(schema.$defs)) Reflect.deleteProperty(level, "$anchor");
      expect(JSON.stringify(schema).length).toBeLessThan(2_500);
      expect(() => load(schema)).toThrow(/invalid_tool.+combines more than 10000 alternatives/);
    },
  );

  test("a wrong value of a recursive schema is refused before its alternatives multiply [FX64]", () => {
    const validate = load(recursive);
    const startedAt = performance.now();
    expect(validate(nestValue(40))).toEqual([{ path: "", message: "cannot be checked within 100000 steps" }]);
    expect(performance.now() - startedAt, name).toBeLessThan(1_000);
    expect(validate(nestValue(3))).not.toEqual([]);
  });

  test("a recursive schema accepts a large list and a deep tree [FX64]", () => {
    const properties = { children: { type: "array", items: { $ref: "#/$defs/node" } }, name: { type: "string" } };
    const tree = { type: "object", properties, $defs: { node: { type: "object", properties } } };
    const children = Array.from({ length: 40_000 }, (_, index) => ({ name: String(index), children: [] }));
    expect(load(tree)({ name: "root", children })).toEqual([]);
  });

  test("a schema of many different alternatives is accepted [FX64]", () => {
    const anyOf = Array.from({ length: 500 }, (_, index) => ({ const: index }));
    expect(load({ type: "object", properties: { a: { anyOf } } })({ a: 499 })).toEqual([]);
  });

  test("a schema that is too large or too deep is refused [FX64]", () => {
    const description = "x".repeat(5 * 2 ** 20);
    expect(() => load({ type: "object", description })).toThrow(/invalid_tool.+characters/);
    let deep: object = {};
    for (let level = 0; level < 600; level++) deep = { items: deep };
    expect(() => load({ type: "object", properties: { a: deep } })).toThrow(/invalid_tool.+nested deeper/);
  });
});

test("alternatives over anchors are measured, also by the validator alone [FX64]", () => {
  const schema = nestAlternatives(23, (name) => ({ $ref: name === "l0" ? "#/$defs/l0" : `#${name}` }));
  expect(() => ajvValidator(schema as never)).toThrow(/invalid_tool.+alternatives/);
});

test("a schema nested 50,000 levels deep is refused with an error of its own [FX77]", () => {
  let schema: JsonObject = { type: "object" };
  for (let level = 0; level < 50_000; level++) schema = { type: "object", properties: { a: schema } };
  expect(() => ajvValidator(schema)).toThrow("the JSON Schema is nested deeper than 500 levels");
  expect(() => jsonSchema(schema)).toThrow(expect.objectContaining({ code: "invalid_tool" }));
  expect(isNestedDeeper(schema, 100_000)).toBe(true);
  expect([isNestedDeeper([[7]], 2), isNestedDeeper([[7]], 1)]).toEqual([false, true]);
});
