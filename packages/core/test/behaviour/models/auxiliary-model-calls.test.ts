/** Model hooks: auxiliary model calls, long-term store access and changes of the stream. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  longTermStore,
  type Message,
  type Middleware,
  type Model,
  type ModelReply,
  memoryStore,
  type RunEvent,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const createReply = (text: string): ModelReply => ({
  content: [{ type: "text", text }],
  finish: "stop",
  usage: { inputTokens: 3, outputTokens: 1 },
});

/** Creates a model that streams one text per request word by word and records its requests. */
function createTalkingModel(id: string, texts: readonly (string | Error)[]): Model & { asked: number } {
  const model = {
    id,
    asked: 0,
    respond: async (_request: unknown, { delta }: Parameters<Model["respond"]>[1]) => {
      const text = texts[model.asked] ?? texts.at(-1) ?? "";
      model.asked += 1;
      if (text instanceof Error) throw text;
      for (const word of text.split(/(?<= )/)) delta?.({ type: "text", text: word });
      return createReply(text);
    },
  };
  return model;
}

const request = { messages: [user("u", "summarise this")], tools: [] };

/** Creates a graph of one node that requests `model` through `middleware`. */
function createAskingGraph(model: Model, middleware: Middleware) {
  return defineGraph({ name: "asking", state: defineState({ messages: channel.messages() }), middleware: [middleware] })
    .nodes({
      ask: {
        run: async (state, { model: ask }) => ({
          messages: [await ask({ model, request: { messages: state.messages, tools: [] } })],
        }),
        retry: { attempts: 1 },
      },
    })
    .edges({ [START]: "ask", ask: END });
}

function start(model: Model, middleware: Middleware, store?: Store) {
  const graph = createAskingGraph(model, middleware);
  const events: RunEvent[] = [];
  const handle = run(graph, { ...(store && { store, thread: "t" }), input: { messages: [user("u", "hello")] } });
  handle.on((event) => events.push(event));
  return { graph, handle, events };
}

const last = (list: readonly Message[]): Message | undefined => list.at(-1);

test("the reply of an auxiliary model call goes only to its hook, and its cost is added to the message", async () => {
  const small = createTalkingModel("small", ["in short"]);
  const deltas: string[] = [];
  const { handle, events } = start(createTalkingModel("large", ["hello you"]), {
    name: "asker",
    beforeModel: async (sent, { ask, model }) => {
      const reply = await ask("short", { model: small, request });
      deltas.push(`${model} ${JSON.stringify(reply.content)}`);
      return sent;
    },
  });
  const { state } = await handle.result;
  expect(deltas).toEqual(['large [{"type":"text","text":"in short"}]']);
  const usage = { inputTokens: 3, outputTokens: 1 };
  expect(last(state.messages)).toMatchObject({ usage, failedAttempts: [{ model: "small", kind: "auxiliary", usage }] });
  expect(state.messages).toHaveLength(2);
  expect(events.flatMap((event) => (event.type === "message.delta" ? event.text : "")).join("")).toBe("hello you");
  expect(events.filter(({ type }) => type === "model.auxiliary_called")).toMatchObject([
    { by: "asker", key: "short", model: "small", usage, node: "ask" },
  ]);
});

test("an auxiliary model call repeated under one key makes two requests, and a rerun hook gets both recorded replies", async () => {
  const small = createTalkingModel("small", ["one", "two", "three"]);
  const large = createTalkingModel("large", [new Error("down"), "fine"]);
  const seen: string[] = [];
  const store = memoryStore();
  const middleware: Middleware = {
    name: "asker",
    required: true,
    beforeModel: async (sent, { ask }) => {
      for (let round = 0; round < 2; round++)
        seen.push(JSON.stringify((await ask("short", { model: small, request })).content));
      return sent;
    },
  };
  const { handle, graph } = start(large, middleware, store);
  await expect(handle.result).rejects.toThrow(/down/);
  const end = await resume(graph, { store, thread: "t" }).result;
  expect([end.status, small.asked, large.asked]).toEqual(["done", 2, 2]);
  expect(seen.slice(0, 2)).toEqual(seen.slice(2));
  expect(last(end.state.messages)).toMatchObject({
    failedAttempts: [expect.anything(), { kind: "auxiliary" }, { kind: "auxiliary" }],
  });
});

