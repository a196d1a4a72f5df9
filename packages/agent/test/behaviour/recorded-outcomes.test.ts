/** No recorded outcome of a tool, a model, a hook or a node may make each resume of its thread fail. */
import { createAgent } from "@statewright/agent";
import {
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  type Message,
  type Model,
  type ModelReply,
  memoryStore,
  resume,
  run,
  START,
  type ToolMessage,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const Office = defineState({
  notes: channel.list(z.string()),
  total: channel.reduce(z.number().default(0), (sum: number, next: number) => {
    if (sum + next > 5) throw new RangeError("above 5");
    return sum + next;
  }),
  mode: z.enum(["day", "night"]).default("day"),
});

/** Return values of tools that a graph may refuse, with their kinds. */
const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;
const updates: readonly unknown[] = [
  { notes: ["fine"] },
  { notes: "no list" },
  { notes: [1] },
  { mode: "dusk" },
  { unknown: 1 },
  { total: 3 },
  { total: 9 },
  { total: "3" },
  { mode: cycle },
  { notes: [() => 1] },
  { messages: "none" },
  { messages: [{ role: "nobody" }] },
  "text",
  null,
  7,
  [],
  new Map(),
  { notes: { overwrite: 1 } },
  Object.defineProperty({}, "notes", {
    enumerable: true,
    get: () => {
      throw new Error("no access");
    },
  }),
];
const parts: Readonly<Record<string, readonly unknown[]>> = {
  update: updates,
  goto: ["agent", "nowhere", END, "", 7, null, {}, "tools"],
  value: [1, cycle, () => 1, Symbol("s"), new Map([["a", 1]]), new URL("https://a.example"), 10n, "\ud83d"],
  details: [1, cycle, () => 1, Symbol("s"), new Date(Number.NaN), new URL("https://a.example"), new Headers()],
  artifacts: [[{ name: "a", body: "text" }], [{ name: "" }], "none", [{ name: "\ud83d", body: "\ud83d" }], [7], null],
  content: ["text", "\ud83d", "", [{ type: "text" }], [{ type: "json", value: cycle }], 7, null, [null]],
  terminate: [true, "yes", null],
  usage: [{ inputTokens: 1 }, "much", null, { inputTokens: "x" }],
  isError: [true, "no"],
};

function createPicker(seed: number): <Value>(list: readonly Value[]) => Value {
  let state = seed * 2_654_435_761 + 1;
  return (list) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)] as never;
  };
}

function createOutput(pick: ReturnType<typeof createPicker>): unknown {
  const output: Record<string, unknown> = { content: pick(["done", pick(parts["content"] ?? [])]) };
  const command: Record<string, unknown> = {};
  for (let index = 0; index < 2; index++) {
    const part = pick(Object.keys(parts));
    const value = pick(parts[part] ?? []);
    if (part === "update" || part === "goto") command[part] = value;
    else output[part] = value;
  }
  if (Object.keys(command).length > 0) output["command"] = pick([command, command, command, "text", null]);
  return output;
}

function listToolMessages(messages: readonly Message[]): readonly ToolMessage[] {
  return messages.filter((message): message is ToolMessage => message.role === "tool");
}

