/** beforeAgent and afterAgent hooks: once per run, recorded, without a separate checkpoint. */
import { agentRoutes, createAgent, getAgentEnd, modelNode } from "@statewright/agent";
import {
  type AgentEnding,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  getMessageText,
  type Message,
  type Middleware,
  memoryStore,
  route,
  run,
  START,
  type Store,
  toolNode,
  type UserMessage,
} from "@statewright/core";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const sum = channel.reduce(z.number().default(0), (total, more: number) => total + more);
const work = defineTool({
  name: "work",
  description: "Works.",
  input: z.object({}),
  effect: "pure",
  run: () => "worked",
});
const finish = defineTool({
  name: "finish",
  description: "Ends.",
  input: z.object({}),
  effect: "pure",
  run: () => ({ content: "finished", terminate: true }),
});

const user = (id: string, text: string): UserMessage => ({ role: "user", id, content: [{ type: "text", text }] });
const texts = (messages: readonly Message[]): readonly string[] =>
  messages.map((message) => `${message.role} ${getMessageText(message)}`);

/** Middleware that records the start and the end of its agent. */
function watching(log: unknown[], name = "watching"): Middleware {
  return defineMiddleware({
    name,
    beforeAgent: () => void log.push(`${name} begins`) as undefined,
    afterAgent: ({ ended, messages }: AgentEnding) => void log.push([name, ended.by, messages.length]) as undefined,
  });
}

describe("beforeAgent", () => {
  test("beforeAgent runs once per run, before the first request, and the request is built from the writes of the hook", async () => {
    const log: unknown[] = [];
    const model = scriptedModel([call("work", {}), say("done"), say("again")]);
    const agent = createAgent({
      name: "a",
      model,
      tools: [work],
      state: defineState({ who: z.string().default("nobody") }),
      instructions: ({ who }) => `You work for ${who}.`,
      middleware: [
        defineMiddleware({
          name: "knows",
          beforeAgent: ({ write, run }) => {
            log.push(run.run);
            write({ who: "Ada", messages: [user("known", "I like tea.")] });
          },
        }),
      ],
      store: memoryStore(),
    });
    const first = await agent.run({ thread: "t", input: "go" }).result;
    expect(log).toHaveLength(1);
    expect(model.requests.map(({ instructions }) => instructions)).toEqual(["You work for Ada.", "You work for Ada."]);
    expect(texts(model.requests[0]?.messages ?? [])).toEqual(["user go", "user I like tea."]);
    expect(texts(first.state.messages)).toEqual([
      "user go",
      "user I like tea.",
      "assistant ",
      "tool worked",
      "assistant done",
    ]);
    await agent.run({ thread: "t", input: "more" }).result;
    expect(log).toHaveLength(2);
  });

  test("beforeAgent can end the agent before the model request, and afterAgent receives the reason", async () => {
    const log: unknown[] = [];
    const model = scriptedModel([]);
    const agent = createAgent({
      name: "a",
      model,
      middleware: [
        watching(log),
        defineMiddleware({
          name: "guard",
          beforeAgent: ({ end }) => end("I may not.", { by: "guardrail", reason: "rude" }),
        }),
        watching(log, "not begun"),
      ],
    });
    const { state, ended } = await agent.run({ thread: "t", input: "go" }).result;
    expect([texts(state.messages), ended]).toEqual([
      ["user go", "assistant I may not."],
      { by: "guardrail", reason: "rude" },
    ]);
    expect(log).toEqual(["watching begins", ["not begun", "guardrail", 2], ["watching", "guardrail", 2]]);
    expect(model.requests).toHaveLength(0);
  });

  test("beforeAgent can interrupt, and after the answer all beforeAgent hooks run again from the first", async () => {
    const log: unknown[] = [];
    const agent = createAgent({
      name: "a",
      model: scriptedModel([say("hello")]),
      middleware: [
        watching(log),
        defineMiddleware({
          name: "asks",
          interrupts: { name: z.string() },
          beforeAgent: async ({ interrupt, write }) =>
            write({ messages: [user("n", `I am ${await interrupt("name")}.`)] }),
        }),
      ],
      store: memoryStore(),
    });
    expect(await agent.run({ thread: "t", input: "go" }).result).toMatchObject({ interrupts: [{ key: "name" }] });
    const end = await agent.resume({ thread: "t", answers: { name: "Ada" } }).result;
    expect(texts(end.state.messages)).toEqual(["user go", "user I am Ada.", "assistant hello"]);
    expect(log).toEqual(["watching begins", "watching begins", ["watching", "answer", 3]]);
  });
});

