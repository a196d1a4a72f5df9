/** Tool names that only one provider receives. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type Model,
  type ModelRequest,
  memoryStore,
  route,
  run,
  START,
  toolNode,
  toolRegistry,
} from "../../../src/index.ts";
import {
  call,
  createToolLoop,
  getAnswerText,
  listEvents,
  listToolAnswers,
  runToolLoop,
  user,
} from "../../support/tool-loop.ts";

function weather(seen: string[] = []) {
  return defineTool({
    name: "get_weather",
    description: "Weather of a city.",
    input: z.object({ city: z.string() }),
    run: ({ city }, { toolName }) => {
      seen.push(toolName);
      return `${city}: sunny`;
    },
  });
}

const plain = defineTool({ name: "plain", description: "Plain.", input: z.object({}), run: () => "plain" });

test("a tool alias is sent to its provider only; the tool, events, transcript and checkpoints have the canonical name [S1.36, S1.37, S0.9, S2.9]", async () => {
  const seen: string[] = [];
  const registry = toolRegistry([weather(seen), plain]).alias("acme", "get_weather", "GetWeather");
  const store = memoryStore();
  const aliased = await runToolLoop({
    tools: registry,
    model: "acme/large",
    store,
    turns: [[call("GetWeather", { city: "Oslo" }, "a"), call("plain", {}, "b")], ["ok"]],
  });
  const [first, second] = aliased.requests;
  expect(first?.tools.map(({ name }) => name)).toEqual(["GetWeather", "plain"]);
  for (const wire of aliased.wires) expect(wire).not.toContain("get_weather");
  const names = (second?.messages ?? []).flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "call" ? [block.name] : []))
      : message.role === "tool"
        ? [message.name]
        : [],
  );
  expect(names).toEqual(["GetWeather", "plain", "GetWeather", "plain"]);
  expect(seen).toEqual(["get_weather"]);
  expect(listToolAnswers(aliased).map((answer) => [answer.name, getAnswerText(answer)])).toEqual([
    ["get_weather", "Oslo: sunny"],
    ["plain", "plain"],
  ]);
  expect(listEvents(aliased, "tool.started", "tool.completed").map(({ tool }) => tool)).toContain("get_weather");
  for (const text of [JSON.stringify(aliased.events), aliased.saved(), JSON.stringify(aliased.result.state)])
    expect(text).not.toContain("GetWeather");
  const other = await runToolLoop({
    tools: registry,
    model: "other/large",
    turns: [[call("get_weather", { city: "Oslo" })], ["ok"]],
  });
  for (const wire of other.wires) expect(wire).not.toContain("GetWeather");
});

test("a history sent to another provider uses the tool aliases of that provider [T53]", async () => {
  const registry = toolRegistry([weather()])
    .alias("acme", "get_weather", "GetWeather")
    .alias("zeta", "get_weather", "weather-tool");
  const store = memoryStore();
  const asks = [call("GetWeather", { city: "Oslo" }, "a")];
  const first = createToolLoop({ tools: registry, model: "acme/large", store, turns: [asks] });
  await first.start().result.catch((error: unknown) => error);
  const later = createToolLoop({ tools: registry, model: "zeta/small", store, turns: [asks, ["ok"]] });
  await later.again().result;
  expect(later.wires).toHaveLength(1);
  expect(later.wires[0]).not.toMatch(/GetWeather|get_weather/);
  expect(later.wires[0]?.match(/weather-tool/g)).toHaveLength(3);
});

test("a tool call by canonical name is accepted from a model with aliases, and a call by an unknown name is answered", async () => {
  const registry = toolRegistry([weather()]).alias("acme", "get_weather", "GetWeather");
  const done = await runToolLoop({
    tools: registry,
    model: "acme/large",
    turns: [[call("get_weather", { city: "Oslo" }, "a"), call("Nothing", {}, "b")], ["ok"]],
  });
  expect(listToolAnswers(done).map(({ name, isError }) => [name, isError])).toEqual([
    ["get_weather", false],
    ["Nothing", true],
  ]);
});

test("tool results become the same canonical messages for every provider [S1.9]", async () => {
  const registry = toolRegistry([weather(), plain]).alias("acme", "get_weather", "GetWeather");
  const stories = [
    ["acme/large", "GetWeather"],
    ["zeta/small", "get_weather"],
    ["scripted", "get_weather"],
  ] as const;
  const answers = await Promise.all(
    stories.map(async ([model, name]) => {
      const turns = [[call(name, { city: "Oslo" }, "a"), call(name, {}, "b"), call("plain", {}, "c")], ["ok"]];
      return listToolAnswers(await runToolLoop({ tools: registry, model, turns }));
    }),
  );
  const [first] = answers;
  expect(first?.map(({ role, callId, name, isError }) => [role, callId, name, isError])).toEqual([
    ["tool", "a", "get_weather", false],
    ["tool", "b", "get_weather", true],
    ["tool", "c", "plain", false],
  ]);
  for (const other of answers) expect(other).toEqual(first);
});

test("a tool that replaces a provider tool has its alias, and a hidden tool hides its provider tool", async () => {
  const registry = toolRegistry([weather(), plain]).alias("acme", "get_weather", "GetWeather");
  const own = { name: "get_weather", id: "acme.weather", args: {} };
  const requests: ModelRequest[] = [];
  const model: Model = {
    id: "acme/large",
    respond: async (request) => {
      requests.push(request);
      return { content: [{ type: "text", text: "ok" }], finish: "stop" };
    },
  };
  const hiding = defineMiddleware({ name: "hiding", selectTools: () => ["plain"] });
  const graph = defineGraph({ name: "asking", state: defineState({ messages: channel.messages() }) })
    .nodes({
      model: async (state, runtime) => {
        const request = { messages: state.messages, tools: registry.forModel(), providerTools: [own] };
        await runtime.model({ model, request }, "first");
        return { messages: [await runtime.model({ model, request, middleware: [hiding] })] };
      },
      tools: toolNode({ tools: registry }),
    })
    .edges({ [START]: "model", model: route(["tools", END], () => END), tools: END });
  await run(graph, { input: { messages: [user("go")] } }).result;
  expect(requests.map(({ tools, providerTools }) => [tools.length, providerTools])).toEqual([
    [2, [{ ...own, name: "GetWeather" }]],
    [1, []],
  ]);
});
