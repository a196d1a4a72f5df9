import { todo, todoList } from "@statewright/tools";
import { createAgent, defineTool, type Model, memoryStore } from "statewright";
import { type SpanStart, type TracedSpan, traceRun } from "statewright/inspect";
import {
  cacheReplies,
  inputGuardrail,
  limitModelRate,
  logCalls,
  outputGuardrail,
  redactPersonal,
  selectToolsByModel,
} from "statewright/middleware";
import * as z from "zod";

export const lines: string[] = [];
export const spans: string[] = [];
const store = memoryStore();

const order = defineTool({
  name: "order",
  description: "Order something.",
  input: z.object({ what: z.string() }),
  run: ({ what }) => `Ordered ${what} for kim@example.com.`,
});

// guardrails of inputs and answers
const onTopic = inputGuardrail({
  check: ({ text }) =>
    text.includes("poem") ? { refuse: "I only help with orders.", reason: "off topic" } : undefined,
});
const noPromises = outputGuardrail({
  check: ({ text }) =>
    text.includes("guarantee") ? { askAgain: "Say it again without promising anything." } : undefined,
});

export const shop = (model: Model) =>
  createAgent({
    name: "shop",
    model,
    tools: [order],
    store,
    middleware: [
      onTopic,
      noPromises,
      redactPersonal({ strategy: { card: "block", email: "mask" } }),
      logCalls({ log: (line) => lines.push(line) }),
    ],
  });

// a check by a model
export const friendly = (judge: Model) =>
  outputGuardrail({
    check: async ({ text }, { ask }) => {
      const messages = [{ role: "user" as const, id: "judge", content: [{ type: "text" as const, text }] }];
      const request = { instructions: "Is this friendly? Answer yes or no.", messages, tools: [] };
      const { content } = await ask("judge", { model: judge, request });
      return JSON.stringify(content).includes("yes") ? undefined : { refuse: "I would rather not say." };
    },
  });

// many tools, few requests
export const planner = (model: Model, small: Model) =>
  createAgent({
    name: "planner",
    model,
    tools: [order, todo()],
    middleware: [
      selectToolsByModel({ model: small, max: 5, always: ["todo"] }),
      todoList(),
      cacheReplies({ ttlMs: 600_000 }),
      limitModelRate({ requests: 50, tokens: 40_000 }),
    ],
  });

// a run as spans
function startSpan({ name, attributes, parent }: SpanStart): TracedSpan {
  spans.push(`${parent === undefined ? "" : "  "}${name}`);
  return { set: () => undefined, fail: () => undefined, end: () => void attributes };
}
export const traced = (model: Model) =>
  traceRun(shop(model).run({ thread: "t9", input: "A chair, please" }), { startSpan });
