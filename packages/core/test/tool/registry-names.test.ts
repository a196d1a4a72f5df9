import { describe, expect, test } from "vitest";
import * as z from "zod";
import { fromPiTool, toolSpec } from "../../src/adapter.ts";
import { defineTool, isStatewrightError, type Tool, type ToolSpec, toolNode, toolRegistry } from "../../src/index.ts";
import { toSnakeCase } from "../../src/tool/definition/tool-name.ts";
import { call, getAnswerText, listEvents, listToolAnswers, runToolLoop } from "../support/tool-loop.ts";

function named(name: string, description = "Does it."): Tool {
  return defineTool({ name, description, input: z.object({}), run: () => description });
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (isStatewrightError(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "taken";
}

/** Creates a foreign tool with its original name. */
function foreign(name: string): Tool {
  const execute = async () => ({ content: [{ type: "text", text: name } as const] });
  return fromPiTool({ name, label: name, description: "From elsewhere.", parameters: { type: "object" }, execute });
}

const perfect = ["a", "get_weather", "a1_", "a".repeat(64)];
const never = ["", " ", "a b", " a", "a\n", "a".repeat(65), "a.b", "a/b", "a:b", "météo", "1a", "a{", 'a"b', "-a"];
const loose = ["GetWeather", "get-weather", "_a", "A"];

test("a tool has any name that all providers accept, a registry may allow snake_case only, and duplicates are refused [S1.2, S1.30, FX43]", () => {
  for (const name of perfect) {
    expect(toolRegistry([named(name)]).names()).toEqual([name]);
    expect(toolRegistry([named(name)], { names: "snake_case" }).names()).toEqual([name]);
  }
  for (const name of loose) {
    expect(toolRegistry([named(name)]).names()).toEqual([name]);
    expect(toolNode({ tools: [named(name)] }).registry.names()).toEqual([name]);
    const said = refusal(() => toolRegistry([named(name)], { names: "snake_case" }));
    expect(said).toContain(`invalid_tool: ${JSON.stringify(name)} is not a tool name`);
    expect(said).toContain("Use snake_case");
    expect(said).toContain('remove names: "snake_case"');
    expect(toolRegistry([named(name)], { names: "provider-safe" }).names()).toEqual([name]);
  }
  for (const name of never) {
    const { spec } = named("base");
    const bad: Tool = { spec: { ...spec, name }, call: () => "x" };
    for (const options of [{ names: "snake_case" }, { names: "provider-safe" }, {}] as const)
      for (const take of [
        () => toolRegistry([bad], options),
        () => toolRegistry([], options).register(bad),
        () => toolRegistry([], options).replace(bad),
        () => toolRegistry([], options).replaceAll([bad]),
      ])
        expect(refusal(take)).toContain(`${JSON.stringify(name)} is not a tool name`);
    expect(refusal(() => named(name))).toContain(`${JSON.stringify(name)} is not a tool name`);
  }
  const createDuplicateRegistry = () =>
    toolRegistry([named("GetWeather"), named("GetWeather")], { names: "provider-safe" });
  expect(refusal(createDuplicateRegistry)).toContain('two tools are named "GetWeather"');
  expect(refusal(() => toolRegistry([], { names: "any" as "snake_case" }))).toContain("provider-safe");
});

test("registry.register refuses an existing name, and registry.replace accepts it [D9]", () => {
  const registry = toolRegistry([named("a", "old")]);
  expect(refusal(() => registry.register(named("a", "new")))).toContain('two tools are named "a"');
  expect(registry.get("a")?.spec.description).toBe("old");
  expect(registry.replace(named("a", "new")).get("a")?.spec.description).toBe("new");
  expect(registry.replace(named("b")).names()).toEqual(["a", "b"]);
});

test("a foreign tool name becomes snake_case and the original is kept; provider-safe names are kept in a registry that allows them [D32]", async () => {
  const aliases = {
    GetWeather: "get_weather",
    "files/read": "files_read",
    "read-file": "read_file",
    HTTPServerList: "http_server_list",
    "météo du jour": "meteo_du_jour",
    "3d.render": "tool_3d_render",
    mcp__github__list: "mcp__github__list",
    __init: "init",
  };
  for (const [original, alias] of Object.entries(aliases)) {
    expect([original, toSnakeCase(original)]).toEqual([original, alias]);
    const [described] = toolRegistry([foreign(original)]).describe();
    expect([described?.name, described?.originalName]).toEqual([alias, alias === original ? undefined : original]);
  }
  const long = `x${"Y/".repeat(60)}`;
  expect(toSnakeCase(long)).toMatch(/^[a-z][a-z0-9_]{63}$/);
  expect(toSnakeCase(long)).not.toBe(toSnakeCase(`${long}z`));
  for (const nothing of ["", "//", "気温"]) expect(refusal(() => foreign(nothing))).toContain("is not a tool name");
  const renamedRegistry = toolRegistry([foreign("GetWeather"), foreign("files/read")], { names: "provider-safe" });
  expect(renamedRegistry.names()).toEqual(["GetWeather", "files_read"]);
  const done = await runToolLoop({ tools: renamedRegistry, turns: [[call("GetWeather"), call("files_read")], ["ok"]] });
  expect(done.requests[0]?.tools.map(({ name }) => name)).toEqual(["GetWeather", "files_read"]);
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["GetWeather", "files/read"]);
});

test("two foreign tool names with one snake_case form are refused at registration with both names [T52]", () => {
  const tools = [foreign("a/b"), foreign("a-b")];
  for (const take of [
    () => toolRegistry(tools),
    () => toolRegistry([foreign("a/b")]).register(foreign("a-b")),
    () => toolRegistry().replaceAll(tools),
  ]) {
    const said = refusal(take);
    expect(said).toContain('two tools are named "a_b"');
    expect(said).toContain('"a/b" and "a-b"');
  }
  expect(refusal(() => toolRegistry([named("a_b"), foreign("a/b")]))).toContain(
    'two tools are named "a_b", originally "a/b"',
  );
});

describe("tool aliases", () => {
  test("an alias for an unknown tool, of two tools, or refused by providers is refused", () => {
    const registry = toolRegistry([named("get_weather"), named("search")]);
    expect(refusal(() => registry.alias("one", "nothing", "X"))).toContain('Use "get_weather", "search"');
    for (const alias of ["", "a b", "a.b", "a".repeat(65)])
      expect(refusal(() => registry.alias("one", "search", alias))).toContain("cannot be an alias");
    expect(refusal(() => registry.alias("one", "search", "get_weather"))).toContain("another tool has this name");
    registry.alias("one", "get_weather", "GetWeather");
    expect(refusal(() => registry.alias("one", "search", "GetWeather"))).toContain("already");
    registry.alias("two", "search", "GetWeather").alias("one", "get_weather", "Weather");
    expect([registry.toCanonical("one", "Weather"), registry.toCanonical("two", "GetWeather")]).toEqual([
      "get_weather",
      "search",
    ]);
    expect([registry.toCanonical("one", "GetWeather"), registry.toCanonical("two", "search")]).toEqual([
      undefined,
      "search",
    ]);
    expect(registry.describe().map(({ aliases }) => aliases)).toEqual([{ one: "Weather" }, { two: "GetWeather" }]);
  });

  test("an alias reserves its name against later tools and is removed with its tool", () => {
    const registry = toolRegistry([named("get_weather")]).alias("one", "get_weather", "weather");
    for (const take of [
      () => registry.register(named("weather")),
      () => registry.replace(named("weather")),
      () => registry.replaceAll([named("weather"), named("get_weather")]),
    ])
      expect(refusal(take)).toContain('"weather" is already the alias of the tool "get_weather" for models of "one"');
    registry.replaceAll([named("get_weather", "newer")]);
    expect(registry.toCanonical("one", "weather")).toBe("get_weather");
    registry.unregister("get_weather");
    expect(registry.register(named("weather")).toCanonical("one", "weather")).toBe("weather");
  });
});

test("a registry is created, filled and given to a graph independently: requests list its tools, and two registries are separate [S3.20]", async () => {
  const [one, two] = [toolRegistry(), toolRegistry()];
  one.register(named("alpha")).register(named("beta"));
  two.register(named("gamma"));
  const first = await runToolLoop({ tools: one, turns: [[call("beta")], ["ok"]] });
  const second = await runToolLoop({ tools: two, turns: [[call("beta")], ["ok"]] });
  expect(first.requests[0]?.tools.map(({ name }) => name)).toEqual(["alpha", "beta"]);
  expect(second.requests[0]?.tools.map(({ name }) => name)).toEqual(["gamma"]);
  expect([listToolAnswers(first)[0]?.isError, listToolAnswers(second)[0]?.isError]).toEqual([false, true]);
});

test("the order of tools in a request does not depend on the order of registration [T50]", async () => {
  const names = ["zeta", "mid_10", "alpha", "mid_2", "Mid"];
  const wires: string[] = [];
  for (const order of [names, names.toReversed(), [...names].sort()]) {
    const registry = toolRegistry([], { names: "provider-safe" });
    for (const name of order) registry.register(named(name));
    registry.replace(named("alpha")).unregister("zeta");
    registry.register(named("zeta"));
    const done = await runToolLoop({ tools: registry, turns: [[call("alpha")], ["ok"]] });
    wires.push(...done.wires.map((wire) => JSON.stringify((JSON.parse(wire) as { tools: unknown }).tools)));
  }
  expect(new Set(wires).size).toBe(1);
});

test("describe lists each hidden argument with its kind and without a value, and a model request has neither [S1.4, S1.21]", async () => {
  const hidden = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    inject: { accountHidden: { kind: "custom", resolve: () => "SENTINEL-value" } },
    run: (_args, { injected }) => (injected.accountHidden === "SENTINEL-value" ? "paid" : "wrong"),
  });
  const registry = toolRegistry([hidden]);
  expect(registry.describe()[0]?.inject).toEqual({ accountHidden: "custom" });
  expect(JSON.stringify(registry.describe())).not.toContain("SENTINEL");
  expect(JSON.stringify(registry.forModel())).not.toMatch(/SENTINEL|accountHidden|inject/);
  const done = await runToolLoop({ tools: registry, turns: [[call("pay", { cents: 1 })], ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["paid"]);
  expect(done.wires.join()).not.toMatch(/SENTINEL|accountHidden/);
});

test("a label appears in every event of its tool and in describe, and in no model request [S0.2, S2.2, S4.2]", async () => {
  const tool = defineTool({
    name: "act",
    label: "SENTINEL label",
    description: "Acts.",
    input: z.object({}),
    run: (_args, { progress, update }) => {
      progress("half");
      update?.({ content: "more" });
      return "done";
    },
  });
  const registry = toolRegistry([tool]);
  const done = await runToolLoop({ tools: registry, turns: [[call("act"), call("act", { no: 1 }, "b")], ["ok"]] });
  const observed = listEvents(
    done,
    "tool.started",
    "tool.progress",
    "tool.update",
    "tool.completed",
    "tool.rejected",
    "tool.failed",
  );
  expect(observed.map(({ type }) => type).sort()).toEqual([
    "tool.completed",
    "tool.failed",
    "tool.progress",
    "tool.rejected",
    "tool.started",
    "tool.update",
  ]);
  expect(new Set(observed.map(({ label }) => label))).toEqual(new Set(["SENTINEL label"]));
  expect(registry.describe()[0]?.label).toBe("SENTINEL label");
  expect(done.wires.join()).not.toContain("SENTINEL");
});

test("describe returns plain data about a tool, with functions of a policy only named", () => {
  const tool = defineTool({
    name: "pay",
    description: "Pay an order.",
    input: z.object({ cents: z.int().min(1) }),
    output: z.object({ receipt: z.string() }),
    effect: "idempotent",
    safety: { access: "write", network: ["pay.example"], spend: true },
    retry: { attempts: 3, on: () => true },
    timeoutMs: 20,
    run: () => ({ content: "x", value: { receipt: "1" } }),
  });
  const described = toolRegistry([tool]).describe();
  expect(JSON.parse(JSON.stringify(described))).toEqual(described);
  expect(described).toEqual([
    {
      name: "pay",
      label: "Pay",
      description: "Pay an order.",
      input: {
        type: "object",
        properties: { cents: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } },
        required: ["cents"],
      },
      output: expect.objectContaining({ type: "object", required: ["receipt"] }),
      inject: {},
      effect: "idempotent",
      safety: { access: "write", network: ["pay.example"], spend: true },
      retry: { attempts: 3, on: "custom" },
      timeoutMs: 20,
    },
  ]);
});

