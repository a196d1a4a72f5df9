/** Model hooks in any graph: their writes join the node's writes, and hooks may interrupt and end the agent. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  type Middleware,
  type Model,
  memoryStore,
  type NodeRuntime,
  resume,
  run,
  START,
  type Store,
  subgraph,
} from "../../../src/index.ts";
import { user } from "../../support/tool-loop.ts";

const sum = channel.reduce(z.number().default(0), (total, more: number) => total + more);
const Counted = defineState({ messages: channel.messages(), seen: sum, note: z.string().default("") });

/** Creates a model that answers with its request and counts its requests. */
function echo(): Model & { asked: number } {
  const model = {
    id: "echo",
    asked: 0,
    respond: async ({ messages: sent }: Parameters<Model["respond"]>[0]) => {
      model.asked += 1;
      const text = `${sent.length} sent${JSON.stringify(sent).includes("ended") ? " with a note" : ""}`;
      return { content: [{ type: "text" as const, text }], finish: "stop" as const, usage: { inputTokens: 7 } };
    },
  };
  return model;
}

/** Graph of one node that requests its model once. */
function createAskingGraph(
  model: Model,
  middleware: readonly Middleware[],
  more: { readonly policies?: readonly Middleware[]; readonly node?: object; readonly times?: number } = {},
) {
  const ask = async (state: { readonly messages: never }, runtime: NodeRuntime) => {
    const request = { messages: state.messages, tools: [] };
    const said = [await runtime.model({ model, request, middleware })];
    for (let nth = 2; nth <= (more.times ?? 1); nth++)
      said.push(await runtime.model({ model, request, middleware }, `model ${nth}`));
    return { messages: said, note: "the body's" };
  };
  return defineGraph({
    name: "asking",
    state: Counted,
    interrupts: { extend: z.object({ by: z.number() }), confirm: z.boolean() },
    ...(more.policies === undefined ? {} : { middleware: more.policies }),
  })
    .nodes({ ask: { run: ask as never, ...more.node } })
    .edges({ [START]: "ask", ask: END });
}

const input = { messages: [user("hello")] };

