/** Invalid agents do not compile, and results of agents are typed. Nothing here is called. */
import {
  defineContext,
  defineState,
  defineTool,
  type Message,
  type Model,
  type RunEvent,
  type Tool,
  type ToolRegistry,
} from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { type AgentResult, type AgentRun, createAgent, hasToolCall, modelNode, turnCountIs } from "../../src/index.ts";
import { logCalls } from "../../src/middleware.ts";

declare const model: Model;
const Desk = defineContext({ customer: z.string() });
const Cart = defineState({ cart: z.array(z.string()).default([]) });
const Order = z.object({ item: z.string(), count: z.int() });
const refund = defineTool({
  name: "refund",
  description: "Gives money back.",
  input: z.object({}),
  inject: { customer: Desk.from((desk) => desk.customer) },
  run: () => "done",
});

test("the output type of a result is the output type of the agent's schema", () => {
  const programs = async () => {
    const zod = createAgent({ name: "a", model, output: Order });
    expectTypeOf((await zod.run({ input: "Go" }).result).output).toEqualTypeOf<
      { item: string; count: number } | undefined
    >();
    const options = createAgent({ name: "a", model, output: { schema: z.array(z.string()), strategy: "tool" } });
    expectTypeOf((await options.resume({ thread: "t" }).result).output).toEqualTypeOf<string[] | undefined>();
    const json = createAgent({ name: "a", model, output: jsonSchemaInput<{ readonly n: number }>({ type: "object" }) });
    for await (const event of json.stream({ input: "Go" })) expectTypeOf(event).toEqualTypeOf<RunEvent>();
    expectTypeOf((await json.stream({ input: "Go" }).result).output).toEqualTypeOf<
      { readonly n: number } | undefined
    >();
    const date = createAgent({
      name: "a",
      model,
      output: z.object({ at: z.string().transform((at) => new Date(at)) }),
    });
    expectTypeOf((await date.run({ input: "Go" }).result).output).toEqualTypeOf<{ at: Date } | undefined>();
    const none = createAgent({ name: "a", model });
    const result = await none.run({ input: "Go" }).result;
    expectTypeOf(result.output?.messages).toEqualTypeOf<readonly Message[] | undefined>();
    expectTypeOf(result.ended?.by).toEqualTypeOf<string | undefined>();
    if (result.status === "done") expectTypeOf(result.ended.by).toEqualTypeOf<string>();
    // @ts-expect-error an output that may be missing is looked at first
    (await zod.run({ input: "Go" }).result).output.item;
    // @ts-expect-error there is no such part
    (await zod.run({ input: "Go" }).result).output?.price;
    // @ts-expect-error a strategy that there is not
    createAgent({ name: "a", model, output: { schema: Order, strategy: "json" } });
    // @ts-expect-error no schema
    createAgent({ name: "a", model, output: { type: "object" } });
  };
  expect(programs).toBeTypeOf("function");
});

test("per-turn options of an agent are typed with its state and context", () => {
  const programs = () => {
    const sound = createAgent({
      name: "a",
      model,
      context: Desk,
      state: Cart,
      tools: [refund],
      output: Order,
      settings: { temperature: 0, topP: 1, stopSequences: ["END"] },
      toolChoice: { tool: "refund" },
      stopWhen: [turnCountIs(5), hasToolCall("refund"), ({ state, turns }) => state.cart.length > turns],
      prepareStep: ({ state, context, turn }) => {
        expectTypeOf(state.cart).toEqualTypeOf<readonly string[]>();
        expectTypeOf(state.messages).toEqualTypeOf<readonly Message[]>();
        expectTypeOf(context.customer).toEqualTypeOf<string>();
        return turn > 3 ? { toolChoice: "none", settings: { temperature: 1 } } : undefined;
      },
      onFinish: ({ output, ended, state, context }) => {
        expectTypeOf(output).toEqualTypeOf<{ item: string; count: number } | undefined>();
        expectTypeOf(ended.by).toEqualTypeOf<string>();
        expectTypeOf(state.cart).toEqualTypeOf<readonly string[]>();
        expectTypeOf(context.customer).toEqualTypeOf<string>();
      },
    });
    // @ts-expect-error the context has no such part
    createAgent({ name: "a", model, context: Desk, prepareStep: ({ context }) => ({ instructions: context.shop }) });
    // @ts-expect-error the state has no such channel
    createAgent({ name: "a", model, state: Cart, stopWhen: ({ state }) => state.basket.length > 1 });
    // @ts-expect-error a number is no model
    createAgent({ name: "a", model, prepareStep: () => ({ model: 7 }) });
    // @ts-expect-error an option that there is not
    createAgent({ name: "a", model, prepareSteps: () => undefined });
    // @ts-expect-error a setting that there is not
    createAgent({ name: "a", model, settings: { temprature: 1 } });
    // @ts-expect-error toolChoice stands beside the settings
    createAgent({ name: "a", model, settings: { toolChoice: "auto" } });
    // @ts-expect-error a choice that there is not
    createAgent({ name: "a", model, toolChoice: "any" });
    // @ts-expect-error a condition that answers later
    createAgent({ name: "a", model, stopWhen: async () => true });
    // @ts-expect-error what a tool injects is in no context
    createAgent({ name: "a", model, tools: [refund] });
    // @ts-expect-error a tool that needs more than the agent has
    createAgent({ name: "a", model, tools: [] }).setTools([refund]);
    sound.setTools([refund]);
    return sound;
  };
  expect(programs).toBeTypeOf("function");
});

