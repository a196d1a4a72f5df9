/** Only approved arguments run: arguments edited by a person or a hook are decided again. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  type BeforeToolDecision,
  decide,
  defineGraph,
  defineMiddleware,
  defineTool,
  type InterruptShape,
  isStatewrightError,
  listInterrupts,
  memoryStore,
  run,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import {
  Chat,
  type ChatResult,
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
  user,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

type BeforeTool = NonNullable<Parameters<typeof defineMiddleware>[0]["beforeTool"]>;
const hook = (name: string, beforeTool: BeforeTool) => defineMiddleware({ name, beforeTool });
const cents = (args: unknown): number => (args as { readonly cents: number }).cents;
const ask = hook("ask", ({ call: made }) => decide.interrupt(made, "it spends"));

function createShop(description = "Pay."): { readonly tools: readonly DeskTool[]; readonly ran: number[] } {
  const ran: number[] = [];
  const pay = defineTool({
    name: "pay",
    description,
    input: z.object({ cents: z.number() }),
    run: (args) => {
      ran.push(args.cents);
      return `paid ${args.cents}`;
    },
  });
  return { tools: [pay], ran };
}

function listQuestions(result: ChatResult) {
  if (result.status !== "waiting") throw new Error(`it is ${result.status}`);
  return result.interrupts;
}

const turns: LoopOptions["turns"] = [[call("pay", { cents: 8 }, "c1")], ["ok"]];

describe("edited arguments of an approval", () => {
  test("edited arguments of an approval are parsed, emitted and checked by every hook, so a hook may still deny them", async () => {
    const { tools, ran } = createShop();
    const seen: number[] = [];
    const limit = hook("limit", ({ call: made }) => {
      seen.push(cents(made.args));
      return cents(made.args) > 100 ? decide.deny("too much") : undefined;
    });
    for (const middleware of [
      [limit, ask],
      [ask, limit],
    ]) {
      const loop = createToolLoop({ tools, middleware, turns });
      await loop.start().result;
      const end = await loop.again({ approve: { approved: true, args: { cents: 500 } } }).result;
      expect([end.status, listToolAnswers(end).map(getAnswerText)]).toEqual(["done", ["too much"]]);
      expect(listEvents(loop, "tool.args_rewritten").map(({ by, args }) => [by, args])).toEqual([
        ["approval", { cents: 500 }],
      ]);
      expect(listEvents(loop, "tool.denied").map(({ by, reason }) => [by, reason])).toEqual([["limit", "too much"]]);
    }
    expect([ran, seen.filter((each) => each === 500)]).toEqual([[], [500, 500]]);
  });

  test("an approval with edited arguments answers its own interrupt: the hook does not ask again and the tool call runs with them", async () => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({ tools, middleware: [ask], turns });
    await loop.start().result;
    const end = await loop.again({ approve: { approved: true, args: { cents: 3 } } }).result;
    expect([end.status, ran]).toEqual(["done", [3]]);
  });

  test("edited arguments that the tool schema refuses are rejected with invalid_answer and the interrupt stays open", async () => {
    const { tools, ran } = createShop();
    const store = memoryStore();
    const loop = createToolLoop({ tools, middleware: [ask], turns, store });
    const [open] = listQuestions(await loop.start().result);
    for (const args of [{ cents: "many" }, { cents: 3, tip: 1 }, {}]) {
      const refused = await getFailure(loop.again({ approve: { approved: true, args } }).result, "invalid_answer");
      expect(refused.message).toMatch(/args\.(cents|tip): /);
    }
    expect(await listInterrupts(store)).toMatchObject([{ id: open?.id }]);
    const end = await loop.again({ approve: { approved: true, args: { cents: 3 } } }).result;
    expect([end.status, ran]).toEqual(["done", [3]]);
  });

  test("edited arguments in a rejection are not validated", async () => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({ tools, middleware: [ask], turns });
    await loop.start().result;
    const end = await loop.again({ approve: { approved: false, args: { cents: "many" } } }).result;
    expect([end.status, ran]).toEqual(["done", []]);
  });

  test("an approval with edited arguments does not answer a second interrupt that the same hook raises for the new arguments", async () => {
    const { tools, ran } = createShop();
    const levels = hook("levels", ({ call: made }) =>
      decide.interrupt(made, cents(made.args) > 100 ? "a manager has to agree" : "it spends"),
    );
    const loop = createToolLoop({ tools, middleware: [levels], turns });
    const [small] = listQuestions(await loop.start().result);
    const [large] = listQuestions(await loop.again({ approve: { approved: true, args: { cents: 500 } } }).result);
    expect([small?.payload, large?.payload]).toMatchObject([
      { reason: "it spends", args: { cents: 8 } },
      { reason: "a manager has to agree", args: { cents: 500 } },
    ]);
    expect([small?.id === large?.id, ran]).toEqual([false, []]);
    expect((await loop.again({ [large?.id ?? ""]: false }).result).status).toBe("done");
    expect(ran).toEqual([]);
  });

  test("edited arguments void earlier approvals of the same tool call, which were given for other arguments", async () => {
    const { tools, ran } = createShop();
    const second = hook("second", ({ call: made }) => decide.interrupt(made, "a second look"));
    const loop = createToolLoop({ tools, middleware: [ask, second], turns });
    await loop.start().result;
    await loop.again({ approve: true }).result;
    const third = listQuestions(await loop.again({ approve: { approved: true, args: { cents: 9 } } }).result);
    expect(third.map(({ payload }) => payload)).toMatchObject([{ reason: "it spends", args: { cents: 9 } }]);
    expect(ran).toEqual([]);
    await loop.again({ approve: true }).result;
    expect(ran).toEqual([9]);
  });

  test("edited arguments that a hook modifies are shown for approval again as modified", async () => {
    const { tools, ran } = createShop();
    const halve = hook("halve", ({ call: made }) => decide.modify({ cents: cents(made.args) / 2 }));
    const loop = createToolLoop({ tools, middleware: [halve, ask], turns });
    expect(listQuestions(await loop.start().result)[0]?.payload).toMatchObject({ args: { cents: 4 } });
    const again = listQuestions(await loop.again({ approve: { approved: true, args: { cents: 3 } } }).result);
    expect(again[0]?.payload).toMatchObject({ args: { cents: 1.5 } });
    await loop.again({ approve: true }).result;
    expect(ran).toEqual([1.5]);
  });
});

describe("hook that changes arguments after an approval", () => {
  test("arguments that a hook changes after an approval need a new approval, and the tool call runs once they stop changing", async () => {
    const { tools, ran } = createShop();
    const cap = hook("cap", ({ call: made }) => decide.modify({ cents: Math.min(cents(made.args), 5) }));
    const loop = createToolLoop({ tools, middleware: [ask, cap], turns });
    await loop.start().result;
    const [second] = listQuestions(await loop.again({ approve: true }).result);
    expect([second?.payload, ran]).toMatchObject([{ args: { cents: 5 } }, []]);
    await loop.again({ approve: true }).result;
    expect(ran).toEqual([5]);
  });

  test("a tool call whose arguments change after each approval is refused after 8 approvals and does not run", async () => {
    const { tools, ran } = createShop();
    const createIncreaseHook = (name: string) =>
      hook(name, ({ call: made }) => decide.modify({ cents: cents(made.args) + 1 }));
    const loop = createToolLoop({
      tools,
      middleware: [ask, createIncreaseHook("more"), createIncreaseHook("yet more")],
      turns,
    });
    let result = await loop.start().result;
    let asked = 0;
    for (; result.status === "waiting"; asked++) result = await loop.again({ approve: true }).result;
    expect([result.status, asked, ran]).toEqual(["done", 8, []]);
    expect(listToolAnswers(result).map(getAnswerText)[0]).toMatch(/changed after each approval/);
  });

  test("an aroundTool hook that changes approved arguments gets the tool call denied on every attempt", async () => {
    const { tools, ran } = createShop();
    const sly = defineMiddleware({
      name: "sly",
      aroundTool: async ({ call: made }, next) => {
        const other = { ...made, args: { cents: 999 } };
        await next(other);
        return next(other);
      },
    });
    const loop = createToolLoop({ tools, middleware: [ask, sly], turns });
    await loop.start().result;
    const end = await loop.again({ approve: true }).result;
    expect([ran, listResults(loop)[0]?.error?.kind]).toEqual([[], "denied"]);
    expect(listToolAnswers(end).map(getAnswerText)[0]).toContain(
      '"sly" changed the arguments of this call after their approval',
    );
  });
});

describe("hook decisions apply to the executed arguments", () => {
  const limit = hook("limit", ({ call: made }) => (cents(made.args) > 100 ? decide.deny("too much") : undefined));
  const createAmountHook = (to: number) => hook("raising", () => decide.modify({ cents: to }));
  const putting = (to: number) =>
    defineMiddleware({ name: "putting", aroundTool: ({ call: made }, next) => next({ ...made, args: { cents: to } }) });
  const ended = async (middleware: LoopOptions["middleware"] & {}) => {
    const { tools, ran } = createShop();
    const loop = createToolLoop({ tools, middleware, turns });
    const end = await loop.start().result;
    return { ran, answer: listToolAnswers(end).map(getAnswerText)[0], loop };
  };

  test("arguments changed by a later hook are checked again by the hooks before it, and no hook sees the same arguments twice", async () => {
    const seen: string[] = [];
    const seeing = (name: string) =>
      hook(name, ({ call: made }) => void seen.push(`${name} ${cents(made.args)}`) as undefined);
    const more = hook("more", ({ call: made }) => decide.modify({ cents: cents(made.args) + 1 }));
    expect(await ended([seeing("one"), more, seeing("two")])).toMatchObject({ ran: [9] });
    expect(seen).toEqual(["one 8", "two 9", "one 9"]);
    expect(await ended([limit, createAmountHook(500)])).toMatchObject({ ran: [], answer: "too much" });
    expect(await ended([limit, createAmountHook(100)])).toMatchObject({ ran: [100], answer: "paid 100" });
    expect(await ended([createAmountHook(500), limit])).toMatchObject({ ran: [], answer: "too much" });
  });

  test("arguments replaced by an aroundTool hook are checked by the beforeTool hooks", async () => {
    expect(await ended([limit, putting(500)])).toMatchObject({ ran: [], answer: "too much" });
    expect(await ended([putting(500), limit])).toMatchObject({ ran: [], answer: "too much" });
    expect(await ended([limit, putting(50)])).toMatchObject({ ran: [50] });
    const asking = hook("asking", ({ call: made }) =>
      cents(made.args) > 9 ? decide.interrupt(made, "why") : undefined,
    );
    const { ran, answer } = await ended([asking, putting(10)]);
    expect([ran, answer]).toEqual([[], expect.stringMatching(/"putting".*"asking".*a person/)]);
    const cap = hook("cap", ({ call: made }) => decide.modify({ cents: Math.min(cents(made.args), 9) }));
    const capped = await ended([cap, putting(10)]);
    expect([capped.ran, capped.answer]).toEqual([[], expect.stringMatching(/"putting".*"cap"/)]);
    const failing = hook("failing", ({ call: made }) => {
      if (cents(made.args) > 9) throw new ToolError("denied", "not today");
      return undefined;
    });
    expect(await ended([failing, putting(10)])).toMatchObject({ ran: [], answer: "not today" });
  });

  test("an approval is not requested for arguments that an earlier hook has not checked", async () => {
    const { ran, answer, loop } = await ended([limit, createAmountHook(500), ask]);
    expect([ran, answer, listEvents(loop, "run.waiting")]).toEqual([[], "too much", []]);
    const { tools, ran: once } = createShop();
    const asked = createToolLoop({ tools, middleware: [limit, createAmountHook(100), ask], turns });
    expect(listQuestions(await asked.start().result).map(({ payload }) => payload)).toMatchObject([
      { args: { cents: 100 } },
    ]);
    await asked.again({ approve: true }).result;
    expect(once).toEqual([100]);
  });

  test("hooks that keep changing each other's arguments are named in the answer and the tool call does not run", async () => {
    const more = hook("more", ({ call: made }) => decide.modify({ cents: cents(made.args) + 1 }));
    const less = hook("less", ({ call: made }) => decide.modify({ cents: cents(made.args) - 1 }));
    const { ran, answer } = await ended([more, less]);
    expect([ran, answer]).toEqual([[], expect.stringMatching(/"more".*"less"/)]);
  });
});

describe("approval record [R12]", () => {
  test("an approval is stored per thread and tool call, is used once, and its arguments come from the checkpoint [R12]", async () => {
    const { tools, ran } = createShop();
    const store = memoryStore();
    const pay = call("pay", { cents: 8 }, "c1");
    const loop = createToolLoop({
      tools,
      middleware: [ask],
      store,
      turns: [[pay], [call("pay", { cents: 8 }, "c1")], ["ok"]],
    });
    const [first] = listQuestions(await loop.start().result);
    const rows = await store.interrupts("t", "main");
    expect(rows.map(({ id, node, about }) => [id, node, typeof about])).toEqual([[first?.id, "tools", "string"]]);
    expect(first?.id).toContain("c1");
    const unasked = await loop.again({ approve: { approved: true, arguments: { cents: 1 } } }).result.catch(String);
    expect(String(unasked)).toContain("invalid_answer");
    const [second] = listQuestions(await loop.again({ approve: true }).result);
    expect([ran, second?.id === first?.id]).toEqual([[8], false]);
    const late = await loop.again({ [first?.id ?? ""]: true }).result.catch((error: unknown) => error);
    expect([isStatewrightError(late, "already_answered"), ran]).toEqual([true, [8]]);
  });

  test("an approval applies to the tool and arguments that were shown: a changed tool or changed arguments need a new approval [R12]", async () => {
    const store = memoryStore();
    const { tools, ran } = createShop();
    const slow = hook("slow", () => new Promise(() => undefined));
    const asked = createToolLoop({ tools, middleware: [ask], store, turns });
    await asked.start().result;
    // The approval is recorded, and the process dies before the call runs.
    const dying = createToolLoop({ tools, middleware: [ask, slow], store, turns });
    void dying.again({ approve: true }).result.catch(() => "died");
    await dying.world.waitUntilIdle();
    store.crash();

    const dearer = hook("dearer", ({ call: made }) => decide.modify({ cents: cents(made.args) * 10 }));
    const otherArgs = createToolLoop({ tools, middleware: [dearer, ask], store: store.peer(), turns });
    expect(listQuestions(await otherArgs.again().result)[0]?.payload).toMatchObject({ args: { cents: 80 } });
    const other = createShop("Pay, and tell everybody.");
    const otherTool = createToolLoop({ tools: other.tools, middleware: [ask], store: store.peer(), turns });
    expect(listQuestions(await otherTool.again().result)).toHaveLength(1);
    expect([ran, other.ran]).toEqual([[], []]);
    const same = createToolLoop({ tools, middleware: [ask], store: store.peer(), turns });
    expect(listQuestions(await same.again().result)[0]?.payload).toMatchObject({ args: { cents: 8 } });
    await same.again({ approve: true }).result;
    expect(ran).toEqual([8]);
  });
});

describe("approvals apply to the hook that asked", () => {
  const createApprovalHook = (name: string, asks: () => BeforeToolDecision | undefined) =>
    defineMiddleware({ name, interrupts: { [name]: approval }, beforeTool: asks });

  test("an approval under one key does not count for another middleware with another key after a policy change", async () => {
    const { tools, ran } = createShop();
    let isWatched = true;
    const payload = { reason: "it spends" };
    const middleware = [
      createApprovalHook("boss", () => (isWatched ? { action: "interrupt", key: "boss", payload } : undefined)),
      createApprovalHook("lawyer", () => ({ action: "interrupt", key: "lawyer", payload })),
    ];
    const interrupts = { boss: approval, lawyer: approval };
    const loop = createToolLoop({ tools, middleware, turns, interrupts });
    expect(listQuestions(await loop.start().result).map(({ key }) => key)).toEqual(["boss"]);
    isWatched = false;
    expect(listQuestions(await loop.again({ boss: true }).result).map(({ key }) => key)).toEqual(["lawyer"]);
    expect(ran).toEqual([]);
    expect([(await loop.again({ lawyer: true }).result).status, ran]).toEqual(["done", [8]]);
  });

  test("an approval by expiry does not count for a hook without an expiry", async () => {
    const { tools, ran } = createShop();
    const world = createVirtualWorld();
    const middleware = [
      hook("ask", ({ call: made }) => decide.interrupt(made, "it spends", { expiresMs: 1_000, onExpire: "allow" })),
      ask,
    ];
    const loop = createToolLoop({ tools, middleware, turns, world });
    await loop.start().result;
    await world.advance(2_000);
    expect(listQuestions(await loop.again().result)).toHaveLength(1);
    expect(ran).toEqual([]);
    expect([(await loop.again({ approve: true }).result).status, ran]).toEqual(["done", [8]]);
  });
});

describe("several tool calls of one message", () => {
  const three: LoopOptions["turns"] = [
    [
      call("pay", { cents: 1 }, "a"),
      call("pay", { cents: 2 }, "b"),
      call("pay", { cents: 3 }, "c"),
      call("pay", { cents: 4 }, "d"),
    ],
    ["ok"],
  ];

  test("tool calls of one message are approved, edited, rejected and answered by different people in any order over several resumes", async () => {
    const { tools, ran } = createShop();
    const store = memoryStore();
    const loop = createToolLoop({ tools, middleware: [ask], store, turns: three });
    const open = listQuestions(await loop.start().result);
    const getId = (callId: string): string =>
      open.find(({ payload }) => (payload as { readonly callId: string }).callId === callId)?.id ?? "";
    const answer = (callId: string, value: unknown) => loop.again({ [getId(callId)]: value }).result;

    expect(listQuestions(await answer("d", { respond: "paid by hand" })).map(({ id }) => id)).toEqual(
      ["a", "b", "c"].map(getId),
    );
    expect(ran).toEqual([]);
    expect(listQuestions(await answer("b", { approved: true, args: { cents: 20 } }))).toHaveLength(2);
    expect(ran).toEqual([20]);
    // A new process reads the partial answers.
    expect(listQuestions(await loop.again().result).map(({ id }) => id)).toEqual(["a", "c"].map(getId));
    expect(listQuestions(await answer("c", { approved: false, reason: "not that one" }))).toHaveLength(1);
    const end = await answer("a", true);
    expect([end.status, ran]).toEqual(["done", [20, 1]]);
    expect(listToolAnswers(end).map((message) => [message.callId, getAnswerText(message), message.isError])).toEqual([
      ["a", "paid 1", false],
      ["b", "paid 20", false],
      ["c", "A person denied this call: not that one", true],
      ["d", "paid by hand", false],
    ]);
    // The assistant message keeps its calls as the model wrote them.
    expect(end.state.messages.find(({ role }) => role === "assistant")?.content).toEqual(three[0]);
    expect(loop.requests).toHaveLength(2);
  });

  test("interrupts of several tool calls open together in call order and hold no concurrency slot and no lock [T39]", async () => {
    const { tools, ran } = createShop();
    const looked: string[] = [];
    const look = defineTool({
      name: "look",
      description: "Look.",
      input: z.object({}),
      effect: "pure",
      execution: { lock: () => ["till"] },
      run: () => void looked.push("seen"),
    });
    const [pay] = tools;
    const locked: DeskTool[] =
      pay === undefined ? [] : [{ ...pay, spec: { ...pay.spec, execution: { lock: () => ["till"] } } }];
    const asksForPay = hook("ask", ({ call: made }) =>
      made.name === "pay" ? decide.interrupt(made, "why") : undefined,
    );
    const loop = createToolLoop({
      tools: [...locked, look],
      middleware: [asksForPay],
      maxConcurrency: 1,
      turns: [[call("pay", { cents: 1 }, "a"), call("pay", { cents: 2 }, "b"), call("look", {}, "c")], ["ok"]],
    });
    const open = listQuestions(await loop.start().result);
    expect(open.map(({ payload }) => (payload as { readonly callId: string }).callId)).toEqual(["a", "b"]);
    expect([looked, ran]).toEqual([["seen"], []]);
  });
});

describe("undeclared interrupt key", () => {
  const withMiddleware = (interrupts?: InterruptShape) =>
    defineGraph({ name: "g", state: Chat })
      .nodes({
        tools: toolNode({
          tools: createShop().tools as readonly never[],
          middleware: [
            defineMiddleware({
              name: "asking",
              ...(interrupts && { interrupts }),
              beforeTool: ({ call: made }) => decide.interrupt(made, "why"),
            }),
          ],
        }),
      })
      .edges({ __start__: "tools", tools: "__end__" } as never);

  test("middleware that declares an interrupt key which the graph does not declare fails the definition of the graph", () => {
    expect(() => withMiddleware({ approve: approval })).toThrow(
      /"asking" of the tool node "tools" has the interrupt "approve".*middleware\.interrupts/s,
    );
  });

  test("an interrupt under an undeclared key of middleware without a declaration fails the run with an error that names the key", async () => {
    const message = {
      role: "assistant" as const,
      id: "a1",
      content: [call("pay", { cents: 1 })],
      finish: "calls" as const,
    };
    const error = await run(withMiddleware(), {
      thread: "t",
      store: memoryStore(),
      input: { messages: [user("go"), message] },
    }).result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "unknown_interrupt")).toBe(true);
    expect(String(error)).toContain("interrupts: { approve: approval }");
  });
});
