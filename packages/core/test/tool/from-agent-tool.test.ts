import { describe, expect, expectTypeOf, test } from "vitest";
import { type BarePiTool, fromPiTool, type PiTool, type PiToolResult } from "../../src/adapter.ts";
import { isStatewrightError, type ModelTool, toolRegistry } from "../../src/index.ts";
import { call, getAnswerText, listEvents, listResults, listToolAnswers, runToolLoop } from "../support/tool-loop.ts";

/** A schema with its static type, like TypeBox: marked by symbols, which JSON omits. */
const kind = Symbol("kind");
interface Typed<Args> {
  readonly static: Args;
  readonly [kind]: string;
}
function typed<Args>(schema: object): Typed<Args> {
  return Object.assign({ [kind]: "Object" }, schema) as Typed<Args>;
}

const search = typed<{ pattern: string; limit?: number }>({
  type: "object",
  required: ["pattern"],
  properties: {
    pattern: { type: "string", description: "What to look for", [kind]: "String" },
    limit: { type: "number", description: "At most so many" },
  },
});

interface Found {
  readonly files: readonly string[];
}

const searchTool: PiTool<typeof search, Found> = {
  name: "SearchFiles",
  label: "Search Files",
  description: "Search files by a pattern.",
  parameters: search,
  async execute(toolCallId, params, signal, onUpdate) {
    expectTypeOf(params).toEqualTypeOf<{ pattern: string; limit?: number }>();
    signal?.throwIfAborted();
    onUpdate?.({ content: [{ type: "text", text: "Found 1 files so far..." }], details: { files: ["a"] } });
    const text = `${toolCallId}: ${this.label}: ${params.pattern} ${params.limit ?? "all"}`;
    return { content: [{ type: "text", text }], details: { files: ["a", "b"] } };
  },
};

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (isStatewrightError(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "taken";
}

test("a pi tool runs unchanged, with call id, arguments, signal and update callback [S4.6]", async () => {
  const tool = fromPiTool(searchTool);
  expect([tool.name, tool.spec.originalName, tool.spec.label]).toEqual(["search_files", "SearchFiles", "Search Files"]);
  const done = await runToolLoop({
    tools: [tool],
    turns: [[call("search_files", { pattern: "x" }, "toolu_1")], ["ok"]],
  });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["toolu_1: Search Files: x all"]);
  expect(listEvents(done, "tool.update").map(({ partial }) => partial.details)).toEqual([{ files: ["a"] }]);
});

test("a pi tool extends the model definition by label and execute, and a definition without them can be listed [S4.1]", async () => {
  expectTypeOf<PiTool<typeof search>>().toExtend<BarePiTool<typeof search>>();
  expectTypeOf<Exclude<keyof PiTool, keyof BarePiTool>>().toEqualTypeOf<
    "label" | "execute" | "executionMode" | "prepareArguments"
  >();
  const bare: BarePiTool = { name: "lookup", description: "Looks up.", parameters: { type: "object" } };
  const listed: ModelTool = { name: bare.name, description: bare.description, inputSchema: { type: "object" } };
  const registry = toolRegistry([fromPiTool(searchTool)]);
  const extendedRegistry = { ...registry, forModel: () => [...registry.forModel(), listed] };
  const done = await runToolLoop({ tools: extendedRegistry, turns: [[call("lookup")], ["ok"]] });
  expect(done.requests[0]?.tools.map(({ name }) => name)).toEqual(["search_files", "lookup"]);
  expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([true]);
  expect(listEvents(done, "tool.started")).toEqual([]);
});

test("the name of a pi tool is unique in its registry [S4.3]", () => {
  expect(refusal(() => toolRegistry([fromPiTool(searchTool), fromPiTool(searchTool)]))).toContain(
    'two tools are named "search_files"',
  );
});

test("the description of a pi tool is sent to the model unchanged [S4.4]", async () => {
  const description = 'Weather: "now" — °C\n  ünï';
  const done = await runToolLoop({ tools: [fromPiTool({ ...searchTool, description })], turns: [["hello"]] });
  expect(done.requests[0]?.tools[0]?.description).toBe(description);
});

test("parameters of a pi tool must be an object schema of TypeBox or JSON Schema, and are sent as plain JSON [S4.5]", async () => {
  for (const parameters of [{ type: "string" }, { type: "array", items: {} }, {}, { anyOf: [{ type: "object" }] }])
    expect(refusal(() => fromPiTool({ ...searchTool, parameters: parameters as never }))).toMatch(/^invalid_tool /);
  for (const parameters of [undefined, null, "object", 7])
    expect(refusal(() => fromPiTool({ ...searchTool, parameters: parameters as never }))).toContain("parameters");
  const done = await runToolLoop({
    tools: [fromPiTool(searchTool)],
    turns: [[call("search_files", { pattern: "x" })], ["ok"]],
  });
  const shown = done.requests[0]?.tools[0]?.inputSchema;
  expect(shown).toEqual(JSON.parse(JSON.stringify(search)));
  expect(shown?.["required"]).toEqual(["pattern"]);
  expect(Object.getOwnPropertySymbols(shown)).toEqual([]);
  expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false]);
});

