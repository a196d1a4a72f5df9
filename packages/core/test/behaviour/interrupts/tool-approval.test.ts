import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  decide,
  defineGraph,
  defineMiddleware,
  defineTool,
  END,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "../../../src/index.ts";
import {
  Chat,
  type ChatResult,
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  user,
} from "../../support/tool-loop.ts";

const ask = defineMiddleware({
  name: "ask",
  beforeTool: ({ call: made, tool }) =>
    tool.safety.spend === true ? decide.interrupt(made, `${made.name} spends`) : undefined,
});

function createShop(): { readonly tools: readonly DeskTool[]; readonly ran: string[] } {
  const ran: string[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    safety: { spend: true },
    run: ({ cents }) => {
      ran.push(`pay ${cents}`);
      return `paid ${cents}`;
    },
  });
  const look = defineTool({
    name: "look",
    description: "Look.",
    input: z.object({}),
    effect: "pure",
    run: () => {
      ran.push("look");
      return "seen";
    },
  });
  return { tools: [pay, look], ran };
}

function waiting(result: ChatResult): Extract<ChatResult, { status: "waiting" }>["interrupts"] {
  if (result.status !== "waiting") throw new Error(`it is ${result.status}`);
  return result.interrupts;
}

test("a tool call that needs approval waits, its interrupt shows the call, and an approval runs the call once", async () => {
  const { tools, ran } = createShop();
  const loop = createToolLoop({ tools, middleware: [ask], turns: [[call("pay", { cents: 5 }, "c1")], ["ok"]] });
  const [question] = waiting(await loop.start().result);
  expect(question).toMatchObject({
    key: "approve",
    node: "tools",
    payload: { callId: "c1", tool: "pay", args: { cents: 5 }, reason: "pay spends" },
  });
  expect(question?.schema).toMatchObject({
    anyOf: [{ type: "boolean" }, { type: "object" }, { type: "object", required: ["respond"] }],
  });
  expect([ran, loop.requests.length]).toEqual([[], 1]);
  const end = await loop.again({ approve: true }).result;
  expect([end.status, ran, listToolAnswers(end).map(getAnswerText)]).toEqual(["done", ["pay 5"], ["paid 5"]]);
});

test("a rejection with a reason is an answer that the model reads, and the tool does not run", async () => {
  const { tools, ran } = createShop();
  for (const [answer, text] of [
    [false, "A person denied this call."],
    [{ approved: false }, "A person denied this call."],
    [{ approved: false, reason: "too dear" }, "A person denied this call: too dear"],
  ] as const) {
    const loop = createToolLoop({ tools, middleware: [ask], turns: [[call("pay", { cents: 5 })], ["ok"]] });
    await loop.start().result;
    const end = await loop.again({ approve: answer }).result;
    expect([end.status, listToolAnswers(end).map((message) => [getAnswerText(message), message.isError])]).toEqual([
      "done",
      [[text, true]],
    ]);
    expect(listResults(loop)[0]?.error?.kind).toBe("denied");
  }
  expect(ran).toEqual([]);
});

test("an approval with other arguments runs the tool with the parsed arguments, and invalid arguments are refused to the caller", async () => {
  const { tools, ran } = createShop();
  const turns = [[call("pay", { cents: 500 }, "c1")], ["ok"]] as const;
  const edited = createToolLoop({ tools, middleware: [ask], turns });
  await edited.start().result;
  await edited.again({ approve: { approved: true, args: { cents: 5 } } }).result;
  expect(ran).toEqual(["pay 5"]);
  expect(listEvents(edited, "tool.args_rewritten").map(({ by, args }) => [by, args])).toEqual([
    ["approval", { cents: 5 }],
  ]);
  const unfit = createToolLoop({ tools, middleware: [ask], turns });
  await unfit.start().result;
  const answers = { approve: { approved: true, args: { cents: "many" } } };
  await expect(unfit.again(answers).result).rejects.toMatchObject({ code: "invalid_answer" });
  expect(ran).toEqual(["pay 5"]);
});

test("an answer that is neither approval nor rejection is refused and the interrupt stays open", async () => {
  const { tools, ran } = createShop();
  const loop = createToolLoop({ tools, middleware: [ask], turns: [[call("pay", { cents: 5 })], ["ok"]] });
  await loop.start().result;
  for (const answer of [
    "yes",
    1,
    null,
    {},
    { ok: true },
    { approved: "true" },
    { approved: true, arguments: { cents: 1 } },
    { respond: 5 },
    { approved: true, respond: "both" },
  ]) {
    const error = await loop.again({ approve: answer }).result.catch((thrown: unknown) => thrown);
    expect([answer, isStatewrightError(error, "invalid_answer")]).toEqual([answer, true]);
  }
  const still = await loop.again().result;
  expect([still.status, ran]).toEqual(["waiting", []]);
  expect((await loop.again({ approve: true }).result).status).toBe("done");
});

