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

  test("patterns of properties that match the same name multiply, and are refused when they are loaded [FX64]", () => {
    const twice = (part: object): object => ({ patternProperties: { "^n": part, n$: part } });
    let part: object = { type: "string" };
    for (let level = 0; level < 6; level++) part = twice(part);
    expect(() => load(twice(part))).not.toThrow();
    const $defs: Record<string, object> = { l0: { type: "string" } };
    for (let level = 1; level <= 26; level++) $defs[`l${level}`] = twice({ $ref: `#/$defs/l${level - 1}` });
    expect(() => load({ type: "object", properties: { a: { $ref: "#/$defs/l26" } }, $defs })).toThrow(
      /invalid_tool.+alternatives/,
    );
  });

  const numbers = Array.from({ length: 40_000 }, (_, index) => index);
  test.each<readonly [what: string, list: object, value: unknown]>([
    ["distinct objects in a large list", { uniqueItems: true }, numbers.map((id) => ({ id }))],
    [
      "items in a long enumeration",
      { items: { enum: numbers.map((id) => ({ id })) } },
      numbers.map((id) => ({ id: -id })),
    ],
    ["items with many alternatives", { items: { anyOf: numbers.slice(0, 900).map((id) => ({ const: id })) } }, numbers],
    ["names with many patterns", {}, Object.fromEntries(numbers.map((id) => [`z${id}`, id]))],
  ])("a check of %s ends at once with an issue [FX64]", (what, list, value) => {
    const many = Object.fromEntries(numbers.slice(0, 200).map((id) => [`^k${id}$`, { type: "string" }]));
    const part = what.startsWith("names") ? { patternProperties: many } : { type: "array", ...list };
    const validate = load({ type: "object", properties: { a: part } });
    expect(validate({ a: value })).toEqual([
      { path: "", message: expect.stringMatching(/^cannot be checked within \d+ steps$/) },
    ]);
  });

  test("lists of usual size and large lists of scalars are checked completely [FX64]", () => {
    const items = { type: "object", properties: { id: { enum: numbers.slice(0, 300) } } };
    const validate = load({
      type: "object",
      properties: {
        rows: { type: "array", uniqueItems: true, items },
        texts: { type: "array", uniqueItems: true, items: { type: "string", pattern: "^t" } },
      },
    });
    const rows = numbers.slice(0, 300).map((id) => ({ id }));
    expect(validate({ rows, texts: numbers.map((id) => `t${id}`) })).toEqual([]);
    expect(validate({ rows: [...rows, { id: 1 }], texts: ["x"] })).toHaveLength(2);
  });

  test("a schema of more than 5,000 schemas is refused, and a reference counts [FX64]", () => {
    const refs = (count: number) =>
      Object.fromEntries(numbers.slice(0, count).map((id) => [`p${id}`, { $ref: "#/$defs/d" }]));
    const properties = (count: number) => ({
      type: "object",
      properties: refs(count),
      $defs: { d: { type: "string" } },
    });
    expect(() => load(properties(5_000))).toThrow(/invalid_tool.+has more than 5000 schemas/);
    expect(load(properties(100))({ p1: 1 })).toHaveLength(1);
  });

  test("a schema that is too large or too deep is refused [FX64]", () => {
    const description = "x".repeat(5 * 2 ** 20);
    expect(() => load({ type: "object", description })).toThrow(/invalid_tool.+characters/);
    let deep: object = {};
    for (let level = 0; level < 600; level++) deep = { items: deep };
    expect(() => load({ type: "object", properties: { a: deep } })).toThrow(/invalid_tool.+nested deeper/);
  });
});

test.each(["(a|b|ab){1,300}[xyz]", "([a-z]{0,30}){0,30}[0-9]", "(?i)(a|b).{0,900}[0-9]"])(
  "the pattern %s of a schema is not matched against a long text beyond its steps [FX64]",
  (pattern) => {
    const { validate } = jsonSchema({ type: "object", properties: { a: { type: "string", pattern } } });
    const message = "patterns cannot be matched within 10000000 steps";
    expect(validate({ a: "ab".repeat(100_000) })).toEqual([{ path: "", message }]);
    expect(validate({ a: "ab" })).toEqual([expect.objectContaining({ path: "a" })]);
    expect(validate({ a: `abab${"x1".repeat(20)}` })).toEqual([]);
  },
);

test("patterns of a schema that compile to more than 200,000 instructions are refused [FX64]", () => {
  const patterns = Array.from({ length: 400 }, (_, index) => [`p${index}`, { pattern: `([a-z]{0,30}){0,30}${index}` }]);
  const load = (count: number) =>
    jsonSchema({ type: "object", properties: Object.fromEntries(patterns.slice(0, count)) });
  expect(() => load(400)).toThrow(/invalid_tool.+its patterns have more than 200000 instructions/);
  expect(load(20).validate({ p1: "a1" })).toEqual([]);
});

test("a long text is matched by a short pattern [FX64]", () => {
  const schema = { type: "object", properties: { a: { type: "string", pattern: "^[A-Za-z0-9+/]*$" } } };
  expect(jsonSchema(schema).validate({ a: "ab".repeat(500_000) })).toEqual([]);
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
