import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toModelTool } from "../../src/adapter.ts";
import { defineTool, isStatewrightError } from "../../src/index.ts";
import { parseArgs } from "../../src/tool/arguments/parse-args.ts";
import { call, getAnswerText, listEvents, listToolAnswers, runToolLoop } from "../support/tool-loop.ts";

function createSpec(input: z.ZodType) {
  return defineTool({ name: "act", description: "Act.", input: input as z.ZodObject, run: () => "x" }).spec;
}

function listIssues(input: z.ZodType, args: unknown): readonly string[] {
  const parsed = parseArgs(createSpec(input), args);
  return parsed.ok ? [] : parsed.issues.map(({ path, message }) => `${path}: ${message}`);
}

describe("unknown argument keys at every depth", () => {
  test("unknown argument keys are refused with their path at any depth, in every schema type where zod drops them [D26]", () => {
    const inner = z.object({ a: z.string() });
    const shapes: Readonly<Record<string, readonly [z.ZodType, unknown, string]>> = {
      object: [z.object({ at: inner }), { at: { a: "x", b: 1 } }, "at.b"],
      optional: [z.object({ at: inner.optional() }), { at: { a: "x", b: 1 } }, "at.b"],
      nullable: [z.object({ at: inner.nullable() }), { at: { a: "x", b: 1 } }, "at.b"],
      default: [z.object({ at: inner.default({ a: "d" }) }), { at: { a: "x", b: 1 } }, "at.b"],
      list: [z.object({ at: z.array(inner) }), { at: [{ a: "x" }, { a: "x", b: 1 }] }, "at.1.b"],
      tuple: [z.object({ at: z.tuple([z.string(), inner]) }), { at: ["x", { a: "x", b: 1 }] }, "at.1.b"],
      record: [z.object({ at: z.record(z.string(), inner) }), { at: { k: { a: "x", b: 1 } } }, "at.k.b"],
      union: [z.object({ at: z.union([z.string(), inner]) }), { at: { a: "x", b: 1 } }, "at.b"],
      discriminated: [
        z.object({
          at: z.discriminatedUnion("k", [
            z.object({ k: z.literal("a"), a: z.string() }),
            z.object({ k: z.literal("b"), b: z.string() }),
          ]),
        }),
        { at: { k: "b", b: "x", a: "y" } },
        "at.a",
      ],
      intersection: [
        z.object({ at: z.intersection(inner, z.object({ c: z.number() })) }),
        { at: { a: "x", c: 1, b: 1 } },
        "at.b",
      ],
    };
    for (const [name, [input, args, path]] of Object.entries(shapes))
      expect([name, listIssues(input, args)]).toEqual([name, [`${path}: unknown argument`]]);
    const node = z.object({
      a: z.string(),
      get next() {
        return node.optional();
      },
    });
    expect(listIssues(z.object({ at: node }), { at: { a: "x", next: { a: "y", next: { a: "z", b: 1 } } } })).toEqual([
      "at.next.next.b: unknown argument",
    ]);
  });

  test("a call with a missing, a wrong and an unknown argument names all three [FX43]", () => {
    const input = z.object({ city: z.string(), days: z.int() });
    const issues = listIssues(input, { town: "Oslo", days: "2" });
    expect(issues).toHaveLength(3);
    expect(issues[0]).toBe("town: unknown argument");
    expect(issues.slice(1).join()).toMatch(/city: .*expected string.*days: .*expected (?:int|number)/);
    expect(listIssues(z.strictObject({ city: z.string() }), { town: "Oslo" })).toHaveLength(2);
  });

  test("unknown argument keys pass under an open schema, and closed schemas below stay closed [D26]", () => {
    const open = z.object({ at: z.looseObject({ inner: z.object({ a: z.string() }) }) });
    expect(listIssues(open, { at: { inner: { a: "x" }, more: { b: 1 } } })).toEqual([]);
    expect(listIssues(open, { at: { inner: { a: "x", b: 1 }, more: 1 } })).toEqual(["at.inner.b: unknown argument"]);
    const catching = z.object({ at: z.object({ a: z.string() }).catchall(z.object({ n: z.number() })) });
    expect(listIssues(catching, { at: { a: "x", more: { n: 1 } } })).toEqual([]);
    expect(listIssues(catching, { at: { a: "x", more: { n: 1, m: 2 } } })).toEqual(["at.more.m: unknown argument"]);
    for (const loose of [z.any(), z.unknown(), z.record(z.string(), z.unknown()), z.json()])
      expect(listIssues(z.object({ at: loose }), { at: { b: { c: [1, { d: 1 }] } } })).toEqual([]);
  });

  test("unknown argument keys in a union are judged by the first matching alternative, as in zod", () => {
    const input = z.object({ at: z.union([z.object({ a: z.string(), b: z.number() }), z.object({ a: z.string() })]) });
    expect(listIssues(input, { at: { a: "x", b: 1 } })).toEqual([]);
    expect(listIssues(input, { at: { a: "x" } })).toEqual([]);
    expect(listIssues(input, { at: { a: "x", c: 1 } })).toEqual(["at.c: unknown argument"]);
    expect(listIssues(input, { at: { c: 1 } }).join()).not.toContain("unknown argument");
  });

  test("an argument key known to another matching alternative of a union is dropped as in zod", () => {
    const a = z.object({ a: z.string() });
    const either = z.object({ at: z.union([a, z.object({ b: z.number() })]) });
    const wider = z.object({ at: z.union([a, a.extend({ b: z.object({ c: z.string() }) })]) });
    const taken: readonly (readonly [z.ZodObject, unknown])[] = [
      [either, { at: { a: "x", b: 1 } }],
      [wider, { at: { a: "x", b: { c: "y" } } }],
      [z.object({ at: z.object({ n: z.int() }).and(either.shape.at) }), { at: { n: 1, a: "x", b: 1 } }],
    ];
    for (const [input, args] of taken)
      expect(parseArgs(createSpec(input), args)).toEqual({ ok: true, value: input.parse(args) });
    // A key that no alternative allows is refused by its path.
    expect(listIssues(either, { at: { a: "x", b: 1, c: 1 } })).toEqual(["at.c: unknown argument"]);
    expect(listIssues(either, { at: { a: 1, b: 1 } })).toEqual(["at.a: unknown argument"]);
    expect(listIssues(wider, { at: { a: "x", b: { c: "y", d: 1 } } })).toEqual(["at.b.d: unknown argument"]);
  });

  test("the check of deep unions whose alternatives all match does not double with each level", () => {
    const left = z.object({
      a: z.string().optional(),
      get next() {
        return either.optional();
      },
    });
    const right = z.object({
      b: z.string().optional(),
      get next() {
        return either.optional();
      },
    });
    const either: z.ZodType = z.union([left, right]);
    let at: object = { c: 1 };
    for (let level = 0; level < 50; level++) at = { next: at };
    const path = `at.${"next.".repeat(50)}c`;
    expect(listIssues(z.object({ at: either }), { at })).toEqual([`${path}: unknown argument`]);
  });

  test("each value deep in a union is checked once per alternative and level, and not once per path", () => {
    const alternatives: z.ZodType[] = [];
    const each: z.ZodType = z.lazy(() => z.union(alternatives as [z.ZodType, z.ZodType]));
    for (const name of "abcdefgh")
      alternatives.push(z.object({ [name]: z.number().optional(), read: z.int().optional(), next: each.optional() }));
    let reads = 0;
    const deepest = Object.defineProperty({ other: 1 }, "read", { enumerable: true, get: () => reads++ });
    let at: object = deepest;
    for (let level = 0; level < 30; level++) at = { next: at };
    expect(listIssues(z.object({ at: each }), { at })).toEqual([`at.${"next.".repeat(30)}other: unknown argument`]);
    expect(reads).toBeLessThan(8 * 30 * 10);
  });

  test("the check of many unknown argument keys and of partly matching unions is bounded", () => {
    const input = z.object({ at: z.union([z.object({ a: z.int() }), z.object({ b: z.int() })]) });
    const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, nth) => [`k${nth}`, nth]));
    expect(listIssues(input, { at: { a: 1, b: 2, ...many } })[0]).toBe("at.k0: unknown argument");
    let all: z.ZodType = z.union([z.object({ x: z.int() }), z.object({ y: z.int() })]);
    for (let nth = 0; nth < 30; nth++)
      all = z.union([z.object({ a: z.int().optional() }), z.object({ b: z.int().optional() })]).and(all);
    expect(listIssues(z.object({ at: all }), { at: {} }).join()).not.toContain("unknown argument");
    expect(listIssues(z.object({ at: all }), { at: { x: 1, c: 1 } })).toEqual(["at.c: unknown argument"]);
  });

  test("hostile argument names are handled like other names", () => {
    const polluted = JSON.parse('{"at":{"a":"x","__proto__":{"polluted":1}}}') as unknown;
    expect(listIssues(z.object({ at: z.object({ a: z.string() }) }), polluted)).toHaveLength(1);
    for (const key of ["hasOwnProperty", "toString"]) {
      const args = JSON.parse(`{"at":{"a":"x",${JSON.stringify(key)}:{"polluted":1}}}`) as unknown;
      expect(listIssues(z.object({ at: z.object({ a: z.string() }) }), args)).toEqual([`at.${key}: unknown argument`]);
    }
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });

  test("a tool call with an unknown argument key is answered with its path and does not run [D26]", async () => {
    let ran = 0;
    const input = z.object({ filter: z.object({ from: z.string() }) });
    const tool = defineTool({ name: "find", description: "Find.", input, run: () => void ran++ });
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("find", { filter: { from: "x", until: "y" } })], ["ok"]],
    });
    expect([ran, getAnswerText(listToolAnswers(done)[0])]).toEqual([
      0,
      'The arguments of "find" are invalid: filter.until: unknown argument.',
    ]);
    expect(listEvents(done, "tool.rejected").map(({ reason }) => reason)).toEqual(["invalid_args"]);
  });
});