test("an interrupt named approve that the graph declares for its own node does not change tool approval", async () => {
  const { tools, ran } = createShop();
  const store = memoryStore();
  const graph = defineGraph({ name: "g", state: Chat, interrupts: { approve: z.object({ ok: z.literal("fine") }) } })
    .nodes({
      plan: () => ({
        messages: [
          { role: "assistant" as const, id: "a1", content: [call("pay", { cents: 7 })], finish: "calls" as const },
        ],
      }),
      tools: toolNode({ tools: tools as readonly never[], middleware: [ask] }),
      close: async (_state, { interrupt }) => void (await interrupt("approve")) as undefined,
    })
    .edges({ [START]: "plan", plan: "tools", tools: "close", close: END });
  await run(graph, { store, thread: "t", input: { messages: [user("go")] } }).result;
  const second = await resume(graph, { store, thread: "t", answers: { approve: true as never } }).result;
  expect([second.status, ran]).toEqual(["waiting", ["pay 7"]]);
  const third = await resume(graph, { store, thread: "t", answers: { approve: { ok: "fine" } } }).result;
  expect(third.status).toBe("done");
});

describe("approval of several tool calls", () => {
  const turns = [
    [
      call("pay", { cents: 1 }, "a"),
      call("look", {}, "b"),
      call("pay", { cents: 3 }, "c"),
      call("pay", { cents: 4 }, "d"),
    ],
    ["ok"],
  ] as const;

  test("several tool calls wait together, are answered by id over several resumes, and a completed sibling does not rerun", async () => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({ tools, middleware: [ask], turns });
    const first = waiting(await loop.start().result);
    expect(first.map(({ payload }) => (payload as { callId: string }).callId)).toEqual(["a", "c", "d"]);
    expect(ran).toEqual(["look"]);
    const ids = Object.fromEntries(first.map(({ id, payload }) => [(payload as { callId: string }).callId, id]));

    const both = await loop.again({ approve: true }).result.catch((error: unknown) => error);
    expect(isStatewrightError(both, "ambiguous_answer")).toBe(true);

    const second = waiting(await loop.again({ [ids["c"] as string]: true }).result);
    expect(second.map(({ id }) => id)).toEqual([ids["a"], ids["d"]]);
    expect(ran).toEqual(["look", "pay 3"]);

    const twice = await loop.again({ [ids["c"] as string]: false }).result.catch((error: unknown) => error);
    expect(isStatewrightError(twice, "already_answered")).toBe(true);

    const third = waiting(await loop.again({ [ids["a"] as string]: { approved: false, reason: "no" } }).result);
    expect(third.map(({ id }) => id)).toEqual([ids["d"]]);
    const end = await loop.again({ approve: true }).result;
    expect(end.status).toBe("done");
    expect(ran).toEqual(["look", "pay 3", "pay 4"]);
    expect(listToolAnswers(end).map((message) => [message.callId, getAnswerText(message)])).toEqual([
      ["a", "A person denied this call: no"],
      ["b", "seen"],
      ["c", "paid 3"],
      ["d", "paid 4"],
    ]);
    expect(listEvents(loop, "tool.completed", "tool.failed").map(({ callId }) => callId)).toEqual(["b", "c", "a", "d"]);
    expect(loop.requests).toHaveLength(2);
  });

  test("sequential tool calls that wait for approval do not block the calls behind them", async () => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({ tools, middleware: [ask], strategy: "sequential", turns });
    expect(waiting(await loop.start().result)).toHaveLength(3);
    expect(ran).toEqual(["look"]);
  });

  test("tool calls with one model-given id wait under separate interrupt ids", async () => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({
      tools,
      middleware: [ask],
      turns: [[call("pay", { cents: 1 }, "x"), call("pay", { cents: 2 }, "x")], ["ok"]],
    });
    const questions = waiting(await loop.start().result);
    expect(new Set(questions.map(({ id }) => id)).size).toBe(2);
    const yes = questions.find(({ payload }) => (payload as { args: { cents: number } }).args.cents === 2);
    const no = questions.find(({ id }) => id !== yes?.id);
    const end = await loop.again({ [yes?.id ?? ""]: true, [no?.id ?? ""]: false }).result;
    expect([end.status, ran]).toEqual(["done", ["pay 2"]]);
    expect(listToolAnswers(end).map(({ isError }) => isError)).toEqual([true, false]);
  });
});

test("two hooks that ask about one tool call need separate answers: the first approval does not count for the second", async () => {
  const { tools, ran } = createShop();
  const second = defineMiddleware({
    name: "second",
    beforeTool: ({ call: made }) => decide.interrupt(made, "second look"),
  });
  const loop = createToolLoop({ tools, middleware: [ask, second], turns: [[call("pay", { cents: 5 })], ["ok"]] });
  const [one] = waiting(await loop.start().result);
  const [two] = waiting(await loop.again({ approve: true }).result);
  expect([one?.payload, two?.payload]).toMatchObject([{ reason: "pay spends" }, { reason: "second look" }]);
  expect([one?.id === two?.id, ran]).toEqual([false, []]);
  const end = await loop.again({ approve: false }).result;
  expect([listToolAnswers(end).map(({ isError }) => isError), ran]).toEqual([[true], []]);
});

test("an approval interrupt without a store fails with missing_store", async () => {
  const { tools } = createShop();
  const loop = createToolLoop({
    tools,
    middleware: [ask],
    store: "none",
    turns: [[call("pay", { cents: 5 })], ["ok"]],
  });
  const error = await loop.start().result.catch((thrown: unknown) => thrown);
  expect(isStatewrightError(error, "missing_store")).toBe(true);
});
