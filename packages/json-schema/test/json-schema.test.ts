import { expect, test } from "vitest";
import { ajvValidator, jsonSchema } from "../src/index.ts";

const issues = (schema: object, value: unknown) => jsonSchema(schema).validate(value);

test("the six JSON types and enums of any type are validated, with and without a description [S3.5, S3.6]", () => {
  const good: readonly (readonly [string, unknown])[] = [
    ["string", "x"],
    ["number", 1.5],
    ["integer", 2],
    ["boolean", true],
    ["array", []],
    ["object", {}],
  ];
  const wrong: Readonly<Record<string, unknown>> = {
    string: 1,
    number: "1",
    integer: 1.5,
    boolean: "true",
    array: {},
    object: [],
  };
  for (const [type, value] of good) {
    for (const extra of [{}, { description: "A part." }]) {
      const schema = { type: "object", properties: { part: { type, ...extra } } };
      expect(issues(schema, { part: value })).toEqual([]);
      expect(issues(schema, { part: wrong[type] })).toEqual([{ path: "part", message: expect.stringContaining(type) }]);
    }
  }
  const units = { type: "object", properties: { units: { enum: ["celsius", "fahrenheit"] }, n: { enum: [1, 2] } } };
  expect(issues(units, { units: "celsius", n: 2 })).toEqual([]);
  expect(issues(units, { units: "kelvin" })).toEqual([
    { path: "units", message: 'expected one of ["celsius","fahrenheit"]' },
  ]);
  expect(issues(units, { n: 3 })).toHaveLength(1);
});

test("an invalid JSON Schema fails at creation [S3.7]", () => {
  expect(() => ajvValidator({ type: "objekt" })).toThrow(/invalid_tool/);
  expect(() => ajvValidator({ type: "object", properties: { a: { $ref: "https://example.com/a.json" } } })).toThrow(
    /invalid_tool/,
  );
  expect(() => ajvValidator({ $schema: "http://json-schema.org/draft-04/schema#", type: "object" })).toThrow(
    /unknown JSON Schema dialect "http:\/\/json-schema\.org\/draft-04\/schema#"/,
  );
});

test("an async JSON Schema is refused, at the top level and inside", () => {
  const later = { $async: true, type: "object", properties: { n: { type: "number" } } };
  for (const schema of [later, { type: "object", properties: { at: later } }, { $schema: "draft-07", ...later }])
    expect(() => jsonSchema(schema)).toThrow("invalid_tool: JSON Schema does not compile");
});

test("patterns of foreign schemas match in linear time, and the schema stays unchanged [R8, D26]", () => {
  const schema = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } };
  const input = jsonSchema(schema);
  expect(input.jsonSchema).toEqual(schema);
  expect(input.validate({ a: `${"a".repeat(50_000)}!` })).toHaveLength(1);
  expect(input.validate({ a: "aaa" })).toEqual([]);
  expect(() => jsonSchema({ type: "object", properties: { a: { pattern: "(?=a)b" } } })).toThrow(/look-around/);
});

test("a validation error names missing and unknown properties by path and quotes no value", () => {
  const schema = {
    type: "object",
    properties: {
      deep: {
        type: "object",
        properties: { "a/b": { type: "string" } },
        required: ["a/b"],
        additionalProperties: false,
      },
    },
  };
  expect(issues(schema, { deep: { key: "s3cret" } })).toEqual(
    expect.arrayContaining([
      { path: "deep.a/b", message: "is missing" },
      { path: "deep.key", message: "unknown argument" },
    ]),
  );
  expect(JSON.stringify(issues(schema, { deep: { "a/b": 7 } }))).not.toContain("7");
});

test("JSON Schema keywords that simple validators skip are applied", () => {
  const conditional = JSON.parse('{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}');
  expect(issues(conditional, { a: 1 })).toHaveLength(2);
  expect(issues({ type: "object", dependentRequired: { a: ["b"] } }, { a: 1 })).toHaveLength(1);
  expect(
    issues({ type: "object", properties: { a: true }, unevaluatedProperties: false }, { a: 1, b: 2 }),
  ).toHaveLength(1);
  expect(issues({ type: "object", not: { required: ["a"] } }, { a: 1 })).toHaveLength(1);
});
