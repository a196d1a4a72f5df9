/** A run depends only on passed values: context, secrets and a store. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  env,
  fanOut,
  fork,
  getHistory,
  getState,
  inject,
  inputNode,
  listToolCalls,
  memoryStore,
  resume,
  route,
  run,
  START,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";

const Shop = defineContext({ customer: z.string() });
const Chat = defineState({ messages: channel.messages(), log: channel.list(z.string()) });

function createShop(seen: unknown[]) {
  const pay = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    inject: { key: inject.secret("GIVEN_EXPLICITLY"), customer: Shop.from(({ customer }) => customer) },
    effect: "idempotent",
    run: ({ cents }, { injected }) => {
      seen.push([cents, injected.key.reveal(), injected.customer]);
      return "paid";
    },
  });
  return defineGraph({ name: "shop", state: Chat, context: Shop })
    .nodes({
      ask: () => ({
        messages: [
          {
            role: "assistant" as const,
            id: "a1",
            content: [{ type: "call" as const, id: "c1", name: "pay", args: { cents: 5 } }],
            model: "test",
            finish: "calls" as const,
          },
        ],
      }),
      tools: toolNode({ tools: [pay] }),
    })
    .edges({
      [START]: "ask",
      ask: route(["tools", END], (state) => {
        const last = state.messages.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: END,
    });
}

test("secrets are passed to a run explicitly: environment variables are not read by default [E67]", async () => {
  process.env["GIVEN_EXPLICITLY"] = "from the environment";
  try {
    const seen: unknown[] = [];
    const context = { customer: "ada" };
    await getFailure(run(createShop(seen), { context }).result, "missing_secret");
    expect(seen).toEqual([]);
    await run(createShop(seen), { context, secrets: env(["GIVEN_EXPLICITLY"]) }).result;
    await run(createShop(seen), { context, secrets: { get: (name) => `made for ${name}` } }).result;
    expect(seen).toEqual([
      [5, "from the environment", "ada"],
      [5, "made for GIVEN_EXPLICITLY", "ada"],
    ]);
    await getFailure(run(createShop(seen), { context, secrets: env(["ANOTHER"]) }).result, "missing_secret");
  } finally {
    delete process.env["GIVEN_EXPLICITLY"];
  }
});

test("context is passed to each run and each resume: no graph or thread stores it [E67]", async () => {
  const graph = defineGraph({ name: "asks", state: Chat, context: Shop, interrupts: { ok: z.boolean() } })
    .nodes({
      look: async (_state, { context, interrupt }) => {
        await interrupt("ok");
        return { log: [context.customer] };
      },
    })
    .edges({ [START]: "look", look: END });
  const store = memoryStore();
  await run(graph, { store, thread: "t", context: { customer: "ada" } }).result;
  const types = (): void => {
    // @ts-expect-error a resume is given its context again
    resume(graph, { store, thread: "t", answers: { ok: true } });
  };
  expect(types).toBeTypeOf("function");
  const { state } = await resume(graph, { store, thread: "t", answers: { ok: true }, context: { customer: "bob" } })
    .result;
  expect(state.log).toEqual(["bob"]);
});

const Work = defineState({ items: z.array(z.string()), log: channel.list(z.string()) });

function work() {
  const inner = defineGraph({ name: "inner", state: defineState({ item: z.string(), log: channel.list(z.string()) }) })
    .nodes({ one: async (state, { step }) => ({ log: [await step("s", () => `${state.item}!`)] }) })
    .edges({ [START]: "one", one: END });
  let tries = 0;
  return defineGraph({ name: "work", state: Work, interrupts: { ok: z.boolean() } })
    .nodes({
      each: inputNode(
        z.string(),
        subgraph(inner, { input: (_state, { input }) => ({ item: input }), output: ({ log }) => ({ log }) }),
      ),
      flaky: {
        retry: { attempts: 2, initialMs: 0 },
        run: () => {
          tries += 1;
          if (tries === 1) throw new Error("once more");
          return { log: ["flaky"] };
        },
      },
      ask: async (state, { interrupt }) => {
        if (state.items.includes("ask")) await interrupt("ok");
      },
    })
    .edges({ [START]: fanOut("each", (state) => state.items), each: "flaky", flaky: "ask", ask: END });
}

test("a run without a store supports everything except interrupts, resume and history, and a memory store adds those [E70]", async () => {
  const alone = await run(work(), { input: { items: ["a", "b"] } }).result;
  expect(alone).toMatchObject({ status: "done", state: { log: ["a!", "b!", "flaky"] }, bytes: 0 });
  const refusal = await getFailure(run(work(), { input: { items: ["ask"] } }).result, "missing_store");
  expect(refusal.message).toContain("memoryStore()");

  const store = memoryStore();
  const graph = work();
  const waiting = await run(graph, { store, thread: "t", input: { items: ["ask"] } }).result;
  expect(waiting.status).toBe("waiting");
  expect((await resume(graph, { store, thread: "t", answers: { ok: true } }).result).status).toBe("done");
  const nodes: unknown[] = [];
  for await (const entry of getHistory(graph, { store, thread: "t" })) nodes.push(entry.node);
  expect(nodes).toEqual(["ask", "flaky", "each", undefined]);
  const { checkpointId: at } = await getState(graph, { store, thread: "t" });
  expect(await fork(graph, { store, thread: "t", at, name: "other" })).toBe("other");
});
