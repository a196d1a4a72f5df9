import { defineContext, defineState, defineTool, inject, type Tool, ToolError } from "@statewright/core";
import { type ToolPack, toolConformance } from "@statewright/testing/conformance";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { virtualClock } from "../src/index.ts";

const Desk = defineContext({ customer: z.string() });
const Cart = defineState({ cart: z.array(z.string()).default([]) });

const find = defineTool({
  name: "find_order",
  description: "Find the orders of a customer by a word.",
  input: z.object({ word: z.string().describe("A word of the order"), limit: z.int().optional().describe("How many") }),
  inject: {
    customer: Desk.from((desk) => desk.customer),
    cart: Cart.from((state) => state.cart),
    key: inject.secret("FIND_KEY"),
  },
  effect: "pure",
  run: ({ word }, { injected }) => {
    if (injected.customer !== "customer-4711" || injected.key.reveal() !== "SECRET-key-1")
      throw new Error("no customer");
    if (word === "nothing") throw ToolError.notFound("There is no such order");
    return { content: `Found ${injected.cart.length} orders for ${word}`, details: { rows: ["a row for people"] } };
  },
});

const now = defineTool({
  name: "now",
  description: "The time, as milliseconds since 1970.",
  input: z.object({}),
  effect: "pure",
  run: (_args, { clock }) => `${clock.now()}`,
});

const draw = defineTool({
  name: "draw",
  description: "Draw a small picture of a word.",
  input: z.object({ word: z.string().describe("What to draw") }),
  run: ({ word }) => ({
    content: [
      { type: "text", text: word },
      { type: "image", mimeType: "image/png", data: "aGVsbG8=" },
    ],
  }),
});

const watch = defineTool({
  name: "watch",
  description: "Watch a page until it changes.",
  input: z.object({ times: z.int().optional().describe("How often to look; without end when left out") }),
  run: async ({ times = Number.POSITIVE_INFINITY }, { update, wait }) => {
    for (let looked = 1; looked <= times; looked++) {
      await wait(1_500);
      update?.({ content: `Looked ${looked} times`, details: { looked } });
    }
    return "It has changed";
  },
});

function pack(tools: readonly Tool<never, never>[], samples: ToolPack["samples"]): ToolPack {
  return {
    tools,
    samples,
    context: { customer: "customer-4711" },
    state: { cart: ["one"] },
    secrets: { FIND_KEY: "SECRET-key-1" },
    world: virtualClock(),
  };
}

const samples: ToolPack["samples"] = {
  find_order: { good: { word: "lamp" }, failing: { word: "nothing" } },
  now: { good: {} },
  draw: { good: { word: "sun" }, image: { word: "sun" } },
  watch: { good: { times: 1 }, long: {} },
};

test.each(toolConformance)("the tool suite passes for a pack of tools: $name [S1.88]", ({ run }) =>
  run(() => pack([find, now, draw, watch], samples)),
);

async function failing(tool: Tool<never, never>, calls: ToolPack["samples"][string]): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of toolConformance)
    await run(() => pack([tool], { [tool.spec.name]: calls })).catch((error: unknown) =>
      failed.push(`${name}: ${error}`),
    );
  return failed;
}

describe("the tool suite", () => {
  test("the tool suite detects a tool without explanations", async () => {
    const mute = defineTool({ name: "mute", description: "Mute", input: z.object({ a: z.string() }), run: () => "x" });
    const found = await failing(mute, { good: { a: "x" } });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain("the description of every tool explains the tool");
  });

  test("the tool suite detects a tool that accepts invalid arguments", async () => {
    const description = "Takes whatever a model makes up.";
    const loose = defineTool({
      name: "loose",
      description,
      input: {
        jsonSchema: { type: "object", properties: { a: { type: "string", description: "A text" } }, required: ["a"] },
        validate: () => [],
      },
      run: () => "x",
    });
    const found = await failing(loose, { good: { a: "x" } });
    expect(found.map((text) => text.split(":")[0])).toEqual([
      "invalid arguments return an error result and never reach the tool",
    ]);
  });

  test("the tool suite detects a tool that reveals its secret and a tool that fails without a text", async () => {
    const leaky = defineTool({
      name: "leaky",
      description: "Says more than it should say.",
      input: z.object({}),
      inject: { customer: Desk.from((desk) => desk.customer) },
      run: (_args, { injected }) => `for ${injected.customer}`,
    });
    expect((await failing(leaky, { good: {} })).join()).toContain("a hidden value appears in a model request");
    const silent = defineTool({
      name: "silent",
      description: "Fails without saying why it failed.",
      input: z.object({ fail: z.boolean().optional().describe("Whether to fail") }),
      run: ({ fail }) => ({ content: "", isError: fail === true }),
    });
    expect((await failing(silent, { good: {}, failing: { fail: true } })).join()).toContain(
      'the error result of "silent" has no text',
    );
  });

  test("the tool suite detects a tool that ignores its signal and a tool without updates", async () => {
    const deaf = defineTool({
      name: "deaf",
      description: "Goes on whatever its signal says.",
      input: z.object({ times: z.int().describe("How often") }),
      run: async ({ times }, { update, clock }) => {
        const began = clock.now();
        for (let done = 0; done < times; done++) update?.({ content: "on", details: { done } });
        return times > 1 ? new Promise<never>(() => undefined) : `${began}`;
      },
    });
    expect((await failing(deaf, { good: { times: 1 }, long: { times: 5 } })).join()).toContain(
      "continued after its abort signal",
    );
  });
});