test("beforeRequest hooks run before each model request in reverse order, and their callbacks get its usage at the end", async () => {
  const log: string[] = [];
  const world = createVirtualWorld();
  const createRecordingMiddleware = (name: string, fails = false): Middleware => ({
    name,
    beforeRequest: ({ model }) => {
      log.push(`${name} ${model}`);
      return (usage) => {
        log.push(`${name} ${model} used ${usage?.inputTokens ?? "?"}`);
        if (fails) throw new Error("too late");
      };
    },
  });
  const asker: Middleware = {
    name: "asker",
    beforeModel: async (sent, { ask }) => {
      await ask("short", { model: createTalkingModel("small", ["in short"]), request });
      return sent;
    },
  };
  const state = defineState({ messages: channel.messages() });
  const model = createTalkingModel("large", [new Error("down"), "fine"]);
  const graph = defineGraph({
    name: "two",
    state,
    middleware: [createRecordingMiddleware("a", true), createRecordingMiddleware("b"), asker],
  })
    .nodes({
      ask: async ({ messages: list }, { model: ask }) => ({
        messages: [
          await ask({ model, request: { messages: list, tools: [] }, retry: { attempts: 2, initialMs: 1, jitter: 0 } }),
        ],
      }),
    })
    .edges({ [START]: "ask", ask: END });
  const { result } = run(graph, { world, input: { messages: [user("u", "hi")] } });
  await world.advance(10);
  expect((await result).status).toBe("done");
  const listCallEvents = (name: string, used: string) => [
    `b ${name}`,
    `a ${name}`,
    `b ${name} used ${used}`,
    `a ${name} used ${used}`,
  ];
  expect(log).toEqual([
    ...listCallEvents("small", "3"),
    ...listCallEvents("large", "?"),
    ...listCallEvents("large", "3"),
  ]);
  expect(world.lines.map(({ message }) => message)).toContain(
    'the middleware "a" failed at the end of a model request: too late',
  );
});

test("an invalid auxiliary model call is refused with a hint", async () => {
  for (const wrong of [
    { model: "small", request },
    { model: createTalkingModel("small", ["x"]) },
    { model: createTalkingModel("s", ["x"]), request, tries: 3 },
  ]) {
    const { handle } = start(createTalkingModel("large", ["x"]), {
      name: "asker",
      required: true,
      beforeModel: async (sent, { ask }) => {
        await ask("key", wrong as never);
        return sent;
      },
    });
    await expect(handle.result).rejects.toThrow(/invalid_option.*asker/s);
  }
});

test("long-term writes of hooks are saved with their superstep and are written once after a crash", async () => {
  const store = memoryStore();
  const large = createTalkingModel("large", [new Error("down"), "fine"]);
  let passes = 0;
  const middleware: Middleware = {
    name: "keeper",
    required: true,
    beforeModel: async (sent, { longTerm }) => {
      passes += 1;
      await longTerm("notes").put("pass", { passes });
      return sent;
    },
    afterModel: async (_reply, { longTerm }) => {
      const pass = await longTerm("notes").get("pass");
      await longTerm("notes").put("seen", { pass: pass?.value });
      return undefined;
    },
  };
  const { handle, graph } = start(large, middleware, store);
  await expect(handle.result).rejects.toThrow(/down/);
  expect(await longTermStore(store).under("notes").list()).toEqual([]);
  await resume(graph, { store, thread: "t" }).result;
  const items = await longTermStore(store).under("notes").list();
  expect(items.map(({ key, value }) => [key, value])).toEqual([
    ["pass", { passes: 2 }],
    ["seen", { pass: { passes: 2 } }],
  ]);
});

test("a long-term write of a hook after the model has answered is dropped and logged", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  let askAfterEnd = async (): Promise<void> => undefined;
  const graph = createAskingGraph(createTalkingModel("large", ["fine"]), {
    name: "late",
    beforeModel: (sent, { longTerm }) => {
      askAfterEnd = () => longTerm("notes").put("late", 1);
      return sent;
    },
  });
  await run(graph, { store, world, thread: "t", input: { messages: [user("u", "hello")] } }).result;
  await askAfterEnd();
  expect(await longTermStore(store).under("notes").list()).toEqual([]);
  expect(world.lines.map(({ message }) => message)).toEqual([expect.stringContaining("a late write")]);
});

test("the long-term store of a hook in a run without a store fails with an error that says so", async () => {
  const { handle } = start(createTalkingModel("large", ["x"]), {
    name: "keeper",
    required: true,
    beforeModel: async (sent, { longTerm }) => {
      await longTerm("notes").get("x");
      return sent;
    },
  });
  await expect(handle.result).rejects.toThrow(/missing_store/);
});

test("stream filters run in reverse order, are created for each answer and see each part", async () => {
  const log: string[] = [];
  const filtering = (name: string): Middleware => ({
    name,
    onModelDelta: () => {
      log.push(`new ${name}`);
      return (delta) => (delta.type === "call" ? delta : { ...delta, text: `${delta.text.trim()}${name} ` });
    },
  });
  const state = defineState({ messages: channel.messages() });
  const graph = defineGraph({ name: "two", state, middleware: [filtering("a"), filtering("b")] })
    .nodes({
      ask: async ({ messages: list }, { model: ask }) => ({
        messages: [
          await ask({ model: createTalkingModel("large", ["hello you"]), request: { messages: list, tools: [] } }),
        ],
      }),
    })
    .edges({ [START]: "ask", ask: END });
  const events: RunEvent[] = [];
  const handle = run(graph, { input: { messages: [user("u", "hi")] } });
  handle.on((event) => events.push(event));
  await handle.result;
  const observed = events.flatMap((event) => (event.type === "message.delta" ? [event.text] : []));
  expect(observed).toEqual(["helloba ", "youba "]);
  expect(log).toEqual(["new b", "new a"]);
  expect(events.find(({ type }) => type === "message.retracted")).toMatchObject({
    kind: "replaced",
    text: "helloba youba ",
  });
});