test("inputs, methods and parts of an agent are typed", () => {
  const programs = async () => {
    const agent = createAgent({ name: "a", model, context: Desk, state: Cart });
    const context = { customer: "c1" };
    agent.run({ input: { text: "See", files: [new Uint8Array(), { data: "AAAA", mimeType: "image/png" }] }, context });
    // @ts-expect-error files are a list
    agent.run({ input: { files: new Uint8Array() }, context });
    // @ts-expect-error the name that it has here is mimeType
    agent.run({ input: { files: [{ data: "AAAA", mediaType: "image/png" }] }, context });
    // @ts-expect-error the context that the agent declares
    agent.run({ input: "Go" });
    // @ts-expect-error a thread is named
    await agent.steer({ input: "Faster" });
    agent.subscribe((event, { thread }) => {
      expectTypeOf(event).toEqualTypeOf<RunEvent>();
      expectTypeOf(thread).toEqualTypeOf<string>();
    });
    const run: AgentRun<unknown> = agent.run({ input: "Go", context });
    const result: AgentResult<unknown> = await run.result;
    expectTypeOf(result.status).toEqualTypeOf<"done" | "waiting" | "paused" | "cancelled" | "queued" | "delivered">();
    modelNode({
      model,
      instructions: (state: { readonly messages: readonly Message[] }) => `${state.messages.length}`,
    });
    // @ts-expect-error the state has no conversation
    modelNode({ model, instructions: (state: { readonly cart: string }) => state.cart });
  };
  expect(programs).toBeTypeOf("function");
});

test("an unknown tool name does not compile when the tool names are known", () => {
  const look = defineTool({ name: "look", description: "Looks.", input: z.object({}), run: () => "seen" });
  const tools = [refund, look];
  const programs = (all: readonly string[], registry: ToolRegistry, own: Tool) => {
    const parts = { name: "a", model, context: Desk, tools } as const;
    createAgent({ ...parts, allowedTools: ["look"], toolChoice: { tool: "refund" } });
    createAgent({ ...parts, allowedTools: ({ messages }) => (messages.length > 3 ? ["look"] : ["look", "refund"]) });
    createAgent({
      ...parts,
      prepareStep: ({ turn }) => ({ allowedTools: ["look"], ...(turn === 1 && { toolChoice: { tool: "look" } }) }),
    });
    // The final call and provider-executed tools are also valid names.
    createAgent({ ...parts, output: Order, toolChoice: { tool: "final_answer" } });
    const search = { name: "web_search", id: "p.web_search", args: {} };
    createAgent({ ...parts, providerTools: [search], toolChoice: { tool: "web_search" } });
    // @ts-expect-error no tool has this name
    createAgent({ ...parts, allowedTools: ["loook"] });
    // @ts-expect-error a function that gives the name of no tool
    createAgent({ ...parts, allowedTools: () => ["loook"] });
    // @ts-expect-error no tool has this name
    createAgent({ ...parts, toolChoice: { tool: "loook" } });
    // @ts-expect-error a step that shows no tool
    createAgent({ ...parts, prepareStep: () => ({ allowedTools: ["loook"] }) });
    // @ts-expect-error a step that must call no tool
    createAgent({ ...parts, prepareStep: async () => ({ toolChoice: { tool: "loook" } }) });
    // @ts-expect-error a model node that shows no tool
    modelNode({ model, tools: [look], allowedTools: ["loook"] });
    // @ts-expect-error a model node that must call no tool
    modelNode({ model, tools: [look], toolChoice: { tool: "loook" } });
    const asked = createAgent(parts);
    const at = { thread: "t", context: { customer: "c1" } };
    asked.resume({ ...at, answers: { look: "seen", approve: true, "1:0:c1": true, "research.pick": 3 } });
    // @ts-expect-error no tool has this name, and nothing else asks
    asked.resume({ ...at, answers: { loook: "seen" } });
    // @ts-expect-error no answer to a call
    asked.resume({ ...at, answers: { approve: "perhaps" } });
    // The interrupts of this middleware are not part of its type.
    createAgent({ ...parts, middleware: [logCalls({ log: () => undefined })] }).resume({
      ...at,
      answers: { sure: true },
    });
    // With unknown names every name is accepted.
    createAgent({ name: "a", model, tools: registry, allowedTools: all, toolChoice: { tool: "later" } });
    createAgent({ name: "a", model, tools: [look, own], allowedTools: ["by_its_spec"] });
    modelNode({ model, tools: registry, toolChoice: { tool: "later" } });
  };
  expect(programs).toBeTypeOf("function");
});
