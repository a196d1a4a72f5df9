/** Provider-executed tools with approval: the run waits for the answer and sends it with the next request. */

import { createAgent } from "@statewright/agent";
import { allowTools, budget, confirmTools, dryRun, limitCalls } from "@statewright/agent/middleware";
import {
  defineMiddleware,
  defineTool,
  type Message,
  type Middleware,
  type Model,
  type ModelRequest,
  memoryStore,
  type Store,
  type ToolCallBlock,
} from "@statewright/core";
import { virtualClock } from "@statewright/testing";
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

/** Model whose provider requests an approval first, and then repeats the answer. */
function createApprovalModel(siblingCalls: readonly ToolCallBlock[] = []) {
  const requests: ModelRequest[] = [];
  const model: Model = {
    id: "made",
    respond: async (request) => {
      requests.push(request);
      const isFirst = request.messages.at(-1)?.role === "user";
      return isFirst
        ? { content: [{ ...asked, id: "c1" }, ...siblingCalls], finish: "calls" }
        : { content: [{ type: "text", text: "done" }], finish: "stop" };
    },
  };
  return { model, requests };
}

const providerTools = [{ name: "search", id: "made.search", args: {} }];
const listAnswers = (messages: readonly Message[] = []): readonly unknown[] =>
  messages.flatMap((message) => (message.role === "tool" ? [[message.callId, message.isError, message.content]] : []));

test.each([
  ["yes", true, false, "Approved."],
  ["no", false, true, "A person denied this call."],
  ["no, with a reason", { approved: false, reason: "too dear" }, true, "A person denied this call: too dear"],
  ["a text instead of the tool", { respond: "Use the index." }, true, "Use the index."],
  [
    "yes with other arguments",
    { approved: true, args: { query: "y" } },
    true,
    "A person changed the arguments, but the provider can run the call only unchanged.",
  ],
])("a provider approval is answered in another process: %s", async (_, answer, isError, text) => {
  const { model, requests } = createApprovalModel();
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
  expect(listAnswers(requests[1]?.messages)).toEqual([["c1", isError, [{ type: "text", text }]]]);
});

test("tool calls next to a provider approval run before the approval and are answered in call order", async () => {
  worked.length = 0;
  const { model, requests } = createApprovalModel([{ type: "call", id: "c2", name: "work", args: {} }]);
  const store = memoryStore();
  const agent = createAgent({ name: "a", model, tools: [work], store });
  const first = await agent.run({ thread: "t", input: "go" }).result;
  expect([first.status, worked]).toEqual(["waiting", ["work"]]);
  await agent.resume({ thread: "t", answers: { approve: true } }).result;
  expect(listAnswers(requests[1]?.messages).map((answer) => (answer as readonly unknown[])[0])).toEqual(["c1", "c2"]);
  expect(worked).toEqual(["work"]);
});

test("a provider approval without a store fails the run with missing_store", async () => {
  const agent = createAgent({ name: "a", model: createApprovalModel().model, providerTools });
  await expect(agent.run({ input: "go" }).result).rejects.toThrow("missing_store");
});

/** Runs an agent whose provider requests an approval; returns the run and the requests of its model. */
async function runApprovalAgent(
  middleware: readonly Middleware[],
  more: object = {},
  siblingCalls: readonly ToolCallBlock[] = [],
) {
  const { model, requests } = createApprovalModel(siblingCalls);
  const store = memoryStore();
  const world = virtualClock();
  const agent = createAgent({ name: "a", model, providerTools, store, middleware, ...more });
  const first = await agent.run({ thread: "t", input: "go", world }).result;
  return { agent, world, store, first, observed: () => listAnswers(requests[1]?.messages) };
}

test.each([
  ["deny", true, "This call was denied: no answer in time"],
  ["allow", false, "Approved."],
] as const)(
  "a provider approval expires with the time of confirmTools and then counts as %s",
  async (onExpire, isError, text) => {
    const { agent, world, store, first, observed } = await runApprovalAgent([
      confirmTools({ expiresMs: 60_000, onExpire }),
    ]);
    expect(first).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "approve", expiresAt: world.clock.now() + 60_000 }],
    });
    await world.advance(60_000);
    const end = await agent.resume({ thread: "t", store, world }).result;
    expect([end.status, observed()]).toEqual(["done", [["c1", isError, [{ type: "text", text }]]]]);
  },
);

test("an approval by a confirming hook counts for the provider's call, and a hook that lets the call pass is no approval", async () => {
  const seen: unknown[] = [];
  const sees = defineMiddleware({
    name: "sees",
    beforeTool: ({ call, tool }) => {
      seen.push([call, tool.safety.confirm, tool.effect]);
      return undefined;
    },
  });
  for (const middleware of [[sees], [sees, confirmTools()]]) {
    const { agent, first, observed } = await runApprovalAgent(middleware);
    expect([first.status, first.status === "waiting" && first.interrupts.length]).toEqual(["waiting", 1]);
    expect((await agent.resume({ thread: "t", answers: { approve: true } }).result).status).toBe("done");
    expect(observed()).toEqual([["c1", false, [{ type: "text", text: "Approved." }]]]);
  }
  expect(seen[0]).toEqual([{ id: "c1", name: "mcp.search", args: { query: "x" } }, "always", "once"]);
});

test.each([
  ["a tool that is not allowed", [allowTools(["work"])], /mcp\.search/],
  ["a call in the tool's place", [dryRun()], /mcp\.search/],
  [
    "other arguments",
    [defineMiddleware({ name: "rewrites", beforeTool: () => ({ action: "modify", args: { query: "y" } }) })],
    /rewrites.* changed the arguments, but the provider can run the call only unchanged\./,
  ],
])("hooks refuse a provider approval before an interrupt: %s is a refusal", async (_, middleware, text) => {
  const { first, observed } = await runApprovalAgent(middleware);
  const [[, isError, content] = []] = observed() as readonly (readonly [string, boolean, unknown])[];
  expect([first.status, isError, JSON.stringify(content)]).toEqual(["done", true, expect.stringMatching(text)]);
});

test.each([
  ["of a message", [], { maxToolCalls: 1 }, /at most 1 calls/],
  ["of a conversation", [limitCalls({ perThread: 1 })], {}, /limit of 1 calls/],
  ["of a budget", [budget({ toolCalls: 1 })], {}, /budget of 1 tool calls/],
])("provider approvals count for call limits: %s", async (_, middleware, more, text) => {
  const { agent, first } = await runApprovalAgent(middleware, more, [{ ...asked, id: "c2" }]);
  expect(first.status === "waiting" && first.interrupts).toHaveLength(1);
  const { state } = await agent.resume({ thread: "t", answers: { approve: true } }).result;
  const refused = [{ type: "text", text: expect.stringMatching(text) }];
  expect(listAnswers(state.messages)).toEqual([
    ["c1", false, [{ type: "text", text: "Approved." }]],
    ["c2", true, refused],
  ]);
});

test("an approved provider call counts as an executed call", async () => {
  const { agent } = await runApprovalAgent([limitCalls({ perThread: 1 })]);
  await agent.resume({ thread: "t", answers: { approve: true } }).result;
  const later = await agent.run({ thread: "t", input: "again" }).result;
  expect(listAnswers(later.state.messages)).toMatchObject([
    ["c1", false, [{ text: "Approved." }]],
    ["c1", true, [{ text: expect.stringContaining("limit of 1 calls") }]],
  ]);
});