describe("channel writes of model hooks", () => {
  test("a channel write of a model hook is folded before the return of the node and is visible to later hooks", async () => {
    const seen: unknown[] = [];
    const counts = (name: string) =>
      defineMiddleware<unknown, { readonly seen: number }>({
        name,
        beforeModel: (_, runtime) => {
          runtime.write({ seen: 1, note: name });
          seen.push(runtime.state.seen);
          return undefined;
        },
        aroundModel: (request, next, { write }) => {
          write({ seen: 10 });
          return next(request);
        },
        afterModel: (_, runtime) => {
          runtime.write({ seen: 100 });
          seen.push(runtime.state.seen);
          return undefined;
        },
      }) as Middleware;
    const graph = createAskingGraph(echo(), [counts("one"), counts("two")]);
    const { state } = await run(graph, { thread: "t", input }).result;
    expect(seen).toEqual([1, 2, 122, 222]);
    expect(state).toMatchObject({ seen: 222, note: "the body's" });
  });

  test("a channel write of a model hook needs no checkpoint and no commit of its own", async () => {
    const hooks = (name: string) =>
      defineMiddleware({
        name,
        beforeModel: (_, { write }) => void write({ seen: 1 }) as undefined,
        aroundModel: (request, next, { write }) => {
          write({ seen: 1 });
          return next(request);
        },
        afterModel: (_, { write }) => void write({ seen: 1 }) as undefined,
      });
    const countCommits = async (middleware: readonly Middleware[]): Promise<readonly number[]> => {
      const inner = memoryStore();
      let commits = 0;
      const commit: Store["commit"] = (write, onCommitted) => {
        commits += 1;
        inner.commit(write, onCommitted);
      };
      const store = { ...inner, commit };
      const graph = createAskingGraph(echo(), middleware);
      const { state } = await run(graph, { store, thread: "t", input }).result;
      expect(state.seen).toBe(middleware.length * 3);
      return [commits, (await store.history("t", { branch: "main", limit: 99 })).length];
    };
    const without = await countCommits([]);
    expect(without[1]).toBe(2);
    expect(await countCommits(["a", "b", "c", "d", "e", "f"].map(hooks))).toEqual(without);
  });

  test("channel writes of hooks of several model calls of a node fold in the order in which the calls started", async () => {
    const gates: (() => void)[] = [];
    const notes = defineMiddleware({
      name: "notes",
      beforeModel: (request, { write }) => void write({ note: request.instructions ?? "" }) as undefined,
    });
    const model: Model = {
      id: "slow",
      respond: ({ instructions }) =>
        new Promise((resolve) => {
          const answer = { content: [{ type: "text" as const, text: instructions ?? "" }], finish: "stop" as const };
          gates.push(() => resolve(answer));
          if (gates.length === 2) for (const open of gates.toReversed()) open();
        }),
    };
    const graph = defineGraph({ name: "two_calls", state: Counted })
      .nodes({
        ask: async (_, runtime) => {
          const call = (instructions: string) =>
            runtime.model(
              { model, request: { instructions, messages: [], tools: [] }, middleware: [notes] },
              instructions,
            );
          await Promise.all([call("first"), call("second")]);
          return {};
        },
      })
      .edges({ [START]: "ask", ask: END });
    const { state } = await run(graph, { thread: "t", input: {} }).result;
    expect(state.note).toBe("second");
  });

  test("a channel write of graph middleware applies in the nested graphs", async () => {
    const counts = defineMiddleware({
      name: "counts",
      channels: { seen: sum },
      afterModel: (_, { write }) => void write({ seen: 1 }) as undefined,
    });
    const inner = createAskingGraph(echo(), []);
    const outer = defineGraph({ name: "outer", state: Counted, middleware: [counts] })
      .nodes({ inner: subgraph(inner, { input: () => input, output: ({ seen }) => ({ seen }) }) })
      .edges({ [START]: "inner", inner: END });
    const { state } = await run(outer, { thread: "t", input: {} }).result;
    expect(state.seen).toBe(1);
  });

  test.each([
    [
      "an unknown channel",
      { nothing: 1 },
      'unknown_channel: the middleware "bad" wrote the channel "nothing", which the state of graph "asking" does not have',
    ],
    [
      "a value that does not fit",
      { note: 5 },
      'invalid_update: the middleware "bad" wrote a value to the channel "note" that its schema rejects',
    ],
    ["a value that is not a partial state", 3, 'invalid_update: the middleware "bad": expected a partial state, got 3'],
    ["a value that cannot be saved", { note: Symbol("x") }, 'the middleware "bad"'],
  ])("a channel write of a model hook as %s fails with an error that names the middleware", async (_, update, text) => {
    const bad = defineMiddleware({
      name: "bad",
      beforeModel: (__, { write }) => void write(update as never) as undefined,
    });
    await expect(run(createAskingGraph(echo(), [bad]), { thread: "t", input }).result).rejects.toThrow(text);
  });

  test("a channel write of a model hook to a channel outside the declared writes of the node is refused", async () => {
    const other = defineMiddleware({
      name: "other",
      afterModel: (_, { write }) => void write({ seen: 1 }) as undefined,
    });
    const graph = createAskingGraph(echo(), [other], { node: { writes: ["messages", "note"] } });
    await expect(run(graph, { thread: "t", input }).result).rejects.toThrow(
      'undeclared_write: the middleware "other" of the node "ask" in graph "asking" wrote the channel "seen"',
    );
  });
});

