/** Tokens and costs of threads, read from the journal. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  fork,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  subgraph,
  type Usage,
} from "../../../src/index.ts";
import { getUsage, pruneThread } from "../../../src/inspect.ts";
import {
  type Act,
  type ActingModel,
  answerWith,
  createActingModel,
  createAskingGraph,
  createReply,
  createUserInput,
  failWith,
} from "../../support/acting-model.ts";
import { ignoreResult } from "../../support/failure.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Replies with this usage. */
function replyWith(usage: Usage | undefined): Act {
  return () => {
    const { usage: _, ...reply } = createReply("Hello");
    return usage === undefined ? reply : { ...reply, usage };
  };
}

const plain = { attempts: 3, initialMs: 0, jitter: 0 } as const;
const prices = { big: { input: 1_000_000, output: 2_000_000 }, small: { input: 10_000, output: 10_000 } };

async function ask(model: ActingModel, more: Parameters<typeof createAskingGraph>[1] = {}) {
  const store = memoryStore();
  await run(createAskingGraph(model, more), { store, thread: "t", input: createUserInput("Hello") }).result;
  return store;
}

describe("the usage of a thread", () => {
  test("each request is counted with its model, its tokens and its cost, failed requests and fallbacks included [ND13]", async () => {
    const big = createActingModel(
      "big",
      failWith({ kind: "rate_limit", usage: { inputTokens: 5, outputTokens: 0 } }),
      failWith({ kind: "overloaded" }),
    );
    const small = createActingModel("small", replyWith({ inputTokens: 4, outputTokens: 6, reasoningTokens: 1 }));
    const store = await ask(big, { retry: { ...plain, attempts: 2 }, fallback: [small] });
    const usage = await getUsage(store, { thread: "t", prices });
    expect(usage).toMatchObject({
      requests: 3,
      lost: 2,
      usage: { inputTokens: 9, outputTokens: 6, reasoningTokens: 1 },
      unknown: 1,
      unpriced: 1,
      isComplete: true,
    });
    expect(usage.cost).toBeCloseTo(5.1);
    expect(
      usage.models.map(({ model, requests, lost, unknown, usage: tokens }) => [model, requests, lost, unknown, tokens]),
    ).toEqual([
      ["big", 2, 2, 1, { inputTokens: 5, outputTokens: 0 }],
      ["small", 1, 0, 0, { inputTokens: 4, outputTokens: 6, reasoningTokens: 1 }],
    ]);
    expect(usage.namespaces.map(({ namespace, requests }) => [namespace, requests])).toEqual([["main", 3]]);
    expect(usage.steps.map(({ namespace, step, requests }) => [namespace, step, requests])).toEqual([["main", 0, 3]]);
  });

  test("unknown tokens, and tokens without a price, are undefined and never 0 [ND13]", async () => {
    const store = await ask(createActingModel("big", replyWith(undefined)));
    expect(await getUsage(store, { thread: "t", prices })).toMatchObject({
      requests: 1,
      lost: 0,
      usage: undefined,
      unknown: 1,
      cost: undefined,
      unpriced: 1,
    });
    const other = await ask(createActingModel("other", replyWith({ inputTokens: 3 })));
    expect(await getUsage(other, { thread: "t", prices })).toMatchObject({
      usage: { inputTokens: 3 },
      unknown: 0,
      cost: undefined,
      unpriced: 1,
    });
    expect(Object.keys((await getUsage(other, { thread: "t" })).usage ?? {})).toEqual(["inputTokens"]);
  });

  test("a request that a crash lost is counted with unknown tokens, and the repeated request with its own [ND13]", async () => {
    const world = createVirtualWorld();
    let begun = 0;
    const hanging: Act = () => {
      begun += 1;
      return begun === 1 ? new Promise(() => undefined) : createReply("Hello");
    };
    const graph = createAskingGraph(createActingModel("big", hanging));
    const first = memoryStore();
    ignoreResult(run(graph, { store: first, world, thread: "t", input: createUserInput("Hello") }).result);
    await world.waitUntilIdle();
    first.crash();
    const store = first.peer();
    expect(await getUsage(store, { thread: "t" })).toMatchObject({ requests: 0, lost: 0, usage: undefined });
    await resume(graph, { store, world, thread: "t" }).result;
    expect(await getUsage(store, { thread: "t", prices })).toMatchObject({
      requests: 2,
      lost: 1,
      unknown: 1,
      usage: { inputTokens: 3, outputTokens: 2 },
      cost: 7,
    });
  });

  test("the requests of a model call that failed for good are counted [ND13]", async () => {
    const store = memoryStore();
    const usage = { inputTokens: 8, outputTokens: 1 };
    const model = createActingModel("big", failWith({ kind: "quota", retryable: false, usage }));
    const input = createUserInput("Hello");
    await expect(run(createAskingGraph(model), { store, thread: "t", input }).result).rejects.toThrow("quota");
    expect(await getUsage(store, { thread: "t" })).toMatchObject({ requests: 1, lost: 1, usage, unknown: 0 });
  });

  test("requests of subgraphs and of forks are counted in their namespaces, and a branch alone has its own [ND13]", async () => {
    const model = createActingModel("big", answerWith("Hello"));
    const inner = createAskingGraph(model);
    const outer = defineGraph({ name: "outer", state: defineState({ messages: channel.messages() }) })
      .nodes({
        research: subgraph(inner, {
          input: ({ messages }: { readonly messages: readonly Message[] }) => ({ messages }),
          output: ({ messages }) => ({ messages }),
        }),
      })
      .edges({ [START]: "research", research: END });
    const store = memoryStore();
    await run(outer, { store, thread: "t", input: createUserInput("Hello") }).result;
    const start = (await store.history("t", { limit: 10 })).at(-1)?.id ?? 0;
    await fork(outer, { store, thread: "t", at: start, name: "b" });
    await resume(outer, { store, thread: "t", branch: "b" }).result;
    const usage = await getUsage(store, { thread: "t" });
    expect(usage).toMatchObject({ requests: 2, usage: { inputTokens: 6, outputTokens: 4 } });
    expect(usage.namespaces.map(({ namespace, requests }) => [namespace, requests])).toEqual([
      ["main/0:0", 1],
      ["b/0:0", 1],
    ]);
    expect(await getUsage(store, { thread: "t", branch: "b" })).toMatchObject({ requests: 1, isComplete: true });
    await expect(getUsage(store, { thread: "t", branch: "c" })).rejects.toMatchObject({ code: "unknown_branch" });
    await expect(getUsage(store, { thread: "x" })).rejects.toMatchObject({ code: "unknown_thread" });
  });

  test("the usage survives a removed message, and is marked as incomplete once retention has removed rows [ND13]", async () => {
    const model = createActingModel("big", answerWith("Hello"));
    const graph = createAskingGraph(model);
    const store = memoryStore();
    for (const text of ["One", "Two", "Three"])
      await run(graph, { store, thread: "t", input: { messages: [{ ...userText(text) }] } }).result;
    const whole = await getUsage(store, { thread: "t" });
    expect(whole).toMatchObject({ requests: 3, usage: { inputTokens: 9, outputTokens: 6 }, isComplete: true });
    await pruneThread(store, { thread: "t", keepLast: 1 });
    const left = await getUsage(store, { thread: "t" });
    expect(left.isComplete).toBe(false);
    expect(left.requests).toBeLessThan(3);
  });

  test("a message that a hook gives without a request is no request, and a hook's own model call is one [ND13]", async () => {
    const helper = createActingModel("small", replyWith({ inputTokens: 2, outputTokens: 1 }));
    const answering = defineMiddleware({
      name: "answering",
      aroundModel: async (_request, _next, { ask: askHelper }) => {
        const { content } = await askHelper("help", { model: helper, request: { messages: [], tools: [] } });
        return { content, finish: "stop" };
      },
    });
    const store = await ask(createActingModel("big", answerWith("unused")), { middleware: [answering] });
    const usage = await getUsage(store, { thread: "t" });
    expect(usage).toMatchObject({ requests: 1, lost: 0, usage: { inputTokens: 2, outputTokens: 1 } });
    expect(usage.models.map(({ model }) => model)).toEqual(["small"]);
  });

  test("tokens that a tool reports have no model, and those of `generate` in a tool are counted once [ND13]", async () => {
    const helper = createActingModel("small", replyWith({ inputTokens: 20, outputTokens: 10 }));
    const remote = defineTool({
      name: "remote",
      description: "Calls a model elsewhere.",
      input: z.object({}),
      effect: "idempotent",
      run: () => ({ content: "done", usage: { inputTokens: 100, outputTokens: 50 } }),
    });
    const asking = defineTool({
      name: "asking",
      description: "Asks a model.",
      input: z.object({}),
      effect: "idempotent",
      run: async (_args, { generate }) => (await generate({ model: helper, prompt: "Help" })).text,
    });
    const loop = createToolLoop({ tools: [remote, asking], turns: [[call("remote"), call("asking")], ["ok"]] });
    await loop.start().result;
    const usage = await getUsage(loop.store as Store, { thread: "t", prices });
    expect(usage.models.map(({ model, usage: tokens, cost, unpriced }) => [model, tokens, cost, unpriced])).toEqual([
      ["scripted", undefined, undefined, 2],
      [undefined, { inputTokens: 100, outputTokens: 50 }, undefined, 1],
      ["small", { inputTokens: 20, outputTokens: 10 }, 0.3, 0],
    ]);
  });
});

function userText(text: string): Message {
  return { role: "user", id: `u-${text}`, content: [{ type: "text", text }] };
}