describe("afterAgent", () => {
  test.each([
    ["an answer", [call("work", {}), say("done")], "answer", 4],
    ["a tool that ends the agent", [[call("work", {}), call("finish", {})]], "tool", 4],
  ] as const)("afterAgent hooks run once, last to first, when %s ends the agent", async (_, script, by, length) => {
    const log: unknown[] = [];
    const agent = createAgent({
      name: "a",
      model: scriptedModel(script as never),
      tools: [work, finish],
      middleware: [watching(log, "one"), watching(log, "two")],
    });
    const result = await agent.run({ thread: "t", input: "go" }).result;
    expect(log).toEqual(["one begins", "two begins", ["two", by, length], ["one", by, length]]);
    expect(result).toMatchObject({ ended: { by } });
  });

  test("afterAgent runs when stopWhen ends the agent", async () => {
    const log: unknown[] = [];
    const agent = createAgent({
      name: "a",
      model: scriptedModel([call("work", {}), call("work", {})]),
      tools: [work],
      stopWhen: ({ turns }) => turns === 2,
      middleware: [watching(log)],
    });
    const result = await agent.run({ thread: "t", input: "go" }).result;
    expect(log).toEqual(["watching begins", ["watching", "stopWhen", 5]]);
    expect(result).toMatchObject({ ended: { by: "stopWhen" } });
  });

  test.each([
    ["an answer", [say("no"), say("yes")], ["user go", "assistant no", "user Say yes.", "assistant yes"]],
    [
      "a tool",
      [call("finish", {}), say("yes")],
      ["user go", "assistant ", "tool finished", "user Say yes.", "assistant yes"],
    ],
  ] as const)(
    "afterAgent can return messages that continue the agent after %s, and runs again at the next end",
    async (_, script, expected) => {
      const log: unknown[] = [];
      const agent = createAgent({
        name: "a",
        model: scriptedModel(script as never),
        tools: [finish],
        middleware: [
          watching(log),
          defineMiddleware<unknown, { readonly messages: readonly Message[] }>({
            name: "repairs",
            afterAgent: ({ messages }, { state }) => {
              expect(state.messages).toEqual(messages);
              const last = messages.at(-1);
              if (last !== undefined && getMessageText(last) === "yes") return undefined;
              return { messages: [user("repair", "Say yes.")] };
            },
          }) as Middleware,
        ],
      });
      const { state } = await agent.run({ thread: "t", input: "go" }).result;
      expect(texts(state.messages)).toEqual(expected);
      expect(log).toEqual(["watching begins", ["watching", "answer", expected.length]]);
    },
  );

  test("afterAgent can rewrite the answer, and its writes apply after the result of its node", async () => {
    const agent = createAgent({
      name: "a",
      model: scriptedModel([say("a secret")]),
      middleware: [
        defineMiddleware({
          name: "hides",
          channels: { ends: sum },
          afterAgent: ({ messages }, { write }) => {
            const last = messages.at(-1);
            if (last?.role === "assistant")
              write({ ends: 1, messages: [{ ...last, content: [{ type: "text", text: "***" }] }] });
          },
        }),
      ],
    });
    const { state } = await agent.run({ thread: "t", input: "go" }).result;
    expect(texts(state.messages)).toEqual(["user go", "assistant ***"]);
    expect(state).toMatchObject({ ends: 1 });
  });

  test("afterAgent does not run while a queued message continues the agent", async () => {
    const log: unknown[] = [];
    const store = memoryStore();
    const world = virtualClock();
    const agent = createAgent({
      name: "a",
      model: scriptedModel([say("one"), say("two")]),
      middleware: [watching(log)],
      store,
    });
    const handle = agent.run({ thread: "t", input: "go", world });
    await handle.followUp("and then?");
    const { state } = await handle.result;
    expect(texts(state.messages)).toEqual(["user go", "assistant one", "user and then?", "assistant two"]);
    expect(log).toEqual(["watching begins", ["watching", "answer", 4]]);
  });

  test.each(["tools:afterAgent", "call:tools:afterAgent", "tools:afterAgent:asks:what", ""])(
    "afterAgent runs after a tool call with the model-made id %j",
    async (id) => {
      const log: unknown[] = [];
      const asks = defineMiddleware({
        name: "asks",
        afterAgent: async (_, { ask }) => {
          const request = { messages: [user("q", "What?")], tools: [] };
          log.push((await ask("what", { model: scriptedModel([say("that")]), request })).content);
        },
      });
      const agent = createAgent({
        name: "a",
        model: scriptedModel([[call("work", {}, { id }), call("finish", {}, { id: "f" })]]),
        tools: [work, finish],
        middleware: [watching(log), asks],
        store: memoryStore(),
      });
      const { state } = await agent.run({ thread: "t", input: "go" }).result;
      expect(log).toEqual(["watching begins", [{ type: "text", text: "that" }], ["watching", "tool", 4]]);
      expect(texts(state.messages).slice(2)).toEqual(["tool worked", "tool finished"]);
      expect(state.messages[2]).toMatchObject({ callId: id });
    },
  );

  test("afterAgent fails with its middleware name for a result without a message list, and no second model request is made", async () => {
    const model = scriptedModel([say("one")]);
    const store = memoryStore();
    let answer: unknown = { message: "x" };
    const agent = createAgent({
      name: "a",
      model,
      middleware: [defineMiddleware({ name: "bad", afterAgent: () => answer as never })],
      store,
    });
    await expect(agent.run({ thread: "t", input: "go" }).result).rejects.toThrow(
      'the hook afterAgent of the middleware "bad" returned an object, which is not { messages: […] }',
    );
    answer = undefined;
    expect(await agent.resume({ thread: "t" }).result).toMatchObject({ status: "done" });
    expect(model.requests).toHaveLength(1);
  });
});

