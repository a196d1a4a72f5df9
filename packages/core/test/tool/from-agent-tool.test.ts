import { describe, expect, expectTypeOf, test } from "vitest";
import {
  type AgentTool,
  type AgentToolResult,
  type BareAgentTool,
  fromAgentTool,
  isStatewrightError,
  type ModelTool,
  toolRegistry,
} from "../../src/index.ts";
import { answersIn, call, eventsOf, resultsOf, talk, textIn } from "../support/tool-loop.ts";

/** A schema with its type beside it, as TypeBox makes them: marks under symbols, which are not JSON. */
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

const searchTool: AgentTool<typeof search, Found> = {
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

test("S4.6 an object of pi runs unchanged: it gets the call's id, its arguments, the signal and a way to show updates", async () => {
  const tool = fromAgentTool(searchTool);
  expect([tool.name, tool.spec.originalName, tool.spec.label]).toEqual(["search_files", "SearchFiles", "Search Files"]);
  const done = await talk({ tools: [tool], turns: [[call("search_files", { pattern: "x" }, "toolu_1")], ["ok"]] });
  expect(answersIn(done).map(textIn)).toEqual(["toolu_1: Search Files: x all"]);
  expect(eventsOf(done, "tool.update").map(({ partial }) => partial.details)).toEqual([{ files: ["a"] }]);
});

test("S4.1 a tool extends what a model sees by a label and execute, and what has neither can be listed all the same", async () => {
  expectTypeOf<AgentTool<typeof search>>().toExtend<BareAgentTool<typeof search>>();
  expectTypeOf<Exclude<keyof AgentTool, keyof BareAgentTool>>().toEqualTypeOf<
    "label" | "execute" | "executionMode" | "prepareArguments"
  >();
  const bare: BareAgentTool = { name: "lookup", description: "Looks up.", parameters: { type: "object" } };
  const listed: ModelTool = { name: bare.name, description: bare.description, inputSchema: { type: "object" } };
  const registry = toolRegistry([fromAgentTool(searchTool)]);
  const beside = { ...registry, forModel: () => [...registry.forModel(), listed] };
  const done = await talk({ tools: beside, turns: [[call("lookup")], ["ok"]] });
  expect(done.requests[0]?.tools.map(({ name }) => name)).toEqual(["search_files", "lookup"]);
  expect(answersIn(done).map(({ isError }) => isError)).toEqual([true]);
  expect(eventsOf(done, "tool.started")).toEqual([]);
});

test("S4.3 a name is unique in the agent's set", () => {
  expect(refusal(() => toolRegistry([fromAgentTool(searchTool), fromAgentTool(searchTool)]))).toContain(
    'two tools are named "search_files"',
  );
});

test("S4.4 the description goes to the model unchanged", async () => {
  const description = 'Weather: "now" — °C\n  ünï';
  const done = await talk({ tools: [fromAgentTool({ ...searchTool, description })], turns: [["hello"]] });
  expect(done.requests[0]?.tools[0]?.description).toBe(description);
});

test("S4.5 parameters are an object schema, of TypeBox or any JSON Schema: others are refused, an optional part is not required, the wire is plain JSON", async () => {
  for (const parameters of [{ type: "string" }, { type: "array", items: {} }, {}, { anyOf: [{ type: "object" }] }])
    expect(refusal(() => fromAgentTool({ ...searchTool, parameters: parameters as never }))).toMatch(/^invalid_tool /);
  for (const parameters of [undefined, null, "object", 7])
    expect(refusal(() => fromAgentTool({ ...searchTool, parameters: parameters as never }))).toContain("parameters");
  const done = await talk({
    tools: [fromAgentTool(searchTool)],
    turns: [[call("search_files", { pattern: "x" })], ["ok"]],
  });
  const shown = done.requests[0]?.tools[0]?.inputSchema;
  expect(shown).toEqual(JSON.parse(JSON.stringify(search)));
  expect(shown?.["required"]).toEqual(["pattern"]);
  expect(Object.getOwnPropertySymbols(shown)).toEqual([]);
  expect(answersIn(done).map(({ isError }) => isError)).toEqual([false]);
});

test("S4.7 arguments are checked before execute, and typed from the schema", async () => {
  let ran = 0;
  const tool = fromAgentTool({
    ...searchTool,
    execute: async () => ({ content: [{ type: "text", text: `${++ran}` }] }),
  });
  const turns = [[call("search_files", {}, "a"), call("search_files", { pattern: 5 }, "b")], ["ok"]];
  const done = await talk({ tools: [tool], turns });
  expect(ran).toBe(0);
  expect(answersIn(done).map(textIn)).toEqual([
    'The arguments of "search_files" do not fit: pattern: is missing, expected string.',
    'The arguments of "search_files" do not fit: pattern: expected string.',
  ]);
  const made = { id: "a", name: "search_files", args: { pattern: "x" } as unknown };
  if (tool.is(made)) expectTypeOf(made.args).toEqualTypeOf<{ pattern: string; limit?: number }>();
  const plain: AgentTool = { ...searchTool, parameters: { type: "object" }, execute: async () => ({ content: [] }) };
  expectTypeOf<Parameters<(typeof plain)["execute"]>[1]>().toEqualTypeOf<Readonly<Record<string, unknown>>>();
});

test("S4.8, S4.9 signal and onUpdate are optional: execute works without both, and in a run that nobody listens to", async () => {
  const direct = await searchTool.execute("id", { pattern: "x" });
  expect(direct.content).toEqual([{ type: "text", text: "id: Search Files: x all" }]);
  const tool = fromAgentTool(searchTool);
  const done = await talk({
    tools: [tool],
    deaf: true,
    turns: [[call("search_files", { pattern: "x" }, "c")], ["ok"]],
  });
  expect(answersIn(done).map(textIn)).toEqual(["c: Search Files: x all"]);
});

test("S4.10 details are typed by a type argument that may be left out, and are typed in the end event of their tool", async () => {
  expectTypeOf<AgentTool<typeof search>>().toExtend<AgentTool<typeof search, unknown>>();
  expectTypeOf<AgentToolResult["details"]>().toEqualTypeOf<unknown>();
  const tool = fromAgentTool(searchTool);
  const done = await talk({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  const files = resultsOf(done).flatMap((result) => {
    if (!tool.gave(result)) return [];
    expectTypeOf(result.details).toEqualTypeOf<Found | undefined>();
    return result.details?.files ?? [];
  });
  expect(files).toEqual(["a", "b"]);
  for (const details of [null, 0, "x", [1], { a: { b: null } }, undefined]) {
    const any = fromAgentTool({ ...searchTool, execute: async () => ({ content: [], details: details as never }) });
    const ended = await talk({ tools: [any], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
    expect(resultsOf(ended).map((result) => result.details)).toEqual([details]);
  }
});

test("S4.11 an image may be spelled both ways, and is kept in one", async () => {
  const blocks: AgentToolResult["content"] = [
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
  ];
  const tool = fromAgentTool({ ...searchTool, execute: async () => ({ content: blocks }) });
  const done = await talk({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  const image = { type: "image", data: "aGk=", mimeType: "image/png" };
  expect(answersIn(done)[0]?.content).toEqual([image, image]);
});

test("S4.12 details are shown and logged, and never sent", async () => {
  const execute = async () => ({ content: [{ type: "text", text: "x" } as const], details: { files: ["SENTINEL"] } });
  const tool = fromAgentTool({ ...searchTool, execute });
  const done = await talk({ tools: [tool], turns: [[call("search_files", { pattern: "x" })], ["ok"]] });
  expect(done.wires.join()).not.toContain("SENTINEL");
  expect(JSON.stringify(eventsOf(done, "tool.completed"))).toContain("SENTINEL");
});

describe("what fromAgentTool refuses, and what it takes besides", () => {
  test("a schema that nothing here can check is refused with what to do, and a validator takes it", async () => {
    const parameters = { type: "object", properties: { a: { type: "string" } }, dependentRequired: { a: ["b"] } };
    expect(refusal(() => fromAgentTool({ ...searchTool, parameters: parameters as never }))).toContain(
      'says "dependentRequired", which is not known here',
    );
    const seen: unknown[] = [];
    const tool = fromAgentTool(
      { ...searchTool, parameters: parameters as never, execute: async () => ({ content: [] }) },
      {
        validator: (schema) => (value) => {
          seen.push(schema);
          return "a" in (value as object) ? [] : [{ path: "a", message: "is due" }];
        },
      },
    );
    const turns = [[call("search_files", { a: "x" }, "a"), call("search_files", {}, "b")], ["ok"]];
    const done = await talk({ tools: [tool], turns });
    expect(answersIn(done).map(({ isError }) => isError)).toEqual([false, true]);
    expect(seen).toEqual([parameters, parameters]);
  });

  test("what is no such object, and options that there are not", () => {
    for (const bad of [undefined, null, "x", {}, { ...searchTool, name: 7 }, { ...searchTool, execute: "x" }])
      expect(refusal(() => fromAgentTool(bad as never))).toMatch(/^invalid_tool /);
    expect(refusal(() => fromAgentTool(searchTool, { timeout: 5 } as never))).toContain('has no option "timeout"');
  });

  test("its own prepareArguments, and facts that pi's objects do not have", async () => {
    const tool = fromAgentTool(
      { ...searchTool, prepareArguments: (args) => ({ pattern: Reflect.get(args as object, "query") }) },
      { effect: "pure", safety: { access: "read" }, timeoutMs: 50 },
    );
    expect(tool.spec).toMatchObject({ effect: "pure", safety: { access: "read" }, timeoutMs: 50 });
    const done = await talk({ tools: [tool], turns: [[call("search_files", { query: "x" }, "c")], ["ok"]] });
    expect(answersIn(done).map(textIn)).toEqual(["c: Search Files: x all"]);
  });

  test("a union of literals is shown as an enum, which every provider takes", () => {
    const units = {
      anyOf: [
        { const: "celsius", type: "string" },
        { const: "fahrenheit", type: "string" },
      ],
    };
    const parameters = { type: "object", properties: { units } } as never;
    expect(toolRegistry([fromAgentTool({ ...searchTool, parameters })]).forModel()[0]?.inputSchema).toEqual({
      type: "object",
      properties: { units: { type: "string", enum: ["celsius", "fahrenheit"] } },
    });
  });
});
