import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineState,
  defineTool,
  isStatewrightError,
  type Model,
  memoryStore,
  type Tool,
  toolRegistry,
} from "statewright";
import { toolSpec } from "statewright/adapter";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk, textOfResult } from "../../support/talk.ts";

const description = "A tool of this test.";
const input = z.object({});

test("the tinyagents migration program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-tinyagents-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const program = new URL("tinyagents.ts", import.meta.url);
  const printed = await runProgram(program, { cwd: folder, env: { SHOP_KEY: "k-123" } });
  expect(printed).toBe(printedOn("reference/coming-from-tinyagents.md"));
});

test.each(["", "get weather", "météo", "a.b", "a/b", "a".repeat(65)])("the tool name %j is refused", (name) => {
  expect(() => toolRegistry([defineTool({ name, description, input, run: () => "done" })])).toThrow();
});

test("a provider-safe tool name outside snake_case is accepted unless the registry refuses it", () => {
  const getWeather: Tool = {
    spec: { ...toolSpec({ name: "get_weather", description, input }), name: "GetWeather" },
    call: () => "",
  };
  expect(() => toolRegistry([getWeather], { names: "snake_case" })).toThrow(/snake_case/);
  expect(toolRegistry([getWeather]).names()).toEqual(["GetWeather"]);
});

test("the state passed to a tool is read-only", async () => {
  const Cart = defineState({ cart: z.array(z.string()).default(["pear"]) });
  const writes: Tool<{ readonly cart: readonly string[] }> = {
    spec: toolSpec({ name: "writes", description, input }),
    call: (state) => {
      (state.cart as string[]).push("apple");
      return "done";
    },
  };
  const model = scriptedModel([call("writes", {}), say("Done.")]);
  const agent = createAgent({ name: "talker", model, state: Cart, tools: [writes] });
  const { state } = await agent.run({ input: "Go." }).result;
  expect(state.cart).toEqual(["pear"]);
  expect(state.messages.find(({ role }) => role === "tool")).toMatchObject({ isError: true });
});

test("a call of an unknown tool is answered, also when the option makes it fail the run", async () => {
  const there = defineTool({ name: "there", description, input, run: () => "done" });
  const repaired = await talk([there], [call("missing", {})]);
  expect([repaired.status, repaired.wires.length]).toEqual(["done", 2]);
  const store = memoryStore();
  const model = scriptedModel([call("missing", {}), say("Done.")]);
  const strict = createAgent({ name: "talker", model, tools: [there], onInvalidCall: { unknown: "fail" }, store });
  const failed = await strict.run({ thread: "t1", input: "Go." }).result.catch((error: unknown) => error);
  expect(isStatewrightError(failed, "tool_failed")).toBe(true);
  await strict.resume({ thread: "t1" }).result;
  expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
});

test("invalid JSON arguments never become an empty object", async () => {
  let ran = 0;
  const counts = defineTool({
    name: "counts",
    description,
    input: z.object({ n: z.int().default(1) }),
    run: () => `${++ran}`,
  });
  let asked = 0;
  const model: Model = {
    id: "made/up",
    respond: async () =>
      asked++ > 0
        ? { content: [{ type: "text", text: "Done." }], finish: "stop" }
        : { content: [{ type: "call", id: "c1", name: "counts", args: null, raw: '{"n":' }], finish: "calls" },
  };
  const { state } = await createAgent({ name: "talker", model, tools: [counts] }).run({ input: "Go." }).result;
  expect(ran).toBe(0);
  expect(state.messages.find(({ role }) => role === "tool")).toMatchObject({ isError: true, callId: "c1" });
});

test("the number of parallel calls never exceeds the option", async () => {
  let atWork = 0;
  let most = 0;
  const waits = defineTool({
    name: "waits",
    description,
    input,
    run: async (_args, { wait }) => {
      most = Math.max(most, ++atWork);
      await wait(1);
      atWork -= 1;
      return "done";
    },
  });
  const calls = Array.from({ length: 5 }, () => call("waits", {}));
  await talk([waits], [calls], { maxToolConcurrency: 2 });
  expect(most).toBe(2);
});

test("a program gets the key of a stored artifact, and the model gets a handle of its thread", async () => {
  const large = defineTool({ name: "large", description, input, effect: "pure", run: () => "x".repeat(20_000) });
  const { results, wires } = await talk([large], [call("large", {})], { store: memoryStore() });
  const [artifact] = results[0]?.artifacts ?? [];
  const wire = JSON.stringify(wires[1]?.messages);
  expect(artifact?.bytes).toBe(20_000);
  expect([wire.includes(artifact?.key ?? "?"), wire.includes(artifact?.handle ?? "?")]).toEqual([false, true]);
});

test("a tool value that does not fit the output schema fails with its own error kind", async () => {
  const odd = defineTool({
    name: "odd",
    description,
    input,
    output: z.object({ n: z.int() }),
    run: () => JSON.parse('{"content":"odd","value":{"n":"one"}}'),
  });
  const { results } = await talk([odd], [call("odd", {})]);
  expect(results.map(({ error }) => error?.kind)).toEqual(["invalid_output"]);
  expect(results.map(textOfResult)).not.toContain("odd");
});
