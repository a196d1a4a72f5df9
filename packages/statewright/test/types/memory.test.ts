/** Memories belong to a user: an agent whose context has no user does not compile. */
import { say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext, memoryTools } from "statewright";
import { recallMemories, saveMemories, summarise } from "statewright/middleware";
import { expect, test } from "vitest";
import * as z from "zod";

const model = scriptedModel([say("ok")]);
const Visitor = defineContext({ user: z.string() });
const Place = defineContext({ city: z.string() });
const namespace = ({ context }: { readonly context: { readonly user: string } }) => ["users", context.user];

test("memory tools and middleware require the context that their namespace reads", () => {
  createAgent({ name: "a", model, context: Visitor, tools: memoryTools({ namespace }) });
  createAgent({ name: "a", model, context: Visitor, middleware: [recallMemories({ namespace })] });
  createAgent({
    name: "a",
    model,
    context: Place,
    // @ts-expect-error the context has no user
    tools: memoryTools({ namespace }),
  });
  createAgent({
    name: "a",
    model,
    context: Place,
    // @ts-expect-error the context has no user
    middleware: [recallMemories({ namespace })],
  });
  createAgent({
    name: "a",
    model,
    context: Place,
    // @ts-expect-error the context has no user
    middleware: [saveMemories({ namespace, model })],
  });
  expect(memoryTools({ namespace }).map(({ spec }) => spec.name)).toEqual(["remember", "recall", "forget"]);
});

test("summarise requires a model", () => {
  // @ts-expect-error no model
  expect(() => summarise({ triggerTokens: 100 })).toThrow(/invalid_option/);
});