describe("schema edge cases [T16]", () => {
  test("defaults are not required, dates and top-level unions are refused, transforms show their input, and null is no number [T16]", () => {
    const getInputSchema = (input: z.ZodType) => toModelTool(createSpec(input)).inputSchema;
    expect(getInputSchema(z.object({ a: z.string().default("d"), b: z.string() }))["required"]).toEqual(["b"]);
    expect(getInputSchema(z.object({ n: z.string().transform(Number) }))["properties"]).toEqual({
      n: { type: "string" },
    });
    expect(parseArgs(createSpec(z.object({ n: z.string().transform(Number) })), { n: "7" })).toEqual({
      ok: true,
      value: { n: 7 },
    });
    const coerced = z.object({ n: z.coerce.number(), s: z.coerce.string().optional() });
    expect(getInputSchema(coerced)["properties"]).toMatchObject({ n: { type: "number" } });
    expect(listIssues(coerced, { n: null })).toEqual(["n: expected number, received null"]);
    expect(listIssues(coerced, { n: 1, s: null })).toEqual(["s: expected string, received null"]);
    expect(listIssues(z.object({ n: z.number().nullable() }), { n: null })).toEqual([]);
    const top = z.discriminatedUnion("k", [z.object({ k: z.literal("a") }), z.object({ k: z.literal("b") })]);
    for (const input of [z.object({ at: z.date() }), z.object({ at: z.coerce.date() }), top, z.string()]) {
      let code: unknown;
      try {
        createSpec(input);
      } catch (error) {
        code = isStatewrightError(error) ? error.code : error;
      }
      expect(code).toBe("invalid_tool");
    }
  });
});

