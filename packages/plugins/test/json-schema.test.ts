import { expect, test } from "vitest";
import { ajvValidator, jsonSchema } from "../src/index.ts";

const issues = (schema: object, value: unknown) => jsonSchema(schema).validate(value);

test("S3.5 S3.6 the six types and enums of any JSON type are checked, with and without a description", () => {
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

test("S3.7 a bad schema fails when it is made", () => {
  expect(() => ajvValidator({ type: "objekt" })).toThrow(/invalid_tool/);
  expect(() => ajvValidator({ type: "object", properties: { a: { $ref: "https://example.com/a.json" } } })).toThrow(
    /invalid_tool/,
  );
  expect(() => ajvValidator({ $schema: "http://json-schema.org/draft-04/schema#", type: "object" })).toThrow(
    /not known/,
  );
});

test("a schema that would answer with a promise is refused, at the top and in its parts", () => {
  const later = { $async: true, type: "object", properties: { n: { type: "number" } } };
  for (const schema of [later, { type: "object", properties: { at: later } }, { $schema: "draft-07", ...later }])
    expect(() => jsonSchema(schema)).toThrow("invalid_tool: a JSON Schema cannot be used");
});

test("R8 patterns of foreign schemas run in linear time, and the schema stays as it was", () => {
  const schema = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } };
  const input = jsonSchema(schema);
  expect(input.jsonSchema).toEqual(schema);
  expect(input.validate({ a: `${"a".repeat(50_000)}!` })).toHaveLength(1);
  expect(input.validate({ a: "aaa" })).toEqual([]);
  expect(() => jsonSchema({ type: "object", properties: { a: { pattern: "(?=a)b" } } })).toThrow(/look-around/);
});

test("what is missing or not known is named by its path, and no value is quoted", () => {
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

test("words that simple checkers skip are obeyed", () => {
  const conditional = JSON.parse('{"type":"object","if":{"required":["a"]},"then":{"required":["b"]}}');
  expect(issues(conditional, { a: 1 })).toHaveLength(2);
  expect(issues({ type: "object", dependentRequired: { a: ["b"] } }, { a: 1 })).toHaveLength(1);
  expect(
    issues({ type: "object", properties: { a: true }, unevaluatedProperties: false }, { a: 1, b: 2 }),
  ).toHaveLength(1);
  expect(issues({ type: "object", not: { required: ["a"] } }, { a: 1 })).toHaveLength(1);
});
