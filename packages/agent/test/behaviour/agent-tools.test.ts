/** Tools of an agent: in a list or a registry, written as classes or with defineTool, and advertised per turn. */
import {
  defineContext,
  defineState,
  defineTool,
  isStatewrightError,
  type RunEvent,
  type Tool,
  type ToolCall,
  type ToolRuntime,
  toolRegistry,
} from "@statewright/core";
import { toolSpec } from "@statewright/core/adapter";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { createAgent } from "../../src/index.ts";

const Desk = defineContext({ customer: z.string() });
const Cart = defineState({ cart: z.array(z.string()).default(["lamp"]), paid: z.boolean().default(false) });
type CartState = { readonly cart: readonly string[] };
type DeskContext = { readonly customer: string };

/** A tool class with fields, typed by the state and context that it reads. */
class CountCart implements Tool<CartState, DeskContext> {
  readonly spec = toolSpec({
    name: "count_cart",
    description: "Count what is in the cart of the customer.",
    input: z.object({ word: z.string().describe("A word for the items") }),
    effect: "pure",
  });
  readonly #mark: string;
  constructor(mark: string) {
    this.#mark = mark;
  }
  call(state: CartState, runtime: ToolRuntime<DeskContext>, made: ToolCall): string {
    expectTypeOf(state.cart).toEqualTypeOf<readonly string[]>();
    expectTypeOf(runtime.context.customer).toEqualTypeOf<string>();
    const { word } = made.args as { readonly word: string };
    return `${this.#mark}${state.cart.length} ${word} of ${runtime.context.customer}`;
  }
}

const defined = defineTool({
  name: "list_cart",
  description: "List what is in the cart of the customer.",
  input: z.object({}),
  inject: { cart: Cart.from((state) => state.cart), customer: Desk.from((desk) => desk.customer) },
  effect: "pure",
  run: (_args, { injected }) => `${injected.cart.join()} of ${injected.customer}`,
});

/** A tool as a plain object. */
const plain: Tool<CartState> = {
  spec: toolSpec({ name: "first", description: "The first thing in the cart.", input: z.object({}), effect: "pure" }),
  call: (state) => state.cart[0] ?? "nothing",
};

test("a class, a plain object and a defineTool value are tools of one agent with typed state and context, and a missing context fails to compile [K2]", async () => {
  const model = scriptedModel([
    [call("count_cart", { word: "items" }), call("list_cart", {}), call("first", {})],
    say("Done"),
  ]);
  const tools = [new CountCart("n="), defined, plain] as const;
  const agent = createAgent({ name: "cart", model, state: Cart, context: Desk, tools });
  const { state } = await agent.run({ thread: "t", input: "Go", context: { customer: "c1" } }).result;
  expect(state.messages.flatMap((message) => (message.role === "tool" ? message.content : []))).toEqual([
    { type: "text", text: "n=1 items of c1" },
    { type: "text", text: "lamp of c1" },
    { type: "text", text: "lamp" },
  ]);
  const Other = defineState({ cart: z.number().default(0) });
  const counts = [new CountCart("")];
  // @ts-expect-error the agent has no context
  const noContext = () => createAgent({ name: "cart", model, state: Cart, tools: counts });
  // @ts-expect-error the agent has no such state
  const noState = () => createAgent({ name: "cart", model, context: Desk, tools: counts });
  // @ts-expect-error the agent's state has another type there
  const otherState = () => createAgent({ name: "cart", model, state: Other, context: Desk, tools: counts });
  // @ts-expect-error what defineTool made says the same of itself
  const createOther = () => createAgent({ name: "cart", model, state: Other, context: Desk, tools: [defined] });
  expect([noContext, noState, otherState, createOther]).toHaveLength(4);
});

