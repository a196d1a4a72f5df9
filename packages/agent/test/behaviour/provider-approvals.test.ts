/** Providers that ask before they run a tool of their own: a person is asked, and the answer goes back with the next request. */
import { createAgent } from "@statewright/agent";
import {
  defineTool,
  type Message,
  type Model,
  type ModelRequest,
  memoryStore,
  type Store,
  type ToolCallBlock,
} from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";

const asked = { type: "call", name: "mcp.search", args: { query: "x" }, approval: "approval_1" } as const;
const worked: string[] = [];
const work = defineTool({
  name: "work",
  description: "Works.",
  input: z.object({}),
  effect: "pure",
  run: () => {
    worked.push("work");
    return "worked";
  },
});

/** A model whose provider asks first, and says then what it was told. */
function asking(beside: readonly ToolCallBlock[] = []) {
  const requests: ModelRequest[] = [];
  const model: Model = {
    id: "made",
    respond: async (request) => {
      requests.push(request);
      const isFirst = request.messages.at(-1)?.role === "user";
      return isFirst
        ? { content: [{ ...asked, id: "c1" }, ...beside], finish: "calls" }
        : { content: [{ type: "text", text: "done" }], finish: "stop" };
    },
  };
  return { model, requests };
}

const providerTools = [{ name: "search", id: "made.search", args: {} }];
const answers = (messages: readonly Message[] = []): readonly unknown[] =>
  messages.flatMap((message) => (message.role === "tool" ? [[message.callId, message.isError, message.content]] : []));

test.each([
  ["yes", true, false, "Approved."],
  ["no", false, true, "A person refused this call."],
  ["no, and why", { approved: false, reason: "too dear" }, true, "A person refused this call: too dear"],
  ["words in its place", { respond: "Use the index." }, true, "Use the index."],
  [
    "yes to other arguments",
    { approved: true, args: { query: "y" } },
    true,
    "A person wanted other arguments, and the provider runs the call as it is.",
  ],
])("a person answers in another process: %s", async (_, answer, isError, text) => {
  const { model, requests } = asking();
  const store = memoryStore();
  const agent = (at: Store) => createAgent({ name: "a", model, providerTools, store: at });
  const first = await agent(store).run({ thread: "t", input: "go" }).result;
  expect(first).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "approve", payload: { callId: "c1", tool: "mcp.search", args: { query: "x" } } }],
  });
  const next = store.peer();
  store.crash();
  const end = await agent(next).resume({ thread: "t", answers: { approve: answer } }).result;
  expect(end).toMatchObject({ status: "done", ended: { by: "answer" } });
  expect(answers(requests[1]?.messages)).toEqual([["c1", isError, [{ type: "text", text }]]]);
});

test("calls of tools beside it run meanwhile, and are answered in their order", async () => {
  worked.length = 0;
  const { model, requests } = asking([{ type: "call", id: "c2", name: "work", args: {} }]);
  const store = memoryStore();
  const agent = createAgent({ name: "a", model, tools: [work], store });
  const first = await agent.run({ thread: "t", input: "go" }).result;
  expect([first.status, worked]).toEqual(["waiting", ["work"]]);
  await agent.resume({ thread: "t", answers: { approve: true } }).result;
  expect(answers(requests[1]?.messages).map((answer) => (answer as readonly unknown[])[0])).toEqual(["c1", "c2"]);
  expect(worked).toEqual(["work"]);
});

test("without a store nobody can be asked: the run fails with what to do", async () => {
  const agent = createAgent({ name: "a", model: asking().model, providerTools });
  await expect(agent.run({ input: "go" }).result).rejects.toThrow("missing_store");
});
