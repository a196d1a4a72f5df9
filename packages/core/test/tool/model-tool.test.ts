import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toJsonSchema, toModelTool } from "../../src/adapter.ts";
import { defineContext, defineTool } from "../../src/index.ts";
import { hasNoArguments, parseArgs } from "../../src/tool/arguments/parse-args.ts";

const Shop = defineContext({ customer: z.string() });

function createSpec(input: z.ZodObject | z.ZodType) {
  return defineTool({ name: "act", description: "Act.", input: input as z.ZodObject, run: () => "x" }).spec;
}

test("a refined object schema keeps its refinement, and its JSON Schema has no trace of injected values [T15]", () => {
  const input = z
    .object({ from: z.int(), to: z.int() })
    .refine(({ from, to }) => from < to, { message: "from must be below to" });
  const { spec } = defineTool({
    name: "act",
    description: "Act.",
    input,
    inject: { vaultCustomer: Shop.from((shop) => shop.customer) },
    run: ({ from, to }) => `${from}-${to}`,
  });
  const shown = toModelTool(spec).inputSchema;
  expect(Object.keys(shown["properties"] as object)).toEqual(["from", "to"]);
  expect(JSON.stringify(toModelTool(spec))).not.toMatch(/vault|inject|context/i);
  expect(parseArgs(spec, { from: 1, to: 2 })).toEqual({ ok: true, value: { from: 1, to: 2 } });
  expect(parseArgs(spec, { from: 2, to: 1 })).toEqual({
    ok: false,
    issues: [{ path: "", message: "from must be below to" }],
  });
});

describe("schemas in input mode", () => {
  test("arguments with a default or optional arguments are not required in the model schema, and a default is filled in", () => {
    const spec = createSpec(z.object({ a: z.string().default("d"), b: z.string().optional(), c: z.string() }));
    expect(toModelTool(spec).inputSchema["required"]).toEqual(["c"]);
    expect(parseArgs(spec, { c: "x" })).toEqual({ ok: true, value: { c: "x", a: "d" } });
  });

  test("a transform is shown to the model as its input type and gives the tool its output", () => {
    const spec = createSpec(z.object({ n: z.string().transform(Number) }));
    expect(toModelTool(spec).inputSchema["properties"]).toEqual({ n: { type: "string" } });
    expect(parseArgs(spec, { n: "7" })).toEqual({ ok: true, value: { n: 7 } });
  });

  test("the dialect keyword of JSON Schema is not sent to the model", () => {
    expect(toJsonSchema(z.object({ a: z.string() }))).not.toHaveProperty("$schema");
    expect(toModelTool(createSpec(z.object({ deep: z.object({ a: z.string() }) }))).inputSchema).not.toHaveProperty(
      "$schema",
    );
  });

  test("a recursive schema keeps its definitions", () => {
    const node: z.ZodType = z.object({
      name: z.string(),
      get children() {
        return z.array(node).optional();
      },
    });
    const schema = toModelTool(createSpec(z.object({ tree: node }))).inputSchema;
    expect(JSON.stringify(schema)).toContain("$ref");
  });
});

describe("unknown argument keys", () => {
  test("unknown argument keys are refused by name under a closed schema and passed under an open schema [D26]", () => {
    const closed = createSpec(z.object({ a: z.string() }));
    const strict = createSpec(z.strictObject({ a: z.string() }));
    const loose = createSpec(z.looseObject({ a: z.string() }));
    const typed = createSpec(z.object({ a: z.string() }).catchall(z.number()));
    for (const spec of [closed, strict])
      expect(parseArgs(spec, { a: "x", b: 1 })).toEqual({
        ok: false,
        issues: [{ path: "b", message: "unknown argument" }],
      });
    for (const spec of [loose, typed])
      expect(parseArgs(spec, { a: "x", b: 1 })).toEqual({ ok: true, value: { a: "x", b: 1 } });
    expect(parseArgs(typed, { a: "x", b: "1" }).ok).toBe(false);
  });

  test("unknown argument keys named like object properties are refused by name", () => {
    const spec = createSpec(z.object({ a: z.string() }));
    expect(parseArgs(spec, JSON.parse('{"a":"x","__proto__":1}')).ok).toBe(false);
    for (const key of ["toString", "hasOwnProperty"]) {
      const args = JSON.parse(`{"a":"x",${JSON.stringify(key)}:1}`) as unknown;
      expect(parseArgs(spec, args)).toEqual({ ok: false, issues: [{ path: key, message: "unknown argument" }] });
    }
  });
});

test("the arguments of a tool call must be an object", () => {
  const spec = createSpec(z.object({}));
  for (const value of [null, undefined, [], "x", 1, new Date(), new Map()])
    expect(parseArgs(spec, value).ok).toBe(false);
  expect(parseArgs(spec, Object.create(null)).ok).toBe(true);
});

test("a tool takes no arguments when its schema has no properties", () => {
  expect(hasNoArguments(createSpec(z.object({})))).toBe(true);
  expect(hasNoArguments(createSpec(z.object({ a: z.string().optional() })))).toBe(false);
});

test("a validator with Standard JSON Schema is shown to the model, and a validator without it is refused", () => {
  const said = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const standard = { version: 1, vendor: "ours", validate: (value: unknown) => ({ value }) } as const;
  const describing = { "~standard": { ...standard, jsonSchema: { input: () => ({ $schema: "x", ...said }) } } };
  expect(toJsonSchema(describing)).toEqual(said);
  expect(toModelTool(createSpec(describing as never)).inputSchema).toEqual(said);
  expect(toJsonSchema({ "~standard": standard })).toBeUndefined();
  expect(() => createSpec({ "~standard": standard } as never)).toThrow(/its input schema does not support JSON Schema/);
});

test("a tool with a Valibot schema is refused with the name of the wrapper that it needs [FX43]", () => {
  const valibot = {
    "~standard": { version: 1 as const, vendor: "valibot", validate: (value: unknown) => ({ value }) },
  };
  const create = () => defineTool({ name: "act", description: "Act.", input: valibot, run: () => "x" });
  expect(create).toThrow('input: toStandardJsonSchema(schema), from the package "@valibot/to-json-schema"');
});