test("a stream filter that throws hides the deltas, is logged and does not affect the answer", async () => {
  const { handle, events } = start(createTalkingModel("large", ["hello you there"]), {
    name: "broken",
    onModelDelta: () => () => {
      throw new Error("oh");
    },
  });
  const pieces: string[] = [];
  for await (const piece of handle.text()) pieces.push(piece);
  const { state } = await handle.result;
  expect(events.filter(({ type }) => type === "message.delta")).toEqual([]);
  expect([pieces.join(""), last(state.messages)]).toMatchObject(["hello you there", { role: "assistant" }]);
});

test("a beforeRequest hook gets the end of its request also when another hook prevents the request", async () => {
  const log: string[] = [];
  const slots: Middleware = {
    name: "slots",
    beforeRequest: () => {
      log.push("taken");
      return () => {
        log.push("given back");
      };
    },
  };
  const closed: Middleware = {
    name: "closed",
    required: true,
    beforeRequest: () => {
      throw new Error("nobody is let through");
    },
  };
  const graph = defineGraph({
    name: "kept",
    state: defineState({ messages: channel.messages() }),
    middleware: [closed, slots],
  })
    .nodes({
      ask: async ({ messages: list }, { model: ask }) => ({
        messages: [
          await ask({ model: createTalkingModel("large", ["never"]), request: { messages: list, tools: [] } }),
        ],
      }),
    })
    .edges({ [START]: "ask", ask: END });
  await expect(run(graph, { input: { messages: [user("u", "hi")] } }).result).rejects.toThrow("nobody is let through");
  expect(log).toEqual(["taken", "given back"]);
});

test.each(["model:afterAgent", "model:beforeAgent", "model:beforeAgent:asker:short", "draft:maxTurns"])(
  "a body may not use a step key reserved for hooks: the step key %s is refused",
  async (key) => {
    const graph = defineGraph({ name: "kept", state: defineState({ messages: channel.messages() }) })
      .nodes({ ask: async (_, { step }) => void (await step(key, () => "mine")) })
      .edges({ [START]: "ask", ask: END });
    const failure = run(graph, {}).result;
    await expect(failure).rejects.toThrow(
      `repeated_step: the node "ask" used the step key "${key}", which is reserved for the hooks at the start and end of an agent`,
    );
  },
);

test("a step and an auxiliary model call of a hook may share no key, whichever comes first", async () => {
  const small = createTalkingModel("small", ["in short"]);
  const middleware: Middleware = {
    name: "asker",
    beforeModel: async (sent, { ask }) => {
      await ask("short", { model: small, request });
      return sent;
    },
  };
  for (const isFirst of [true, false]) {
    const graph = defineGraph({
      name: "kept",
      state: defineState({ messages: channel.messages() }),
      middleware: [middleware],
    })
      .nodes({
        ask: async (_, { step, model }) => {
          if (isFirst) await step("model:asker:short", () => "mine");
          await model({ model: createTalkingModel("large", ["fine"]), request });
          await step("model:asker:short", () => "mine");
        },
      })
      .edges({ [START]: "ask", ask: END });
    await expect(run(graph, {}).result).rejects.toThrow(
      '"model:asker:short", which is reserved for auxiliary model calls of hooks',
    );
  }
});

function failAgain(_state: unknown, { error }: { readonly error: Error }): never {
  throw error;
}

test.each(["model:afterAgent", "model:beforeAgent:asker:short", "onError/x"])(
  "a step or model call recorded under the key %s by an earlier version, before that key was reserved, is replayed",
  async (kept) => {
    for (const what of ["step", "model"] as const) {
      const store = memoryStore();
      const before: Store = {
        ...store,
        commit: (commit, onCommitted) => {
          const effects = commit.effects?.map((row) =>
            row.key === "mine" ? { ...row, key: kept, ...(what === "step" && { name: kept }) } : row,
          );
          store.commit({ ...commit, ...(effects && { effects }) }, onCommitted);
        },
      };
      const model = createTalkingModel("small", ["fine"]);
      const graph = (key: string) =>
        defineGraph({
          name: "kept",
          state: defineState({ messages: channel.messages() }),
          interrupts: { go: z.boolean() },
        })
          .nodes({
            ask: {
              run: async (_, { step, model: ask, interrupt }) => {
                if (what === "model") await ask({ model, request }, key);
                else await step(key, () => (model.asked += 1));
                await interrupt("go");
              },
              ...(key === "mine" ? {} : { onError: failAgain }),
            },
          })
          .edges({ [START]: "ask", ask: END });
      expect((await run(graph("mine"), { store: before, thread: "t" }).result).status).toBe("waiting");
      const end = await resume(graph(kept), { store: store.peer(), thread: "t", answers: { go: true } }).result;
      expect([what, end.status, model.asked]).toEqual([what, "done", 1]);
    }
  },
);