test("a union of literals is sent to the model as an enum at every depth, and the schema around it is unchanged", () => {
  const units = z
    .union([z.literal("celsius"), z.literal("fahrenheit")])
    .describe("Units")
    .optional();
  const input = z.object({
    units,
    many: z.array(z.union([z.literal(1), z.literal(2)])),
    mixed: z.union([z.literal("auto"), z.literal(5)]).default("auto"),
    other: z.union([z.literal("auto"), z.number()]),
    property: z.object({ anyOf: z.string(), enum: z.string() }),
  });
  expect(toModelTool(createSpec(input)).inputSchema["properties"]).toEqual({
    units: { type: "string", enum: ["celsius", "fahrenheit"], description: "Units" },
    many: { type: "array", items: { type: "number", enum: [1, 2] } },
    mixed: { enum: ["auto", 5], default: "auto" },
    other: { anyOf: [{ type: "string", const: "auto" }, { type: "number" }] },
    property: {
      type: "object",
      properties: { anyOf: { type: "string" }, enum: { type: "string" } },
      required: ["anyOf", "enum"],
    },
  });
  expect(parseArgs(createSpec(z.object({ units })), { units: "kelvin" }).ok).toBe(false);
});

test("the answer to invalid arguments has the message of the schema, the field and the type, and the tool does not run [D27]", async () => {
  let ran = 0;
  const stats = defineTool({
    name: "stats",
    description: "Statistics.",
    input: z.object({
      numbers: z
        .array(z.number(), { error: "numbers must be a non-empty array" })
        .min(1, { error: "numbers must be a non-empty array" }),
      city: z.string({ error: "missing city" }),
    }),
    run: () => void ran++,
  });
  const turns = [
    [call("stats", { numbers: [], city: "Oslo" }, "a"), call("stats", { numbers: "1,2" }, "b"), call("stats", {}, "c")],
    ["ok"],
  ];
  const done = await runToolLoop({ tools: [stats], turns });
  const said = listToolAnswers(done).map(getAnswerText);
  expect(ran).toBe(0);
  for (const text of said) expect(text).toContain("numbers: numbers must be a non-empty array (expected array)");
  for (const text of said.slice(1)) expect(text).toContain("city: missing city (expected string)");
});

test("an argument with a default is optional for the model and filled in, and a value of another type is refused [D28]", async () => {
  const seen: string[] = [];
  const deploy = defineTool({
    name: "deploy",
    description: "Deploy.",
    input: z.object({ env: z.string().default("staging").describe("Target environment") }),
    run: ({ env }) => void seen.push(env),
  });
  const turns = [
    [call("deploy", {}, "a"), call("deploy", { env: 3 }, "b"), call("deploy", { env: "prod" }, "c")],
    ["ok"],
  ];
  const done = await runToolLoop({ tools: [deploy], turns });
  expect(done.requests[0]?.tools[0]?.inputSchema["required"]).toBeUndefined();
  expect(seen).toEqual(["staging", "prod"]);
  expect(listEvents(done, "tool.failed").map(({ callId, result }) => [callId, result.error?.kind])).toEqual([
    ["b", "invalid_args"],
  ]);
});
