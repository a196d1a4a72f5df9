import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toModelTool } from "../../src/adapter.ts";
import { defineTool, isStatewrightError, type Tool, type ToolSpec, toolNode, toolRegistry } from "../../src/index.ts";
import { call, runToolLoop } from "../support/tool-loop.ts";

function named(name: string, description = "Does it."): Tool {
  return defineTool({ name, description, input: z.object({}), run: () => description });
}

/** Creates a tool without defineTool, like another package. */
function foreign(name: string, jsonSchema: ToolSpec["input"] | object = { type: "object" }): Tool {
  const { spec } = named("base");
  const input = "~standard" in jsonSchema ? jsonSchema : { jsonSchema: jsonSchema as never, validate: () => [] };
  return { spec: { ...spec, name, input: input as ToolSpec["input"] }, call: () => "x" };
}

function refusal(work: () => unknown): { readonly code: string; readonly message: string } | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return isStatewrightError(error)
      ? { code: error.code, message: error.message }
      : { code: "other", message: String(error) };
  }
}

test("a second tool of one name is refused, and a request has exactly the registered names [S0.1, S2.1, S1.32]", async () => {
  expect(refusal(() => toolRegistry([named("a"), named("a")]))).toMatchObject({
    code: "invalid_tool",
    message: expect.stringContaining('two tools are named "a"'),
  });
  expect(refusal(() => toolRegistry([named("a")]).register(named("a")))?.code).toBe("invalid_tool");
  expect(refusal(() => toolNode({ tools: [named("a"), named("a")] }))?.code).toBe("invalid_tool");
  const done = await runToolLoop({ tools: [named("get_weather")], turns: [[call("get_weather")], ["ok"]] });
  expect(done.requests[0]?.tools.map(({ name }) => name)).toEqual(["get_weather"]);
});

test("a registered tool is found by its exact name only [S1.1]", () => {
  const tool = named("get_weather");
  const registry = toolRegistry().register(tool);
  expect(registry.get("get_weather")).toBe(tool);
  for (const name of ["get_Weather", "__proto__", "constructor", "toString", ""])
    expect(registry.get(name)).toBeUndefined();
});

test("empty names, spaces, names over 64 characters and characters unsafe for providers are refused with the rule [S1.31, S1.33, S1.34, S1.35]", () => {
  const refused = ["", " ", "a b", " a", "a\n", "a".repeat(65), "a.b", "a/b", "a:b", "météo", "1a", "a{", 'a"b'];
  for (const name of refused) {
    for (const register of [
      () => named(name),
      () => toolRegistry([foreign(name)]),
      () => toolRegistry().replace(foreign(name)),
    ]) {
      const error = refusal(register);
      expect([name, error?.code]).toEqual([name, "invalid_tool"]);
      expect(error?.message).toContain(JSON.stringify(name));
      expect(error?.message).toContain(
        "Use a letter or an underscore, then up to 63 letters, digits, underscores and hyphens",
      );
    }
  }
  for (const name of ["a", "get_weather", "a1_", "a".repeat(64)])
    expect(toolRegistry([named(name)]).names()).toEqual([name]);
});

test("tool names and model tools are sorted, whatever the order of registration", () => {
  const names = ["zeta", "alpha", "mid_2", "mid_10", "mid"];
  const sorted = [...names].sort();
  const registry = toolRegistry(names.map((name) => named(name)));
  const other = toolRegistry(names.toReversed().map((name) => named(name)));
  expect(registry.names()).toEqual(sorted);
  expect(JSON.stringify(registry.forModel())).toBe(JSON.stringify(other.forModel()));
});

test("registry.replace replaces a tool, registry.unregister removes it, and two registries are separate", () => {
  const one = toolRegistry([named("a", "old")]);
  const two = toolRegistry([named("a", "old")]);
  one.replace(named("a", "new"));
  expect([one.get("a")?.spec.description, two.get("a")?.spec.description]).toEqual(["new", "old"]);
  expect([one.unregister("a"), one.unregister("a"), one.names(), two.names()]).toEqual([true, false, [], ["a"]]);
});

test("an input schema that cannot be shown to a model is refused at registration", () => {
  for (const schema of [{ type: "string" }, { type: "array" }, {}, { anyOf: [] }])
    expect([schema, refusal(() => toolRegistry([foreign("a", schema)]))?.code]).toEqual([schema, "invalid_tool"]);
  const inputs = [
    z.string(),
    z.array(z.string()),
    z.object({ at: z.date() }),
    z.object({ f: z.function() }),
    z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
    z.discriminatedUnion("k", [z.object({ k: z.literal("a") }), z.object({ k: z.literal("b") })]),
  ];
  for (const input of inputs)
    expect([
      input.type,
      refusal(() => defineTool({ name: "a", description: "A.", input: input as never, run: () => "x" }))?.code,
    ]).toEqual([input.type, "invalid_tool"]);
});

describe("tool definition sent to the model", () => {
  test("the model gets name, description and schema of a tool as declared, and nothing else [S1.3, S0.3, S2.3, S0.4, S2.4]", async () => {
    const description = 'Weather: "now" — °C, ünï\ncode';
    const tool = defineTool({
      name: "weather",
      label: "Weather",
      description,
      input: z.object({
        city: z.string().describe("City name"),
        days: z.int().min(1).optional(),
        units: z.enum(["c", "f"]).default("c"),
      }),
      output: z.object({ n: z.number() }),
      effect: "pure",
      timeoutMs: 5,
      run: () => "x",
    });
    const wanted = {
      name: "weather",
      description,
      inputSchema: {
        type: "object",
        properties: {
          city: { type: "string", description: "City name" },
          days: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
          units: { type: "string", enum: ["c", "f"], default: "c" },
        },
        required: ["city"],
      },
    };
    expect(toolRegistry([tool]).forModel()).toEqual([wanted]);
    const done = await runToolLoop({ tools: [tool], turns: [["hello"]] });
    expect(JSON.parse(done.wires[0] ?? "").tools).toEqual([wanted]);
  });

  test("a JSON Schema is sent to the model unchanged and read by the validator of its tool", async () => {
    const jsonSchema = {
      $schema: "x",
      type: "object",
      properties: { a: { type: "string", nullable: true } },
      additionalProperties: { type: "number" },
      if: { a: 1 },
    } as const;
    const given: unknown[] = [];
    const tool: Tool = {
      spec: {
        ...named("foreign").spec,
        input: {
          jsonSchema,
          validate: (value) => ("bad" in (value as object) ? [{ path: "bad", message: "is bad" }] : []),
        },
      },
      call: (_state, _runtime, made) => void given.push(made.args),
    };
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("foreign", { a: "x", more: 1 }, "a"), call("foreign", { bad: 1 }, "b")], ["ok"]],
    });
    expect(done.requests[0]?.tools[0]?.inputSchema).toEqual(jsonSchema);
    expect(given).toEqual([{ a: "x", more: 1 }]);
    expect(done.wires[1]).toContain("bad: is bad");
    expect(toModelTool(tool.spec).inputSchema).toEqual(jsonSchema);
  });
});