describe("allowedTools", () => {
  const tools = ["search", "order", "pay"].map((name) =>
    defineTool({ name, description: `Does ${name}.`, input: z.object({}), effect: "pure", run: () => name }),
  );
  const listShownTools = (model: {
    readonly requests: readonly { readonly tools: readonly { readonly name: string }[] }[];
  }) => model.requests.map((request) => request.tools.map(({ name }) => name));

  test("an allowedTools list advertises these tools in every turn, and a call of another tool is not run", async () => {
    const model = scriptedModel([[call("pay", {}), call("search", {})], say("Done")]);
    const agent = createAgent({ name: "shop", model, tools, allowedTools: ["search", "order"] });
    const events: RunEvent[] = [];
    const run = agent.run({ thread: "t", input: "Go" });
    run.on((event) => events.push(event));
    const { state } = await run.result;
    expect(listShownTools(model)).toEqual([
      ["order", "search"],
      ["order", "search"],
    ]);
    expect(state.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : []))).toEqual([
      true,
      false,
    ]);
    expect(events.flatMap((event) => (event.type === "tool.rejected" ? [event.reason] : []))).toEqual([
      "not_advertised",
    ]);
  });

  test("an allowedTools function selects tools in each turn from state and context", async () => {
    const model = scriptedModel([call("search", {}), call("order", {}), say("Done")]);
    const agent = createAgent({
      name: "shop",
      model,
      tools,
      context: Desk,
      allowedTools: (state, context) => {
        expectTypeOf(context.customer).toEqualTypeOf<string>();
        const asked = state.messages.filter(({ role }) => role === "assistant").length;
        return context.customer === "c1" && asked > 0 ? ["order", "search"] : ["search"];
      },
    });
    await agent.run({ thread: "t", input: "Go", context: { customer: "c1" } }).result;
    expect(listShownTools(model)).toEqual([["search"], ["order", "search"], ["order", "search"]]);
  });

  test("allowedTools with an unknown name is refused at creation, or fails the turn", async () => {
    const model = scriptedModel([say("Done")]);
    expect(() => createAgent({ name: "shop", model, tools, allowedTools: ["search", "sell"] })).toThrow(
      /unknown tool "sell".+Use "order", "pay", "search"/,
    );
    expect(() => createAgent({ name: "shop", model, tools, allowedTools: "search" as never })).toThrow(/allowedTools/);
    const agent = createAgent({ name: "shop", model, tools, allowedTools: () => ["sell"] });
    const error = await agent.run({ thread: "t", input: "Go" }).result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "invalid_option")).toBe(true);
    expect(model.requests).toEqual([]);
  });
});

test("a tool registered in the registry of an agent counts from the next request", async () => {
  const make = (name: string) =>
    defineTool({ name, description: `Does ${name}.`, input: z.object({}), effect: "pure", run: () => name });
  const registry = toolRegistry([make("search")]);
  const model = scriptedModel([call("search", {}), call("order", {}), say("Done")]);
  const agent = createAgent({ name: "shop", model, tools: registry });
  const run = agent.run({ thread: "t", input: "Go" });
  run.on((event) => {
    if (event.type === "tool.completed" && event.tool === "search") registry.register(make("order"));
  });
  const { state } = await run.result;
  expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
    ["search"],
    ["order", "search"],
    ["order", "search"],
  ]);
  expect(state.messages.flatMap((message) => (message.role === "tool" ? [message.isError] : []))).toEqual([
    false,
    false,
  ]);
});

test("onInvalidCall fail ends the run at an unknown tool, and each call is answered in the conversation", async () => {
  const model = scriptedModel([call("nothing", {}), say("Done")]);
  const tools = [defineTool({ name: "search", description: "Searches.", input: z.object({}), run: () => "x" })];
  const agent = createAgent({ name: "shop", model, tools, onInvalidCall: { unknown: "fail" } });
  const error = await agent.run({ thread: "t", input: "Go" }).result.catch((thrown: unknown) => thrown);
  expect(isStatewrightError(error, "tool_failed")).toBe(true);
});

test("toolTimeoutMs limits each tool of an agent, and the model reads the timeout [FX88]", async () => {
  const world = virtualClock({ waitsForWork: false });
  let reason: unknown;
  const hang = defineTool({
    name: "hang",
    description: "Hangs.",
    input: z.object({}),
    run: (_args, { signal }) =>
      new Promise<string>((resolve) =>
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          resolve("stopped");
        }),
      ),
  });
  const model = scriptedModel([call("hang", {}), say("It hangs.")]);
  const agent = createAgent({ name: "a", model, tools: [hang], toolTimeoutMs: 250 });
  const { result } = agent.run({ input: "go", world });
  await world.advance(250);
  expect((await result).text).toBe("It hangs.");
  expect(String(reason)).toContain("250 ms");
  expect(() => createAgent({ name: "a", model, toolTimeoutMs: 0 })).toThrow(/toolTimeoutMs/);
});