test("a tool may hold live objects and keys, which are used and appear nowhere else [S3.52]", async () => {
  class Shelf implements Tool {
    readonly spec: ToolSpec = toolSpec({ name: "shelf", description: "A shelf.", input: z.object({}) });
    readonly #options: { readonly apiKey: string; readonly open: () => string };
    constructor(options: { readonly apiKey: string; readonly open: () => string }) {
      this.#options = options;
    }
    call(): string {
      return this.#options.apiKey === "SENTINEL-key" ? this.#options.open() : "shut";
    }
  }
  const registry = toolRegistry([new Shelf({ apiKey: "SENTINEL-key", open: () => "open" })]);
  const done = await runToolLoop({ tools: registry, turns: [[call("shelf")], ["ok"]] });
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["open"]);
  const everything = [
    done.wires.join(),
    done.saved(),
    JSON.stringify(done.events),
    JSON.stringify(registry.describe()),
  ];
  for (const text of everything) expect(text).not.toContain("SENTINEL");
});

describe("tool defaults", () => {
  test("a tool without a label gets its name in words [D19]", () => {
    expect(named("get_weather").spec.label).toBe("Get Weather");
    expect(toolSpec({ name: "readFile-2", description: "x", input: z.object({}) }).label).toBe("ReadFile 2");
  });

  test("a tool without safety and effect metadata runs as unclassified and once [D33]", async () => {
    const tool = foreign("plain");
    expect([tool.spec.safety, tool.spec.effect]).toEqual([{ access: "unclassified" }, "once"]);
    const done = await runToolLoop({ tools: [tool], turns: [[call("plain")], ["ok"]] });
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([false]);
  });

  test("a tool with an input that cannot be checked is refused at registration [D12]", () => {
    const { spec } = named("base");
    const inputs: readonly unknown[] = [
      { type: "object" },
      { jsonSchema: { type: "object" } },
      { jsonSchema: { type: "object" }, validate: "yes" },
      { jsonSchema: "object", validate: () => [] },
      { jsonSchema: { type: "array" }, validate: () => [] },
      undefined,
    ];
    for (const input of inputs) {
      const bad = { spec: { ...spec, input: input as ToolSpec["input"] }, call: () => "x" };
      for (const take of [() => toolRegistry([bad]), () => toolNode({ tools: [bad] })])
        expect(refusal(take)).toMatch(/^invalid_tool /);
    }
  });

  test("a partial tool spec from untyped code is completed with defaults", async () => {
    const bare = { name: "bare", description: "Bare.", input: z.object({ n: z.int() }) };
    const tool = { spec: bare as unknown, call: () => "ran" } as Tool;
    const registry = toolRegistry([tool]);
    expect(registry.get("bare")?.spec).toMatchObject({ effect: "once", inject: {}, label: "Bare" });
    const done = await runToolLoop({ tools: registry, turns: [[call("bare", { n: 1 })], ["ok"]] });
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["ran"]);
    const strange = { spec: { ...bare, labell: "x" } as unknown, call: () => "ran" } as Tool;
    expect(refusal(() => toolRegistry([strange]))).toContain('has no option "labell"');
  });

  test("toolNode given a list in place of options fails with an error that says so", () => {
    expect(refusal(() => toolNode([] as never))).toContain("toolNode: expected options, got a list");
  });
});