describe("recorded outcomes", () => {
  test("a refused update of a tool fails its call with the reason, and the thread continues [FX62]", async () => {
    const update = { notes: "no list" };
    const tool = defineTool({
      name: "note",
      description: "Notes.",
      input: z.object({}),
      run: () => ({ content: "noted", command: { update } }),
    });
    const store = memoryStore();
    const model = scriptedModel([call("note", {}), say("sorry"), say("hello")]);
    const agent = createAgent({ name: "office", model, tools: [tool], state: Office, store });
    const first = await agent.run({ thread: "t", input: "note" }).result;
    const [answer] = listToolMessages(first.state.messages);
    expect([first.status, answer?.isError]).toEqual(["done", true]);
    expect(JSON.stringify(answer?.content)).toMatch(/refused its update.+channel.+notes/);
    const second = await agent.run({ thread: "t", input: "again" }).result;
    expect([second.status, second.state.notes, second.state.messages.length]).toEqual(["done", [], 6]);
  });

  test("updates of parallel calls that only together exceed a reducer fail the later call [FX62]", async () => {
    const add = defineTool({
      name: "add",
      description: "Adds.",
      input: z.object({ count: z.number() }),
      run: ({ count }) => ({ content: "added", command: { update: { total: count } } }),
    });
    const model = scriptedModel([[call("add", { count: 3 }), call("add", { count: 4 })], say("ok")]);
    const agent = createAgent({ name: "office", model, tools: [add], state: Office, store: memoryStore() });
    const { state } = await agent.run({ thread: "t", input: "add" }).result;
    expect([state.total, listToolMessages(state.messages).map(({ isError }) => isError)]).toEqual([3, [false, true]]);
  });

  test("random tool results never stop a thread [FX62]", async () => {
    for (let seed = 1; seed <= 150; seed++) {
      const pick = createPicker(seed);
      const effect = pick(["pure", "once", "idempotent"] as const);
      const tool = defineTool({
        name: "act",
        description: "Acts.",
        input: z.object({}),
        effect,
        run: () => createOutput(pick) as never,
      });
      const model = scriptedModel((request) =>
        request.messages.at(-1)?.role === "user" ? [call("act", {}), call("act", {})] : say("ok"),
      );
      const agent = createAgent({ name: "office", model, tools: [tool], state: Office, store: memoryStore() });
      for (const input of ["one", "two"]) {
        const end = await agent.run({ thread: "t", input }).result;
        expect(end.status, `seed ${seed}`).toBe("done");
      }
    }
  }, 60_000);

  test("a thread continues after random invalid writes of hooks, once the hook is fixed [FX62]", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const pick = createPicker(seed);
      let isFixed = false;
      const hook = pick(["beforeModel", "afterModel", "beforeAgent", "afterAgent"] as const);
      const write = (_at: unknown, runtime?: { readonly write: (update: never) => void }) => {
        const { write } = runtime ?? (_at as { readonly write: (update: never) => void });
        write((isFixed ? { notes: ["fine"] } : pick(updates)) as never);
        return undefined;
      };
      const middleware = defineMiddleware({ name: "writer", [hook]: write });
      const tool = defineTool({ name: "act", description: "Acts.", input: z.object({}), run: () => "done" });
      const model = scriptedModel((request) =>
        request.messages.at(-1)?.role === "user" ? call("act", {}) : say("ok"),
      );
      const store = memoryStore();
      const agent = createAgent({
        name: "office",
        model,
        tools: [tool],
        state: Office,
        store,
        middleware: [middleware],
      });
      const status = await agent.run({ thread: "t", input: "one" }).result.then(
        ({ status }) => status,
        () => "failed",
      );
      isFixed = true;
      if (status === "failed") {
        const end = await agent.resume({ thread: "t" }).result;
        expect(end.status, `seed ${seed} ${hook}`).toBe("done");
      } else
        expect((await agent.run({ thread: "t", input: "two" }).result).status, `seed ${seed} ${hook}`).toBe("done");
    }
  }, 60_000);

  test("a thread continues after random invalid replies of a model, once the model is fixed [FX62]", async () => {
    const replies: readonly unknown[] = [
      undefined,
      null,
      7,
      {},
      { content: "text", finish: "stop" },
      { content: [{ type: "text" }], finish: "stop" },
      { content: [{ type: "text", text: "\ud83d" }], finish: "stop" },
      { content: [{ type: "text", text: "ok" }], finish: "perhaps" },
      { content: [{ type: "call", id: "\ud83d", name: "act", args: {} }], finish: "calls" },
      { content: [{ type: "call", id: "", name: "act", args: {} }], finish: "calls" },
      { content: [{ type: "call", id: "a", name: "\ud83d", args: {} }], finish: "calls" },
      { content: [{ type: "call", id: "a", name: "act", args: { a: "\ud83d", "\ud83d": 1 } }], finish: "calls" },
      { content: [{ type: "call", id: "a", name: "act", args: cycle }], finish: "calls" },
      { content: [{ type: "call", id: "a", name: "act", args: { a: () => 1 } }], finish: "calls" },
      { content: [{ type: "call", id: "a", name: "act", args: "text" }], finish: "calls" },
      { content: [{ type: "text", text: "ok" }], finish: "stop", provider: { id: 10n } },
      { content: [{ type: "text", text: "ok" }], finish: "stop", usage: { inputTokens: Number.NaN } },
      { content: [{ type: "unknown" }], finish: "stop" },
      { content: [null], finish: "stop" },
    ];
    for (const [index, reply] of replies.entries()) {
      let isFixed = false;
      let calls = 0;
      const good: ModelReply = { content: [{ type: "text", text: "ok" }], finish: "stop" };
      const model: Model = {
        id: "test/model",
        respond: async () => (isFixed || calls++ > 0 ? good : (reply as ModelReply)),
      };
      const tool = defineTool({ name: "act", description: "Acts.", input: z.object({}), run: () => "done" });
      const agent = createAgent({ name: "office", model, tools: [tool], state: Office, store: memoryStore() });
      const status = await agent.run({ thread: "t", input: "one" }).result.then(
        ({ status }) => status,
        () => "failed",
      );
      isFixed = true;
      const end = status === "failed" ? agent.resume({ thread: "t" }) : agent.run({ thread: "t", input: "two" });
      expect((await end.result).status, `reply ${index}`).toBe("done");
    }
  }, 60_000);

  test("a thread continues after random invalid returns of a node, once the node is fixed [FX62]", async () => {
    for (const [index, returned] of [...updates, cycle, Symbol("s"), () => 1].entries()) {
      let isFixed = false;
      const graph = defineGraph({ name: "office", state: Office })
        .nodes({
          a: () => (isFixed ? { notes: ["fine"] } : (returned as { readonly notes: readonly string[] })),
          b: () => ({ notes: ["b"] }),
        })
        .edges({ [START]: ["a", "b"], a: END, b: END });
      const store = memoryStore();
      const at = { store, thread: "t" };
      const status = await run(graph, at).result.then(
        ({ status }) => status,
        () => "failed",
      );
      isFixed = true;
      if (status === "failed") expect((await resume(graph, at).result).status, `return ${index}`).toBe("done");
    }
  });
});