test("a custom graph starts its agent at the first turn and reports an end by tools", async () => {
  const log: unknown[] = [];
  const middleware = [watching(log)];
  const tools = [work, finish];
  const graph = defineGraph({ name: "own", state: defineState({ messages: channel.messages() }) })
    .nodes({
      prepare: () => ({}),
      model: modelNode({ model: scriptedModel([call("work", {}), call("finish", {})]), tools, middleware }),
      tools: toolNode({
        tools,
        middleware,
        ends: (state: { readonly messages: readonly Message[] }) =>
          agentRoutes.afterTools()(state) === END ? getAgentEnd(state.messages) : undefined,
      }),
    })
    .edges({
      [START]: "prepare",
      prepare: "model",
      model: route(["tools", "model", END], agentRoutes.afterModel),
      tools: route(["model", END], agentRoutes.afterTools()),
    });
  const store = memoryStore();
  await run(graph, { store, thread: "t", input: { messages: [user("u", "go")] } }).result;
  expect(log).toEqual(["watching begins", ["watching", "tool", 5]]);
});

test("six middleware with agent and model hooks add no checkpoint and no commit", async () => {
  const hooked = (name: string): Middleware =>
    defineMiddleware({
      name,
      channels: { seen: sum },
      beforeAgent: ({ write }) => write({ seen: 1 }),
      afterAgent: (_, { write }) => write({ seen: 1 }),
      beforeModel: (_, { write }) => void write({ seen: 1 }) as undefined,
      aroundModel: (request, next, { write }) => {
        write({ seen: 1 });
        return next(request);
      },
      afterModel: (_, { write }) => void write({ seen: 1 }) as undefined,
    });
  const written = async (middleware: readonly Middleware[]): Promise<unknown> => {
    const inner = memoryStore();
    let commits = 0;
    const commit: Store["commit"] = (write, onCommitted) => {
      commits += 1;
      inner.commit(write, onCommitted);
    };
    const store: Store = { ...inner, commit };
    const agent = createAgent({
      name: "a",
      model: scriptedModel([[call("work", {}), call("work", {})], say("done")]),
      tools: [work],
      middleware,
      store,
    });
    const { state } = await agent.run({ thread: "t", input: "go" }).result;
    // Two turns with three hooks each, plus beforeAgent and afterAgent.
    expect((state as { readonly seen?: number }).seen ?? 0).toBe(middleware.length * 8);
    return { commits, checkpoints: (await store.history("t", { branch: "main", limit: 99 })).length };
  };
  const without = await written([]);
  expect(without).toMatchObject({ checkpoints: 4 });
  expect(await written(["a", "b", "c", "d", "e", "f"].map(hooked))).toEqual(without);
});
