/** Settings per turn: request settings, tools, model, and the decision about a further turn. */
import {
  defineContext,
  defineState,
  defineTool,
  type ModelRequest,
  memoryStore,
  type RunEvent,
  toolRegistry,
} from "@statewright/core";
import { call, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createAgent, getAgentEnd, hasToolCall, turnCountIs } from "../../src/index.ts";

const tools = ["look", "order", "pay"].map((name) =>
  defineTool({ name, description: `Does ${name}.`, input: z.object({}), effect: "pure", run: () => `${name} done` }),
);
const Desk = defineContext({ customer: z.string() });
const Cart = defineState({ cart: z.array(z.string()).default(["lamp"]) });
const looks = (times: number): readonly ScriptedEntry[] => Array.from({ length: times }, () => call("look", {}));
const names = ({ tools: shown }: ModelRequest) => shown.map(({ name }) => name);

describe("settings of a turn", () => {
  test("settings are part of every model request, and a toolChoice with every too", async () => {
    const model = scriptedModel([...looks(1), say("Done")]);
    const settings = { temperature: 0, topP: 0.5, maxOutputTokens: 100, seed: 7, stopSequences: ["END"] };
    const agent = createAgent({ name: "a", model, tools, settings, toolChoice: { tool: "look", every: true } });
    await agent.run({ input: "Go" }).result;
    expect(model.requests).toHaveLength(2);
    for (const request of model.requests) expect(request).toMatchObject({ ...settings, toolChoice: { tool: "look" } });
  });

  test.each([
    [{ tool: "look" }, [{ tool: "look" }, undefined, undefined]],
    ["required", ["required", undefined, undefined]],
    [{ choice: "required", every: true }, ["required", "required", "required"]],
    [{ tool: "look", every: false }, [{ tool: "look" }, undefined, undefined]],
    ["none", ["none", "none", "none"]],
  ] as const)(
    "the tool choice %j holds as long as it says, and again after the next user message [FX97]",
    async (toolChoice, sent) => {
      const model = scriptedModel([...looks(2), say("Done"), ...looks(2), say("Done")]);
      const agent = createAgent({ name: "a", model, tools, toolChoice });
      const store = memoryStore();
      await agent.run({ store, thread: "t", input: "Go" }).result;
      await agent.run({ store, thread: "t", input: "Again" }).result;
      expect(model.requests.map((request) => request.toolChoice)).toEqual([...sent, ...sent]);
    },
  );

  test.each([
    { tool: "look", every: 1 },
    { choice: "auto", every: true },
  ])("the tool choice %j is refused when the agent is created [FX97]", (toolChoice) => {
    const make = () => createAgent({ name: "a", model: scriptedModel([]), tools, toolChoice: toolChoice as never });
    expect(make).toThrow(/invalid_option: agent "a": `toolChoice/);
  });

  test.each([
    ["an unknown setting", { settings: { topp: 1 } }, /"topp"/],
    ["an unknown choice", { toolChoice: "any" }, /toolChoice.+"any"/],
    ["a choice of an unknown tool", { toolChoice: { tool: "sell" } }, /unknown tool "sell".+"look", "order", "pay"/],
    [
      "a choice of a tool that is not advertised",
      { toolChoice: { tool: "pay" }, allowedTools: ["look"] },
      /`toolChoice` must be the name of a tool in `allowedTools`, got "pay"/,
    ],
    ["a prepareStep that is not a function", { prepareStep: {} }, /prepareStep/],
    ["an invalid condition", { stopWhen: 5 }, /stopWhen/],
    ["a limit of no calls", { maxToolCalls: 0 }, /agent "a": `maxToolCalls` must be an integer ≥ 1, got 0/],
    ["a state with the channel of turns", { state: defineState({ agentTurns: z.number().default(0) }) }, /agentTurns/],
  ])("createAgent settings are refused: %s", (_what, options, says) => {
    const make = () => createAgent({ name: "a", model: scriptedModel([]), tools, ...(options as object) });
    expect(make).toThrow(says);
  });
});

test("toolChoice may name the final call or a provider tool", async () => {
  const output = z.object({ n: z.int() });
  const model = scriptedModel([call("final_answer", { n: 1 })]);
  const final = createAgent({ name: "a", model, output, toolChoice: { tool: "final_answer" } });
  expect((await final.run({ input: "Go" }).result).output).toEqual({ n: 1 });
  const providerTools = [{ name: "web_search", id: "acme.search", args: {} }];
  const searching = scriptedModel([say("Found.")]);
  const choice = { tool: "web_search" };
  await createAgent({ name: "b", model: searching, providerTools, toolChoice: choice }).run({ input: "Go" }).result;
  expect(searching.requests).toMatchObject([{ toolChoice: choice }]);
});

describe("prepareStep", () => {
  test("prepareStep configures each request from state, context and turn number", async () => {
    const model = scriptedModel([...looks(2), say("Done")]);
    const large = scriptedModel([say("From the large one")], { id: "large" });
    const seen: unknown[] = [];
    const agent = createAgent({
      name: "a",
      model,
      tools,
      context: Desk,
      state: Cart,
      instructions: "As always.",
      settings: { temperature: 1, seed: 7 },
      prepareStep: ({ state, context, turn, messages }) => {
        expectTypeOf(state.cart).toEqualTypeOf<readonly string[]>();
        expectTypeOf(context.customer).toEqualTypeOf<string>();
        seen.push([turn, context.customer, state.cart[0], messages.length]);
        if (turn === 1) return undefined;
        if (turn === 2)
          return {
            instructions: "Be quick.",
            allowedTools: ["look"],
            toolChoice: "required",
            settings: { temperature: 0 },
            messages: messages.slice(0, 1),
          };
        return { model: large };
      },
    });
    const { state } = await agent.run({ input: "Go", context: { customer: "c1" } }).result;
    expect(seen).toEqual([
      [1, "c1", "lamp", 1],
      [2, "c1", "lamp", 3],
      [3, "c1", "lamp", 5],
    ]);
    const [first, second] = model.requests;
    expect(first).toMatchObject({ instructions: "As always.", temperature: 1, seed: 7 });
    expect(names(first as ModelRequest)).toEqual(["look", "order", "pay"]);
    expect(second).toMatchObject({ instructions: "Be quick.", temperature: 0, seed: 7, toolChoice: "required" });
    expect(second?.messages).toHaveLength(1);
    expect(names(second as ModelRequest)).toEqual(["look"]);
    expect(large.requests).toHaveLength(1);
    expect(state.messages).toHaveLength(6);
    expect(Object.keys(state).sort()).toEqual(["cart", "messages"]);
  });

  test("prepareStep may be async, and its turn number restarts at 1 with each input", async () => {
    const store = memoryStore();
    const turns: number[] = [];
    const agent = createAgent({
      name: "a",
      model: scriptedModel([...looks(1), say("one"), say("two")]),
      tools,
      store,
      prepareStep: async ({ turn }) => {
        await Promise.resolve();
        turns.push(turn);
        return {};
      },
    });
    await agent.run({ thread: "t", input: "Go" }).result;
    await agent.run({ thread: "t", input: "Go on" }).result;
    expect(turns).toEqual([1, 2, 1]);
  });

  test("prepareStep runs again after a crash with the same turn number", async () => {
    const store = memoryStore();
    const peer = store.peer();
    const turns: number[] = [];
    let died = false;
    const model = scriptedModel([
      ...looks(1),
      () => {
        if (!died) store.crash();
        died = true;
        return say("Done");
      },
      say("Done"),
    ]);
    const agent = createAgent({
      name: "a",
      model,
      tools,
      prepareStep: ({ turn }) => {
        turns.push(turn);
        return undefined;
      },
    });
    const dead = await agent.run({ thread: "t", input: "Go", store }).result.then(
      ({ status }) => status,
      () => "dead",
    );
    expect(dead).not.toBe("done");
    expect(await agent.resume({ thread: "t", store: peer }).result).toMatchObject({ status: "done" });
    expect(turns).toEqual([1, 2, 2]);
  });

  test("a call of a tool that prepareStep did not advertise in its turn is rejected", async () => {
    const model = scriptedModel([call("pay", {}), say("Done")]);
    const agent = createAgent({ name: "a", model, tools, prepareStep: () => ({ allowedTools: ["look"] }) });
    const rejected: string[] = [];
    for await (const event of agent.stream({ input: "Go" }))
      if (event.type === "tool.rejected") rejected.push(event.reason);
    expect(rejected).toEqual(["not_advertised"]);
  });

  test("an agent chooses native output or a final call by the model that prepareStep selects", async () => {
    const keeps = { ...scriptedModel([say('{"n":1}')]), structuredOutput: true };
    const agent = createAgent({
      name: "a",
      model: scriptedModel([...looks(1)]),
      tools,
      output: z.object({ n: z.number() }),
      prepareStep: ({ turn }) => (turn === 1 ? {} : { model: keeps }),
    });
    expect(await agent.run({ input: "Go" }).result).toMatchObject({ output: { n: 1 } });
    expect(names(keeps.requests[0] as ModelRequest)).toEqual(["look", "order", "pay"]);
  });

  test.each([
    ["an unknown tool name", { allowedTools: ["sell"] }, /unknown tool "sell"/],
    ["a choice of an unknown tool", { toolChoice: { tool: "sell" } }, /unknown tool "sell"/],
    [
      "a choice of a tool that is not advertised",
      { toolChoice: { tool: "pay" }, allowedTools: ["look"] },
      /`toolChoice` must be the name of a tool in `allowedTools`, got "pay"/,
    ],
    ["an unknown request property", { activeTools: ["look"] }, /"activeTools".+allowedTools/],
    ["an invalid model", { model: "gpt-5" }, /model/],
    ["an unknown setting", { settings: { topp: 1 } }, /"topp"/],
    ["an unreadable value", 5, /5/],
  ])("prepareStep fails the turn for %s, before any model request", async (_what, prepared, says) => {
    const model = scriptedModel([say("Done")]);
    const agent = createAgent({ name: "a", model, tools, prepareStep: () => prepared as object });
    await expect(agent.run({ input: "Go" }).result).rejects.toThrow(says);
    expect(model.requests).toEqual([]);
  });
});

describe("stopWhen", () => {
  test("stopWhen ends the agent after a number of turns, with the calls of the last turn answered", async () => {
    const model = scriptedModel(looks(9));
    const agent = createAgent({ name: "a", model, tools, stopWhen: turnCountIs(3) });
    const { state, ...result } = await agent.run({ input: "Go" }).result;
    expect(result).toMatchObject({ status: "done", ended: { by: "stopWhen" }, text: "" });
    expect(model.requests).toHaveLength(3);
    expect(state.messages.at(-1)).toMatchObject({ role: "tool", content: [{ text: "look done" }] });
  });

  test("stopWhen ends the agent after a call of a named tool, and any condition of a list is enough", async () => {
    const model = scriptedModel([...looks(1), [call("order", {}), call("look", {})], ...looks(9)]);
    const agent = createAgent({ name: "a", model, tools, stopWhen: [turnCountIs(9), hasToolCall("pay", "order")] });
    const { state } = await agent.run({ input: "Go" }).result;
    expect(model.requests).toHaveLength(2);
    expect(getAgentEnd(state.messages)).toEqual({ by: "stopWhen" });
  });

  test("stopWhen calls a custom condition with state, messages and turns", async () => {
    const agent = createAgent({
      name: "a",
      model: scriptedModel(looks(9)),
      tools,
      state: Cart,
      stopWhen: ({ state, messages, turns }) => {
        expectTypeOf(state.cart).toEqualTypeOf<readonly string[]>();
        return state.cart.length === 1 && messages.length > 3 && turns === 2;
      },
    });
    const { state } = await agent.run({ input: "Go" }).result;
    expect(state.messages).toHaveLength(5);
  });

  test("stopWhen restarts its turn count with each input and keeps it across a crash", async () => {
    const store = memoryStore();
    const agent = createAgent({ name: "a", model: scriptedModel(looks(9)), tools, store, stopWhen: turnCountIs(2) });
    await agent.run({ thread: "t", input: "Go" }).result;
    const { state } = await agent.run({ thread: "t", input: "Go on" }).result;
    expect(state.messages.filter(({ role }) => role === "assistant")).toHaveLength(4);
    const peer = store.peer();
    let seen = 0;
    const dying = agent.run({ thread: "t2", input: "Go" });
    dying.on((event) => {
      if (event.type === "tool.completed" && ++seen === 1) store.crash();
    });
    await dying.result.catch(() => "dead");
    const resumed = await agent.resume({ thread: "t2", store: peer }).result;
    expect(resumed.state.messages.filter(({ role }) => role === "assistant")).toHaveLength(2);
  });

  test("stopWhen does not end an agent with a steered message", async () => {
    const agent = createAgent({
      name: "a",
      model: scriptedModel([...looks(1), say("Heard")]),
      tools,
      stopWhen: turnCountIs(1),
    });
    const run = agent.run({ input: "Go" });
    run.on((event) => {
      if (event.type === "tool.started") void run.steer("And now?");
    });
    const { state } = await run.result;
    expect(state.messages.at(-1)).toMatchObject({ role: "assistant", content: [{ text: "Heard" }] });
  });

  test("turnCountIs and hasToolCall refuse conditions that can never hold", () => {
    expect(() => turnCountIs(0)).toThrow(/turnCountIs: expected an integer ≥ 1, got 0/);
    expect(() => turnCountIs(1.5)).toThrow(/expected an integer ≥ 1, got 1\.5/);
    expect(() => hasToolCall()).toThrow(/at least one tool name, got none/);
  });

  test("an async stopWhen condition fails the run", async () => {
    const wrong = (async () => true) as never;
    const agent = createAgent({ name: "a", model: scriptedModel(looks(1)), tools, stopWhen: wrong });
    await expect(agent.run({ input: "Go" }).result).rejects.toThrow(/promise/);
  });
});

test("getAgentEnd derives the end of a conversation from its messages", async () => {
  const model = scriptedModel([say("Hi")]);
  const result = await createAgent({ name: "a", model }).run({ input: "Go" }).result;
  expect(result).toMatchObject({ ended: { by: "answer" }, text: "Hi" });
  expect(getAgentEnd(result.state.messages)).toEqual({ by: "answer" });
});

test("an agent with an empty registry has a tool node for tools registered later", async () => {
  const registry = toolRegistry();
  const [look] = tools;
  const model = scriptedModel([call("look", {}), say("Done"), call("look", {}), say("Done")]);
  const agent = createAgent({ name: "a", model, tools: registry, store: memoryStore() });
  const events: RunEvent[] = [];
  agent.subscribe((event) => events.push(event));
  await agent.run({ thread: "t", input: "Go" }).result;
  expect(events.flatMap((event) => (event.type === "tool.rejected" ? [event.reason] : []))).toEqual(["unknown"]);
  if (look !== undefined) registry.register(look);
  const { state } = await agent.run({ thread: "t", input: "Go" }).result;
  expect(state.messages.at(-2)).toMatchObject({ isError: false, content: [{ text: "look done" }] });
});