describe("interrupt of a model hook", () => {
  const createExtendingHook = (log: string[], hook: "selectTools" | "beforeModel") =>
    defineMiddleware({
      name: "extends",
      interrupts: { extend: z.object({ by: z.number() }), confirm: z.boolean() },
      [hook]: async (_: unknown, runtime: Parameters<NonNullable<Middleware["beforeModel"]>>[1]) => {
        log.push("asks");
        const answer = (await runtime.interrupt("extend", { payload: { used: 3 } })) as { readonly by: number };
        const sure = await runtime.interrupt("confirm");
        log.push(`${answer.by} ${sure}`);
        runtime.write({ seen: answer.by });
      },
    });

  test.each(["selectTools", "beforeModel"] as const)(
    "an interrupt in %s waits, and no model request is made before the answer",
    async (hook) => {
      const log: string[] = [];
      const model = echo();
      const graph = createAskingGraph(model, [createExtendingHook(log, hook)]);
      const store = memoryStore();
      const events: string[] = [];
      const first = await run(graph, { store, thread: "t", input }).result;
      expect(first).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "extend", payload: { used: 3 }, node: "ask" }],
      });
      const second = await resume(graph, { store, thread: "t", answers: { extend: { by: 4 } } }).result;
      expect(second).toMatchObject({ status: "waiting", interrupts: [{ key: "confirm" }] });
      expect(model.asked).toBe(0);
      const handle = resume(graph, { store, thread: "t", answers: { confirm: true } });
      handle.on(({ type }) => events.push(type));
      const third = await handle.result;
      expect(third).toMatchObject({ status: "done", state: { seen: 4 } });
      expect(log).toEqual(["asks", "asks", "asks", "4 true"]);
      expect(model.asked).toBe(1);
      // The effect had not started: no end event is emitted twice.
      expect(events).not.toContain("effect.repeated");
    },
  );

  test("an undeclared or late interrupt of a model hook fails with an error that names the middleware", async () => {
    const unknown = defineMiddleware({
      name: "bad",
      beforeModel: async (_, { interrupt }) => void (await interrupt("nothing")) as undefined,
    });
    const store = memoryStore();
    await expect(run(createAskingGraph(echo(), [unknown]), { store, thread: "t", input }).result).rejects.toThrow(
      'unknown_interrupt: the middleware "bad" of the node "ask" in graph "asking" raised the interrupt "nothing", which the graph does not declare',
    );
    const late = defineMiddleware({
      name: "late",
      afterModel: async (_, runtime) => {
        const ask: (key: string) => Promise<unknown> = Reflect.get(runtime, "interrupt");
        await ask("extend");
        return undefined;
      },
    });
    await expect(run(createAskingGraph(echo(), [late]), { store, thread: "u", input }).result).rejects.toThrow(
      'the interrupt "extend" of the middleware "late": expected a call before the model request is sent',
    );
  });

  test("an interrupt of a model hook may expire with a default answer", async () => {
    const asks = defineMiddleware({
      name: "asks",
      beforeModel: async (_, { interrupt, write }) => {
        const { by } = (await interrupt("extend", { expiresMs: 10, onExpire: { by: 9 } })) as { readonly by: number };
        write({ seen: by });
        return undefined;
      },
    });
    const store = memoryStore();
    const graph = createAskingGraph(echo(), [asks]);
    const first = await run(graph, { store, thread: "t", input }).result;
    if (first.status !== "waiting") throw new Error(first.status);
    expect(first.interrupts[0]?.expiresAt).toBeGreaterThan(0);
  });
});

describe("end by a model hook", () => {
  const ends = (hook: "selectTools" | "beforeModel" | "afterModel", log: string[] = []) => [
    defineMiddleware({
      name: "ends",
      [hook]: (_: unknown, { end }: { end: (text: string, ended: { by: string; reason?: string }) => undefined }) =>
        end("That is all.", { by: "guardrail", reason: "rude" }),
    }),
    defineMiddleware({
      name: "after it",
      beforeModel: () => void log.push("before") as undefined,
      afterModel: () => void log.push("after") as undefined,
    }),
  ];

  test.each(["selectTools", "beforeModel"] as const)(
    "an end in %s answers in place of the model, and no later hook runs",
    async (hook) => {
      const log: string[] = [];
      const model = echo();
      const { state } = await run(createAskingGraph(model, ends(hook, log)), { thread: "t", input }).result;
      expect(state.messages.at(-1)).toEqual({
        role: "assistant",
        id: "0:0:model",
        content: [{ type: "text", text: "That is all." }],
        finish: "stop",
        ended: { by: "guardrail", reason: "rude" },
      });
      expect([model.asked, log]).toEqual([0, []]);
    },
  );

  test("an end in afterModel replaces the text of the reply and keeps its cost", async () => {
    const model = echo();
    const { state } = await run(createAskingGraph(model, ends("afterModel").toReversed()), { thread: "t", input })
      .result;
    expect(state.messages.at(-1)).toMatchObject({ usage: { inputTokens: 7 }, ended: { by: "guardrail" } });
    expect(model.asked).toBe(1);
  });

  test("an end by a model hook leaves a note that no model request includes", async () => {
    const model = echo();
    const store = memoryStore();
    await run(createAskingGraph(model, ends("beforeModel")), { store, thread: "t", input }).result;
    const { state } = await run(createAskingGraph(model, []), {
      store,
      thread: "t",
      input: { messages: [user("again", "u2")] },
    }).result;
    expect(state.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect(state.messages.at(-1)?.content).toEqual([{ type: "text", text: "3 sent" }]);
  });

  test("an invalid end by a model hook fails with an error that names the middleware", async () => {
    const bad = defineMiddleware({ name: "bad", beforeModel: (_, { end }) => end("x", {} as never) });
    await expect(run(createAskingGraph(echo(), [bad]), { thread: "t", input }).result).rejects.toThrow(
      'end in the middleware "bad": expected a text and an object { by, reason }, got "x" and',
    );
  });
});

test("an invalid interrupt, channel or hook of middleware is refused at definition", () => {
  expect(() => defineMiddleware({ name: "x", interrupts: { extend: 3 } as never })).toThrow(
    'the interrupt "extend" of the middleware "x": expected a schema, got 3',
  );
  expect(() => defineMiddleware({ name: "x", beforeAgents: () => undefined } as never)).toThrow("beforeAgent");
});
