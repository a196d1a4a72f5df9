import { describe, expect, test } from "vitest";
import { jsonSchemaInput, toModelTool } from "../../src/adapter.ts";
import { defineTool, isStatewrightError } from "../../src/index.ts";
import { call, getAnswerText, listToolAnswers, runToolLoop } from "../support/tool-loop.ts";

function listIssues(schema: object, value: unknown): readonly string[] {
  return jsonSchemaInput(schema)
    .validate(value)
    .map(({ path, message }) => `${path}: ${message}`);
}

function refusal(schema: unknown): string {
  try {
    jsonSchemaInput(schema as object);
  } catch (error) {
    if (isStatewrightError(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "taken";
}

const weather = {
  type: "object",
  properties: {
    city: { type: "string", description: "City name" },
    units: { type: "string", description: "Temperature units", enum: ["celsius", "fahrenheit"] },
    count: { type: "integer", description: "How many days, 3 when left out" },
  },
  required: ["city"],
};

test("an argument outside the required list is optional, and the JSON Schema is sent as given [S3.4]", async () => {
  const given: unknown[] = [];
  const tool = defineTool({
    name: "weather",
    description: "Weather.",
    input: jsonSchemaInput<{ readonly city: string }>(weather),
    run: (args) => void given.push(args.city, args),
  });
  const done = await runToolLoop({ tools: [tool], turns: [[call("weather", { city: "Oslo" })], ["ok"]] });
  expect(done.requests[0]?.tools[0]?.inputSchema).toEqual(weather);
  expect(given).toEqual(["Oslo", { city: "Oslo" }]);
});

test("each of the six JSON Schema types accepts its values and refuses others, with and without a description [S3.5]", () => {
  const examples = {
    string: ["x", 1],
    number: [1.5, "1"],
    integer: [2, 1.5],
    boolean: [false, "false"],
    array: [[1, "x"], { length: 0 }],
    object: [{ any: 1 }, []],
  } as const;
  for (const [type, [good, bad]] of Object.entries(examples))
    for (const described of [{}, { description: "A part" }]) {
      const schema = { type: "object", properties: { part: { type, ...described } } };
      expect([type, listIssues(schema, { part: good })]).toEqual([type, []]);
      for (const wrong of [bad, null])
        expect([type, listIssues(schema, { part: wrong })]).toEqual([type, [`part: expected ${type}`]]);
      expect(
        toModelTool(defineTool({ name: "a", description: "A.", input: jsonSchemaInput(schema), run: () => "x" }).spec)
          .inputSchema,
      ).toEqual(schema);
    }
});

test("a JSON Schema enum is enforced for values of any type [S3.6]", () => {
  expect(listIssues(weather, { city: "Oslo", units: "kelvin" })).toEqual([
    'units: expected one of "celsius", "fahrenheit"',
  ]);
  const numbers = { type: "object", properties: { n: { enum: [1, 2, null, { a: 1 }] } } };
  for (const n of [1, 2, null, { a: 1 }]) expect(listIssues(numbers, { n })).toEqual([]);
  for (const n of [3, "1", { a: 2 }, undefined]) expect(listIssues(numbers, { n })).toHaveLength(1);
});

test("a JSON Schema that cannot be enforced is refused at definition with path and keyword [S3.7]", () => {
  const wrong: readonly (readonly [unknown, string])[] = [
    [{ type: "object", properties: { a: { type: "text" } } }, 'is "text", not a type'],
    [{ type: "object", properties: { a: { typ: "string" } } }, 'has the unknown keyword "typ"'],
    [{ type: "object", properties: { a: 7 } }, 'at "/properties/a", is 7, not a schema'],
    [{ type: "object", required: "city" }, 'is "city", not a list'],
    [{ type: "object", required: [1] }, "must contain only strings"],
    [{ type: "object", properties: { a: { enum: [] } } }, "allows nothing"],
    [{ type: "object", properties: { a: { enum: "x" } } }, "not a list"],
    [{ type: "object", properties: { a: { pattern: "(" } } }, "not a valid pattern"],
    [{ type: "object", properties: { a: { minimum: "1" } } }, "not a number"],
    [{ type: "object", properties: { a: { $ref: "#/$defs/none" } } }, "which does not exist in the schema"],
    [{ type: "object", properties: { a: { $ref: "https://example.org/a" } } }, "which does not exist in the schema"],
    [{ type: "object", if: {} }, 'has the unknown keyword "if"'],
    [{ type: "object", properties: { a: { type: "string", nullable: true } } }, 'has the unknown keyword "nullable"'],
    [{ type: "object", unevaluatedProperties: false }, 'has the unknown keyword "unevaluatedProperties"'],
    [{ type: "object", dependentRequired: {} }, 'has the unknown keyword "dependentRequired"'],
    ["object", 'is "object", not an object'],
    [[], "not an object"],
  ];
  for (const [schema, why] of wrong) {
    expect(refusal(schema)).toMatch(/^invalid_tool /);
    expect(refusal(schema)).toContain(why);
  }
  const cyclic: Record<string, unknown> = { type: "object" };
  cyclic["self"] = cyclic;
  expect(refusal(cyclic)).toContain("not plain JSON");
  const own = jsonSchemaInput({ type: "object", if: {} }, { validator: () => () => [{ path: "a", message: "no" }] });
  expect(own.validate({})).toEqual([{ path: "a", message: "no" }]);
});

test("a default mentioned only in a description is not filled in, and the schema is sent unchanged [S3.53]", async () => {
  const given: unknown[] = [];
  const input = jsonSchemaInput<{ readonly city: string; readonly count?: number }>(weather);
  const tool = defineTool({ name: "weather", description: "W.", input, run: ({ count }) => void given.push(count) });
  await runToolLoop({ tools: [tool], turns: [[call("weather", { city: "Oslo" })], ["ok"]] });
  expect(given).toEqual([undefined]);
  expect(input.jsonSchema).toEqual(weather);
});

describe("JSON Schema checks", () => {
  const part = (schema: object) => ({ type: "object", properties: { a: schema } });

  test("JSON Schema sizes, bounds, patterns, lists and constants are checked", () => {
    const cases: readonly (readonly [object, readonly unknown[], readonly unknown[]])[] = [
      [{ minLength: 2, maxLength: 3 }, ["ab", "😀😀", 1], ["a", "abcd", "😀"]],
      [{ pattern: "^a+$" }, ["aa", 1], ["b", ""]],
      [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, "x"], [0, 3]],
      [{ maximum: 1, exclusiveMinimum: -1 }, [1, 0], [2, -1]],
      [{ multipleOf: 0.1 }, [0.3, 1], [0.35]],
      [{ items: { type: "string" }, minItems: 1, maxItems: 2 }, [["x"]], [[], ["x", 1], ["x", "y", "z"]]],
      [{ prefixItems: [{ type: "string" }], items: { type: "number" } }, [["x", 1], []], [[1], ["x", "y"]]],
      [{ items: [{ type: "string" }], additionalItems: false }, [["x"]], [[1], ["x", "y"]]],
      [
        { uniqueItems: true },
        [[1, "1", { a: 1 }, { a: 2 }]],
        [
          [1, 1],
          [{ a: 1 }, { a: 1 }],
        ],
      ],
      [{ const: { a: [1] } }, [{ a: [1] }], [{ a: [2] }, null]],
      [{ type: ["string", "null"] }, ["x", null], [1, undefined]],
      [{ minProperties: 1, maxProperties: 1 }, [{ x: 1 }, 5], [{}, { x: 1, y: 2 }]],
      [
        { properties: { x: { type: "string" } }, additionalProperties: { type: "number" } },
        [{ x: "1", y: 1 }],
        [{ y: "1" }, { x: 1 }],
      ],
      [
        { patternProperties: { "^x": { type: "number" } }, additionalProperties: false },
        [{ x1: 1 }],
        [{ x1: "1" }, { y: 1 }],
      ],
      [{ propertyNames: { pattern: "^[a-z]$" } }, [{ a: 1 }], [{ A: 1 }]],
      [{ anyOf: [{ type: "string" }, { type: "number" }] }, ["x", 1], [true]],
      [{ oneOf: [{ type: "number" }, { type: "integer" }] }, [1.5], [1, "x"]],
      [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
      [{ not: { type: "string" } }, [1], ["x"]],
    ];
    for (const [schema, good, bad] of cases) {
      for (const a of good) expect([schema, a, listIssues(part(schema), { a })]).toEqual([schema, a, []]);
      for (const a of bad) expect([schema, a, listIssues(part(schema), { a }).length]).not.toEqual([schema, a, 0]);
    }
  });

  test("JSON Schema references, including recursive ones, are checked, and deeply nested arguments are handled", () => {
    const tree = {
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: {
        node: {
          type: "object",
          properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
          required: ["name"],
        },
      },
    };
    expect(listIssues(tree, { tree: { name: "a", children: [{ name: "b", children: [] }] } })).toEqual([]);
    expect(listIssues(tree, { tree: { name: "a", children: [{ children: [] }] } })).toEqual([
      "tree.children.0.name: is missing, expected string",
    ]);
    let deep: unknown = { name: "x" };
    for (let level = 0; level < 5_000; level++) deep = { name: "x", children: [deep] };
    expect(listIssues(tree, { tree: deep }).join()).toContain("is nested too deeply");
  });

  test("hostile keys are checked like other keys, and of many JSON Schema issues a few are reported without values", () => {
    const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };
    for (const key of ["__proto__", "constructor", "toString"])
      expect(listIssues(closed, JSON.parse(`{${JSON.stringify(key)}: 1}`))).toEqual([`${key}: unknown argument`]);
    const many = listIssues(part({ items: { type: "string" } }), { a: Array.from({ length: 1_000 }, () => 7_654_321) });
    expect(many.length).toBeLessThanOrEqual(20);
    expect(many.join()).not.toContain("7654321");
  });
});

test("a JSON Schema tool decides about additional arguments by its own schema", async () => {
  const seen: unknown[] = [];
  const open = jsonSchemaInput({ type: "object", properties: { a: { type: "string" } } });
  const closed = jsonSchemaInput({
    type: "object",
    properties: { a: { type: "string" } },
    additionalProperties: false,
  });
  const take = (name: string, input: typeof open) =>
    defineTool({ name, description: "Takes.", input, run: (args) => void seen.push(args) });
  const turns = [[call("open", { a: "x", b: 1 }), call("closed", { a: "x", b: 1 })], ["ok"]];
  const done = await runToolLoop({ tools: [take("open", open), take("closed", closed)], turns });
  expect(seen).toEqual([{ a: "x", b: 1 }]);
  expect(getAnswerText(listToolAnswers(done)[1])).toContain("b: unknown argument");
});

test("a tool definition is a name, a description and parameters, sent to the model unchanged [S3.2]", async () => {
  const tool = defineTool({
    name: "weather",
    description: "The weather — °C.",
    input: jsonSchemaInput(weather),
    run: () => "x",
  });
  const done = await runToolLoop({ tools: [tool], turns: [["hello"]] });
  expect(done.requests[0]?.tools).toEqual([
    { name: "weather", description: "The weather — °C.", inputSchema: weather },
  ]);
});