test("arguments of a pi tool are checked before execute, and typed from the schema [S4.7]", async () => {
  let ran = 0;
  const tool = fromPiTool({
    ...searchTool,
    execute: async () => ({ content: [{ type: "text", text: `${++ran}` }] }),
  });
  const turns = [[call("search_files", {}, "a"), call("search_files", { pattern: 5 }, "b")], ["ok"]];
  const done = await runToolLoop({ tools: [tool], turns });
  expect(ran).toBe(0);
  expect(listToolAnswers(done).map(getAnswerText)).toEqual([
    'The arguments of "search_files" are invalid: pattern: is missing, expected string.',
    'The arguments of "search_files" are invalid: pattern: expected string.',
  ]);
  const made = { id: "a", name: "search_files", args: { pattern: "x" } as unknown };
  if (tool.is(made)) expectTypeOf(made.args).toEqualTypeOf<{ pattern: string; limit?: number }>();
  const plain: PiTool = { ...searchTool, parameters: { type: "object" }, execute: async () => ({ content: [] }) };
  expectTypeOf<Parameters<(typeof plain)["execute"]>[1]>().toEqualTypeOf<Readonly<Record<string, unknown>>>();
});

test("signal and onUpdate of a pi tool are optional: execute works without both, and in a run without a listener [S4.8, S4.9]", async () => {
  const direct = await searchTool.execute("id", { pattern: "x" });
  expect(direct.content).toEqual([{ type: "text", text: "id: Search Files: x all" }]);
  const tool = fromPiTool(searchTool);
  const done = await runToolLoop({
    tools: [tool],
    deaf: true,
    turns: [[call("search_files", { pattern: "x" }, "c")], ["ok"]],
  });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["c: Search Files: x all"]);
});

test("details of a pi tool have an optional type argument, and are typed in its end event [S4.10]", async () => {
  expectTypeOf<PiTool<typeof search>>().toExtend<PiTool<typeof search, unknown>>();
  expectTypeOf<PiToolResult["details"]>().toEqualTypeOf<unknown>();
  const tool = fromPiTool(searchTool);
  const done = await runToolLoop({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  const files = listResults(done).flatMap((result) => {
    if (!tool.isResult(result)) return [];
    expectTypeOf(result.details).toEqualTypeOf<Found | undefined>();
    return result.details?.files ?? [];
  });
  expect(files).toEqual(["a", "b"]);
  for (const details of [null, 0, "x", [1], { a: { b: null } }, undefined]) {
    const any = fromPiTool({ ...searchTool, execute: async () => ({ content: [], details: details as never }) });
    const ended = await runToolLoop({ tools: [any], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
    expect(listResults(ended).map((result) => result.details)).toEqual([details]);
  }
});

test("an image of a pi tool is accepted in two notations and stored in one [S4.11]", async () => {
  const blocks: PiToolResult["content"] = [
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
  ];
  const tool = fromPiTool({ ...searchTool, execute: async () => ({ content: blocks }) });
  const done = await runToolLoop({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  const image = { type: "image", data: "aGk=", mimeType: "image/png" };
  expect(listToolAnswers(done)[0]?.content).toEqual([image, image]);
});

test("details of a pi tool are emitted and logged, and never sent to the model [S4.12]", async () => {
  const execute = async () => ({ content: [{ type: "text", text: "x" } as const], details: { files: ["SENTINEL"] } });
  const tool = fromPiTool({ ...searchTool, execute });
  const done = await runToolLoop({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  expect(done.wires.join()).not.toContain("SENTINEL");
  expect(JSON.stringify(listEvents(done, "tool.completed"))).toContain("SENTINEL");
});

describe("pi tool edge cases", () => {
  test("a pi tool schema with an unsupported keyword is refused with a hint, and accepted with a validator", async () => {
    const parameters = { type: "object", properties: { a: { type: "string" } }, dependentRequired: { a: ["b"] } };
    expect(refusal(() => fromPiTool({ ...searchTool, parameters: parameters as never }))).toContain(
      'has the unknown keyword "dependentRequired"',
    );
    const seen: unknown[] = [];
    const tool = fromPiTool(
      { ...searchTool, parameters: parameters as never, execute: async () => ({ content: [] }) },
      {
        validator: (schema) => (value) => {
          seen.push(schema);
          return "a" in (value as object) ? [] : [{ path: "a", message: "is due" }];
        },
      },
    );
    const turns = [[call("search_files", { a: "x" }, "a"), call("search_files", {}, "b")], ["ok"]];
    const done = await runToolLoop({ tools: [tool], turns });
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false, true]);
    expect([...new Set(seen)]).toEqual([parameters]);
  });

  test("fromPiTool refuses an invalid pi tool and unknown options", () => {
    for (const bad of [undefined, null, "x", {}, { ...searchTool, name: 7 }, { ...searchTool, execute: "x" }])
      expect(refusal(() => fromPiTool(bad as never))).toMatch(/^invalid_tool /);
    expect(refusal(() => fromPiTool(searchTool, { timeout: 5 } as never))).toContain('has no option "timeout"');
  });

  test("fromPiTool keeps prepareArguments of a pi tool, and accepts effect, safety and timeout", async () => {
    const tool = fromPiTool(
      { ...searchTool, prepareArguments: (args) => ({ pattern: Reflect.get(args as object, "query") }) },
      { effect: "pure", safety: { access: "read" }, timeoutMs: 50 },
    );
    expect(tool.spec).toMatchObject({ effect: "pure", safety: { access: "read" }, timeoutMs: 50 });
    const done = await runToolLoop({ tools: [tool], turns: [[call("search_files", { query: "x" }, "c")], ["ok"]] });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["c: Search Files: x all"]);
  });

  test("a union of literals in a pi tool schema is sent to the model as an enum", () => {
    const units = {
      anyOf: [
        { const: "celsius", type: "string" },
        { const: "fahrenheit", type: "string" },
      ],
    };
    const parameters = { type: "object", properties: { units } } as never;
    expect(toolRegistry([fromPiTool({ ...searchTool, parameters })]).forModel()[0]?.inputSchema).toEqual({
      type: "object",
      properties: { units: { type: "string", enum: ["celsius", "fahrenheit"] } },
    });
  });
});
