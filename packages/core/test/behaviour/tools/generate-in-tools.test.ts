/** `generate` inside of a tool. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type FailedAttempt,
  getMessageText,
  type Middleware,
  type Model,
  run,
  START,
  ToolError,
  type ToolRuntime,
  toolNode,
} from "../../../src/index.ts";
import { answerWith, createActingModel, createReply } from "../../support/acting-model.ts";
import { collectEvents, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Graph whose tool node answers one call of `summarise`. */
function createGraph(
  ask: (runtime: ToolRuntime) => Promise<string>,
  {
    effect = "idempotent",
    middleware = [],
  }: { effect?: "idempotent" | "once"; middleware?: readonly Middleware[] } = {},
) {
  const summarise = defineTool({
    name: "summarise",
    description: "Summarises a page.",
    input: z.object({}),
    effect,
    retry: { attempts: 2, initialMs: 0 },
    run: (_args, runtime) => ask(runtime),
  });
  return defineGraph({ name: "work", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools: [summarise], middleware }) })
    .edges({ [START]: "tools", tools: END });
}

const input = {
  messages: [
    {
      role: "assistant" as const,
      id: "a",
      content: [{ type: "call" as const, id: "c1", name: "summarise", args: {} }],
      finish: "calls" as const,
    },
  ],
};

test("a tool asks a model with typed output; the answer does not stream, and its usage is part of the result [Y2]", async () => {
  const model = createActingModel("small", answerWith("no JSON"), answerWith('{"points":["a","b"]}'));
  const graph = createGraph(async ({ generate }) => {
    const output = z.object({ points: z.array(z.string()) });
    const { object } = await generate({ model, prompt: "Summarise", output: { schema: output, strategy: "native" } });
    expectTypeOf(object).toEqualTypeOf<{ points: string[] }>();
    return object.points.join(", ");
  });
  const handle = run(graph, { input });
  const events = collectEvents(handle);
  const pieces: string[] = [];
  for await (const piece of handle.text()) pieces.push(piece);
  const { state } = await handle.result;
  expect(getMessageText(state.messages[1])).toBe("a, b");
  expect(state.messages[1]).toMatchObject({ usage: { inputTokens: 6, outputTokens: 4 } });
  expect(pieces).toEqual([]);
  expect(getOnlyEvent(events, "model.auxiliary_called")).toMatchObject([{ by: "summarise", model: "small" }]);
  expect(getOnlyEvent(events, "message.completed").filter(({ message }) => message.role === "assistant")).toEqual([]);
});

test("a finished answer is used again by the next attempt of the tool, and equal questions are two answers [Y2]", async () => {
  let nth = 0;
  const model = createActingModel("small", () => createReply(`Answer ${++nth}`));
  const graph = createGraph(async ({ generate, attempt }) => {
    const first = (await generate({ model, prompt: "Same" })).text;
    const second = (await generate({ model, prompt: "Same" })).text;
    if (attempt === 1) throw ToolError.unavailable("Not yet");
    return `${first}, ${second}`;
  });
  const world = createVirtualWorld();
  const { result } = run(graph, { world, input });
  await world.advance(1_000);
  expect(getMessageText((await result).state.messages[1])).toBe("Answer 1, Answer 2");
});

test("hooks of the tool node see each request of a tool and its usage [Y2]", async () => {
  const seen: string[] = [];
  const attempts: FailedAttempt[] = [];
  const watching = defineMiddleware({
    name: "watching",
    beforeRequest: ({ model }) => {
      seen.push(`asks ${model}`);
      return (usage) => void seen.push(`used ${usage?.inputTokens}`);
    },
    onFailedAttempt: ({ attempt }) => void attempts.push(attempt),
  });
  const model = createActingModel("small", answerWith("Hi"));
  const graph = createGraph(async ({ generate }) => (await generate({ model, prompt: "Hi" })).text, {
    middleware: [watching],
  });
  await run(graph, { input }).result;
  expect(seen).toEqual(["asks small", "used 3"]);
  expect(attempts).toEqual([{ model: "small", kind: "auxiliary", usage: { inputTokens: 3, outputTokens: 2 } }]);
});

test("a failed question is a failed call, and a model by name is found for a tool [Y2]", async () => {
  const models: Record<string, Model> = { fast: createActingModel("fast", answerWith("Found")) };
  const asking = (name: string) =>
    createGraph(async ({ generate }) => (await generate({ model: name, prompt: "Hi" })).text);
  const found = await run(asking("fast"), { input, models }).result;
  expect(getMessageText(found.state.messages[1])).toBe("Found");
  const missing = await run(asking("slow"), { input, models }).result;
  expect(missing.state.messages[1]).toMatchObject({ role: "tool", isError: true });
});
