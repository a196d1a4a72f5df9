/** End of an agent with an incomplete answer, and the error of an agent without an end. */
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  isStatewrightError,
  type Model,
  memoryStore,
  type RunEvent,
  route,
  run,
  START,
  subgraph,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type AgentFinish, agentTool, createAgent, getAgentEnd } from "../../src/index.ts";

function answering(text: string, finish: "stop" | "length" | "filter" | "other"): Model {
  return { id: "m", structuredOutput: true, respond: async () => ({ content: [{ type: "text", text }], finish }) };
}

describe("incomplete answers", () => {
  test.each([
    ["length", "length"],
    ["filter", "filter"],
    ["stop", "answer"],
    ["other", "answer"],
  ] as const)(
    "an answer with finish reason %s ends the agent by %s in the result, in onFinish and on a later read",
    async (finish, by) => {
      const observed: AgentFinish[] = [];
      const agent = createAgent({
        name: "a",
        model: answering("Half of", finish),
        store: memoryStore(),
        onFinish: (finished) => void observed.push(finished),
      });
      const end = await agent.run({ thread: "t", input: "Go" }).result;
      expect(end).toMatchObject({ status: "done", text: "Half of", ended: { by } });
      expect(observed).toMatchObject([{ text: "Half of", ended: { by } }]);
      expect(getAgentEnd((await agent.resume({ thread: "t" }).result).state.messages)).toEqual({ by });
    },
  );

  test("an agent with an output reports the end of a truncated reply and still returns an output that fits", async () => {
    const agent = createAgent({
      name: "a",
      model: answering('{"n":1}', "length"),
      output: z.object({ n: z.number() }),
    });
    expect(await agent.run({ input: "Go" }).result).toMatchObject({ output: { n: 1 }, ended: { by: "length" } });
  });
});

describe("tool calls of a reply that the provider stopped", () => {
  const stoppedBy = (finish: "filter" | "other", name = "pay", providerFinish?: string): Model => ({
    id: "stopped",
    respond: async () => ({
      content: [{ type: "call", id: "c1", name, args: {} }],
      finish,
      ...(providerFinish !== undefined && { providerFinish }),
    }),
  });
  const payments = { count: 0 };
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    effect: "once",
    input: z.object({}),
    run: () => `paid ${++payments.count}`,
  });

  test.each([
    ["filter", undefined, { by: "filter" }],
    ["filter", "refusal", { by: "filter", reason: "refusal" }],
    ["other", "LANGUAGE", { by: "other", reason: "LANGUAGE" }],
  ] as const)(
    "a call of a reply with finish %s and provider reason %s is answered as not run and ends the agent [FX93]",
    async (finish, providerFinish, ended) => {
      payments.count = 0;
      const finished: AgentFinish[] = [];
      const events: RunEvent[] = [];
      for (const tools of [[pay], undefined]) {
        const agent = createAgent({
          name: "a",
          model: stoppedBy(finish, "pay", providerFinish),
          onFinish: (each) => void finished.push(each),
          ...(tools && { tools }),
        });
        agent.subscribe((event) => void events.push(event));
        const end = await agent.run({ input: "Go" }).result;
        expect(end).toMatchObject({ status: "done", text: "", ended });
        expect(end.state.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
        expect(end.state.messages.at(-1)).toMatchObject({ callId: "c1", isError: true });
        expect(getMessageText(end.state.messages.at(-1))).toContain("was not run");
        expect(getAgentEnd(end.state.messages)).toEqual(ended);
      }
      expect(payments.count).toBe(0);
      expect(finished.map((each) => each.ended)).toEqual([ended, ended]);
      expect(events.flatMap((event) => (event.type === "tool.rejected" ? [event.reason] : []))).toEqual([
        "stopped",
        "stopped",
      ]);
    },
  );

  test("a final call of a reply that the provider stopped is no output [FX93]", async () => {
    const agent = createAgent({
      name: "a",
      model: stoppedBy("filter", "final_answer"),
      output: { schema: z.object({}), strategy: "tool" },
    });
    const end = await agent.run({ input: "Go" }).result;
    expect(end).toMatchObject({ status: "done", ended: { by: "filter" } });
    expect(end.output).toBeUndefined();
  });

  test("a sub-agent whose reply the provider stopped is an error that names the provider's reason [FX93]", async () => {
    const inner = createAgent({ name: "inner", model: stoppedBy("other", "pay", "LANGUAGE"), tools: [pay] });
    const model = scriptedModel([call("inner", { task: "Go" }), say("Sorry")]);
    const outer = createAgent({ name: "outer", model, tools: [agentTool(inner, { description: "x" })] });
    const { state } = await outer.run({ input: "Go" }).result;
    expect(getMessageText(state.messages[2])).toContain("the provider stopped its answer: LANGUAGE");
  });
});

describe("an agent that never ends", () => {
  const look = defineTool({ name: "look", description: "Looks.", input: z.object({}), run: () => "nothing" });
  const createEndlessAgent = () =>
    createAgent({ name: "a", model: scriptedModel(() => call("look", {})), tools: [look] });
  const getMessage = (result: Promise<unknown>): Promise<string> =>
    result.then(
      () => "it ended",
      (error: unknown) => (isStatewrightError(error, "step_limit") ? error.message : String(error)),
    );

  test("an agent at its step limit fails with its number of model requests and the options that end agents", async () => {
    const said = await getMessage(createEndlessAgent().run({ input: "Go", maxSteps: 6 }).result);
    expect(said).toContain("did not end within 6 supersteps: its model was called 3 times since the last user message");
    for (const option of ["maxTurns", "stopWhen", "maxSteps"]) expect(said).toContain(option);
    expect(said).not.toContain("cycle");
  });

  test("the step limit error counts model requests since the last input, also for an agent inside a graph", async () => {
    const store = memoryStore();
    const agent = createAgent({
      name: "a",
      model: scriptedModel(({ messages }) => (messages.length === 1 ? say("Hi") : call("look", {}))),
      tools: [look],
      store,
    });
    await agent.run({ thread: "t", input: "Hello" }).result;
    const said = await getMessage(agent.run({ thread: "t", input: "Go", maxSteps: 2 }).result);
    expect(said).toContain("called once since");
    const inner = createEndlessAgent();
    const outer = defineGraph({ name: "outer", state: defineState({ n: z.number().default(0) }) })
      .nodes({ a: subgraph(inner, { input: () => inner.toInput("Go"), output: () => ({ n: 1 }) }) })
      .edges({ [START]: "a", a: END });
    expect(await getMessage(run(outer, { maxSteps: 4, input: {} }).result)).toContain("called 2 times since");
  });

  test("the step limit error of a graph without tools names a cycle and no model", async () => {
    const graph = defineGraph({ name: "g", state: defineState({ n: z.number().default(0) }) })
      .nodes({ a: ({ n }) => ({ n: n + 1 }) })
      .edges({ [START]: "a", a: route(["a", END], () => "a") });
    const said = await getMessage(run(graph, { maxSteps: 2, input: {} }).result);
    expect(said).toContain("Fix a cycle without an exit, or resume with a higher maxSteps");
    expect(said).not.toContain("model");
  });
});
