import { agentTool, createAgent, handoff, team } from "@statewright/agent";
import { type BudgetOptions, budget, type ExceededLimit } from "@statewright/agent/middleware";
import {
  decide,
  defineTool,
  getMessageText,
  type Message,
  type Middleware,
  type Model,
  type ModelHookRuntime,
  memoryStore,
  type RunEvent,
  StatewrightError,
  type Store,
} from "@statewright/core";
import {
  call,
  failWith,
  rejectInvalidTranscripts,
  type ScriptedEntry,
  say,
  scriptedModel,
  virtualClock,
} from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createDesk, createRecordingTool } from "../support/desk.ts";

const prices = { scripted: { input: 1, output: 10, cacheRead: 0.1 }, small: { input: 0.5, output: 1 } };
const createUsage = (inputTokens: number, outputTokens: number) => ({ usage: { inputTokens, outputTokens } });

interface Spent {
  readonly turns: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly cost: number;
  readonly wallMs: number;
  readonly refused: number;
}
const sumSpent = (state: unknown, name = "budget"): Spent =>
  (state as { readonly [channel: string]: Spent })[`${name}Spent`] as Spent;

const texts = (messages: readonly Message[]): readonly string[] =>
  messages.map((message) => `${message.role} ${getMessageText(message)}`);

function working(log: string[] = []) {
  return defineTool({
    name: "work",
    description: "Works.",
    input: z.object({}),
    effect: "pure",
    run: (_, { callId }) => {
      log.push(callId);
      return "worked";
    },
  });
}

interface BudgetSetup {
  readonly budget: BudgetOptions;
  readonly script: readonly ScriptedEntry[];
  readonly log?: string[];
  readonly store?: Store;
  readonly middleware?: readonly Middleware[];
}

/** Creates an agent with a budget and one tool. */
function createBudgetAgent({ budget: options, script, log, store = memoryStore(), middleware = [] }: BudgetSetup) {
  const scripted = scriptedModel(script);
  const world = virtualClock();
  const events: RunEvent[] = [];
  const agent = createAgent({
    name: "frugal",
    model: rejectInvalidTranscripts(scripted),
    tools: [working(log)],
    middleware: [budget(options), ...middleware],
    store,
  });
  const recordEvents = <Handle extends { on(listen: (event: RunEvent) => void): unknown }>(handle: Handle): Handle => {
    handle.on((event) => events.push(event));
    return handle;
  };
  return {
    world,
    events,
    requests: scripted.requests,
    run: (input = "go", more: { readonly onBusy?: "cancel" } = {}) =>
      recordEvents(agent.run({ thread: "t", input, world, ...more })).result,
    resume: (answers: Readonly<Record<string, unknown>> = {}, other: Store = store) =>
      recordEvents(agent.resume({ thread: "t", store: other, world, answers })).result,
  };
}

const work = call("work", {});

const createBudgetEnd = (what: string) => ({ by: "budget", reason: `the budget of ${what} is exhausted` });

describe("budget limits", () => {
  test("a budget of turns ends the agent before the next request, with a final text and reason", async () => {
    const agent = createBudgetAgent({ budget: { turns: 2 }, script: [work, work, work] });
    const { state, ended } = await agent.run();
    expect(ended).toEqual(createBudgetEnd("2 turns"));
    expect(texts(state.messages).at(-1)).toBe("assistant I stop here: the budget of 2 turns is exhausted.");
    expect(agent.requests).toHaveLength(2);
    expect(sumSpent(state)).toMatchObject({ turns: 2, toolCalls: 2 });
  });

  test("the message of a budget replaces the last text, and the end keeps its reason [FX42]", async () => {
    const fixed = createBudgetAgent({
      budget: { turns: 1, message: "Please call us at 030 1234." },
      script: [work, work],
    });
    const { state, ended } = await fixed.run();
    expect(texts(state.messages).at(-1)).toBe("assistant Please call us at 030 1234.");
    expect(ended).toEqual(createBudgetEnd("1 turns"));
    const message = ({ budget: name, limit, reason }: ExceededLimit) => `${name} ${limit}: ${reason}`;
    const made = createBudgetAgent({ budget: { name: "trial", turns: 1, message }, script: [work, work] });
    expect(texts((await made.run()).state.messages).at(-1)).toBe(
      "assistant trial turns: the budget of 1 turns is exhausted",
    );
    for (const wrong of ["", 7, null])
      expect(() => budget({ turns: 1, message: wrong as never })).toThrow(/invalid_option: budget: `message`/);
  });

  test("a budget that is not reached does not affect the agent", async () => {
    const agent = createBudgetAgent({
      budget: { turns: 2, toolCalls: 1, tokens: 99_999, cost: 1, prices },
      script: [work, say("done")],
    });
    const { state, ended } = await agent.run();
    expect([ended, texts(state.messages).at(-1)]).toEqual([{ by: "answer" }, "assistant done"]);
  });

  test("a budget per run restarts with the next run, and a budget per thread does not [I10]", async () => {
    for (const [per, by] of [
      ["run", "answer"],
      ["thread", "budget"],
    ] as const) {
      const agent = createBudgetAgent({ budget: { turns: 1, per }, script: [say("one"), say("two")] });
      await agent.run();
      expect((await agent.run("more")).ended?.by).toBe(by);
    }
  });

  test("a budget of tool calls covers all calls of one message: calls above the limit are refused, and the agent ends", async () => {
    const log: string[] = [];
    const agent = createBudgetAgent({
      budget: { toolCalls: 3 },
      script: [[work, work], [work, work, work], say("never")],
      log,
    });
    const { state, ended } = await agent.run();
    expect(log).toHaveLength(3);
    expect(ended).toEqual(createBudgetEnd("3 tool calls"));
    expect(texts(state.messages).filter((text) => text.startsWith("tool Not run"))).toEqual([
      "tool Not run: the budget of 3 tool calls is exhausted.",
      "tool Not run: the budget of 3 tool calls is exhausted.",
    ]);
    expect(sumSpent(state)).toMatchObject({ toolCalls: 3, refused: 2 });
  });

  test("a budget of tool calls used up exactly still allows the model's answer", async () => {
    const agent = createBudgetAgent({ budget: { toolCalls: 1 }, script: [work, say("done")] });
    expect((await agent.run()).ended).toEqual({ by: "answer" });
  });

  test("a budget of tool calls counts a call with modified arguments once", async () => {
    const log: string[] = [];
    const working = createRecordingTool(log, "ping");
    const middleware = [budget({ toolCalls: 1 }), { name: "louder", beforeTool: () => decide.modify({ text: "A" }) }];
    const agent = createDesk({ tools: [working], middleware, script: [call("ping", { text: "a" }), say("done")] });
    const { status } = await agent.run().result;
    expect([status, log]).toEqual(["done", ["ping A"]]);
  });

  test("a budget of tokens counts input and output tokens", async () => {
    const agent = createBudgetAgent({
      budget: { tokens: 100 },
      script: [[say("", createUsage(50, 10)), work], [say("", createUsage(40, 0)), work], say("never")],
    });
    const { state, ended } = await agent.run();
    expect(ended).toEqual(createBudgetEnd("100 tokens"));
    expect(sumSpent(state)).toMatchObject({ tokens: 100, turns: 2 });
  });

  test("a budget of cost uses prices per million tokens, with cached tokens priced separately", async () => {
    const usage = { inputTokens: 1_000_000, cachedTokens: 500_000, outputTokens: 100_000 };
    const agent = createBudgetAgent({
      budget: { cost: 1.5, prices },
      script: [[say("", { usage }), work], say("never")],
    });
    const { state, ended } = await agent.run();
    expect(ended).toEqual(createBudgetEnd("a cost of 1.5"));
    expect(sumSpent(state).cost).toBeCloseTo(0.5 + 0.05 + 1);
  });

  test("a budget of cost is used up by parts whose floating-point sum is slightly below the limit", async () => {
    const dime = say("", createUsage(100_000, 0));
    const script = Array.from({ length: 11 }, () => [dime, work]);
    const agent = createBudgetAgent({ budget: { cost: 1, prices }, script });
    const { state, ended } = await agent.run();
    expect(ended).toEqual(createBudgetEnd("a cost of 1"));
    expect([agent.requests.length, sumSpent(state).cost < 1]).toEqual([10, true]);
  });

  test("a budget of wallMs counts model requests and tool calls, not the time of an open interrupt", async () => {
    const agent = createBudgetAgent({
      budget: { wallMs: 1_000 },
      script: [work, work, say("never")],
      middleware: [
        {
          name: "slow",
          interrupts: { sure: z.boolean() },
          beforeModel: async (_, { interrupt }) => void (await interrupt("sure")) as undefined,
          aroundModel: async (request, next, { wait }) => {
            await wait(600);
            return next(request);
          },
        },
      ],
    });
    const step = async (going: ReturnType<typeof agent.resume>) => {
      await agent.world.advance(600);
      const end = await going;
      await agent.world.advance(1_000_000);
      return end;
    };
    await step(agent.run());
    await step(agent.resume({ sure: true }));
    const { state, ended } = await step(agent.resume({ sure: true }));
    expect(ended).toEqual(createBudgetEnd("1000 ms of active time"));
    expect(sumSpent(state)).toMatchObject({ wallMs: 1_200, turns: 2 });
  });
});

test("a budget reports and records active time in whole milliseconds", async () => {
  const entered: string[] = [];
  const store = memoryStore();
  const commit: Store["commit"] = (write, onCommitted) => {
    entered.push(
      ...(write.effects ?? []).flatMap(({ outcome, task }) => (task.endsWith("/ledger") ? (outcome ?? "") : [])),
    );
    store.commit(write, onCommitted);
  };
  const agent = createBudgetAgent({
    budget: { wallMs: 10_000 },
    script: [work, say("done")],
    store: { ...store, commit },
    middleware: [
      {
        name: "slow",
        aroundModel: async (request, next, { wait }) => {
          await wait(0.3);
          return next(request);
        },
        aroundTool: async ({ call: made }, next, { wait }) => {
          await wait(600.7);
          return next(made);
        },
        onMessage: () => new Promise((resolve) => setImmediate(resolve)),
      },
    ],
  });
  const going = agent.run();
  await agent.world.advance(2_000);
  const { state } = await going;
  expect([sumSpent(state).wallMs, Number.isInteger(Reflect.get(sumSpent(state), "until"))]).toEqual([601, true]);
  expect(entered.join(" ")).not.toMatch(/\d\.\d/);
  expect(entered.length).toBeGreaterThan(0);
});

describe("unknown usage", () => {
  test("an answer without usage stops a budget of tokens, unless onUnknown is allow", async () => {
    const bare: Model = {
      id: "bare",
      respond: async () => ({ content: [{ type: "call", id: "a", name: "work", args: {} }], finish: "calls" }),
    };
    const run = (onUnknown: "stop" | "allow") =>
      createAgent({
        name: "a",
        model: bare,
        tools: [working()],
        middleware: [budget({ tokens: 10, turns: 3, onUnknown })],
      }).run({
        thread: "t",
        input: "go",
      }).result;
    expect((await run("stop")).ended).toEqual({
      by: "budget",
      reason: "a model reported no token usage, and the budget limits tokens",
    });
    expect((await run("allow")).ended).toEqual(createBudgetEnd("3 turns"));
  });

  test.each([Number.NaN, -5])("an invalid token count such as %d is unknown usage to a budget", async (inputTokens) => {
    const agent = createBudgetAgent({
      budget: { tokens: 100, cost: 1, prices },
      script: [[say("", createUsage(inputTokens, 1)), work]],
    });
    const { state, ended } = await agent.run();
    expect(ended?.reason).toBe("a model reported no token usage, and the budget limits tokens");
    expect(sumSpent(state)).toMatchObject({ tokens: 0, cost: 0, unknownTokens: 1, unknownCost: 1 });
  });

  test("a budget of cost refuses a model without a price before any request", async () => {
    const agent = createBudgetAgent({
      budget: { cost: 1, prices: { other: { input: 1, output: 1 } } },
      script: [say("never")],
    });
    await expect(agent.run()).rejects.toThrow(
      'middleware "budget": `prices` must be an object or function with a price of the model "scripted" for the cost limit, got none',
    );
    expect(agent.requests).toHaveLength(0);
  });

  test("cache write tokens without a price make the cost of a budget unknown", async () => {
    const usage = { inputTokens: 10, outputTokens: 1, cacheWriteTokens: 5 };
    const agent = createBudgetAgent({
      budget: { cost: 1, prices },
      script: [[say("", { usage }), work], say("never")],
    });
    expect((await agent.run()).ended).toMatchObject({
      by: "budget",
      reason: "the cost of a model call is unknown, and the budget limits cost",
    });
  });

  test("an auxiliary model call of an unpriced model makes the cost of a budget unknown", async () => {
    const usage = { inputTokens: 100, outputTokens: 0 };
    const unpriced: Model = {
      id: "unpriced",
      respond: async () => ({ content: [{ type: "text", text: "short" }], finish: "stop", usage }),
    };
    const summing: Middleware = {
      name: "summing",
      beforeModel: async (request, { ask }: ModelHookRuntime) => {
        await ask("summary", { model: unpriced, request: { messages: request.messages, tools: [] } });
        return undefined;
      },
    };
    const agent = createBudgetAgent({
      budget: { cost: 1, prices },
      script: [[say("", createUsage(1, 1)), work], say("never")],
      middleware: [summing],
    });
    const { state, ended } = await agent.run();
    expect(sumSpent(state)).toMatchObject({ tokens: 102, unknownCost: 1 });
    expect(ended).toEqual({ by: "budget", reason: "the cost of a model call is unknown, and the budget limits cost" });
  });

  test("a budget reports failed attempts and counts their known usage", async () => {
    const agent = createBudgetAgent({
      budget: { tokens: 1_000, turns: 5 },
      script: [failWith(Object.assign(new Error("overloaded"), { status: 529 })), say("done", createUsage(5, 5))],
    });
    const going = agent.run();
    await agent.world.advance(60_000);
    const { state } = await going;
    expect(sumSpent(state)).toMatchObject({ tokens: 10, unknownAttempts: 1, turns: 1 });
  });
});

describe("failed requests", () => {
  const overloaded = () =>
    failWith(
      new StatewrightError("model_failed", {
        what: "the model is overloaded",
        next: "Wait",
        details: { retryable: true, kind: "overloaded", usage: { inputTokens: 9, outputTokens: 1 } },
      }),
    );
  const failing = (requests: number) => Array.from({ length: requests }, overloaded);

  /** Runs the agent, and resumes it after each failure like a new process. */
  async function runUntilEnd(agent: ReturnType<typeof createBudgetAgent>) {
    for (let going = agent.run(), passes = 1; ; going = agent.resume(), passes++) {
      const ending = going.then(
        (result) => result,
        (error: unknown) => error,
      );
      await agent.world.advance(1_000_000);
      const result = await ending;
      if (!(result instanceof Error)) return { passes, result: await going };
      if (passes === 10) throw result;
    }
  }

  test.each(["run", "thread"] as const)(
    "failed model calls count for a budget: resumes continue until the budget of the %s is used up [I10]",
    async (per) => {
      const agent = createBudgetAgent({ budget: { per, tokens: 60 }, script: failing(40) });
      const { passes, result } = await runUntilEnd(agent);
      expect([passes, agent.requests.length]).toEqual([3, 6]);
      expect(result.ended).toEqual(createBudgetEnd("60 tokens"));
      expect(sumSpent(result.state)).toMatchObject({ tokens: 60, turns: 0, unknownAttempts: 0 });
    },
  );

  test("a budget counts failed attempts once, although the final answer lists them too", async () => {
    const agent = createBudgetAgent({
      budget: { tokens: 1_000 },
      script: [...failing(7), say("done", createUsage(5, 5))],
    });
    const { passes, result } = await runUntilEnd(agent);
    expect([passes, agent.requests.length]).toEqual([3, 8]);
    expect(result.state.messages.at(-1)).toMatchObject({ failedAttempts: { length: 7 } });
    expect(sumSpent(result.state)).toMatchObject({ tokens: 80, turns: 1, unknownAttempts: 0, unknownTokens: 0 });
  });

  test("failed requests count their time for a budget of wallMs [I10]", async () => {
    const slow: Middleware = {
      name: "slow",
      aroundModel: async (request, next, { wait }) => {
        await wait(600);
        return next(request);
      },
    };
    const broken = failWith(new StatewrightError("model_failed", { what: "no", next: "Mend it" }));
    const agent = createBudgetAgent({
      budget: { wallMs: 1_000 },
      script: [broken, broken, broken],
      middleware: [slow],
    });
    const { passes, result } = await runUntilEnd(agent);
    expect([passes, result.ended]).toEqual([3, createBudgetEnd("1000 ms of active time")]);
    expect(sumSpent(result.state)).toMatchObject({ wallMs: 1_200 });
  });
});

test("auxiliary model calls of beforeAgent and afterAgent count for a budget, failed attempts included [I10]", async () => {
  const broken = new StatewrightError("model_failed", {
    what: "the model is overloaded",
    next: "Wait",
    details: { retryable: true, kind: "overloaded", usage: { inputTokens: 3, outputTokens: 0 } },
  });
  const small = scriptedModel([failWith(broken), say("noted", createUsage(10, 0)), say("noted", createUsage(10, 0))]);
  const auxiliaryRequest = { model: small, request: { messages: [], tools: [] } };
  const asks: Middleware = {
    name: "asks",
    beforeAgent: async ({ ask }) => void (await ask("plan", auxiliaryRequest)),
    afterAgent: async (_, { ask }) => void (await ask("notes", auxiliaryRequest)),
  };
  const agent = createBudgetAgent({
    budget: { tokens: 1_000 },
    script: [say("done", createUsage(5, 0))],
    middleware: [asks],
  });
  const going = agent.run();
  await agent.world.advance(1_000_000);
  expect(sumSpent((await going).state)).toMatchObject({ tokens: 28, turns: 1, unknownAttempts: 0 });
});

describe("budget interrupts", () => {
  const script = [work, work, say("done")];

  test("a budget interrupt shows the amount spent, its answer extends the budget, and the agent continues", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, onExceeded: "ask" }, script });
    const first = await agent.run();
    expect(first).toMatchObject({
      status: "waiting",
      interrupts: [
        {
          key: "budget",
          payload: {
            budget: "budget",
            per: "run",
            exceeded: "turns",
            reason: "the budget of 1 turns is exhausted",
            limits: { turns: 1 },
            spent: { turns: 1, toolCalls: 1 },
          },
        },
      ],
    });
    const second = await agent.resume({ budget: { turns: 2 } });
    expect(second).toMatchObject({ status: "done", ended: { by: "answer" } });
    expect(sumSpent(second.state)).toMatchObject({ turns: 3, extended: { turns: 2 } });
    expect(agent.requests).toHaveLength(3);
  });

  test("answering a budget interrupt with true grants the same amount again, and the next limit interrupts again", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, onExceeded: "ask" }, script });
    await agent.run();
    expect(await agent.resume({ budget: true })).toMatchObject({ status: "waiting" });
    expect(await agent.resume({ budget: true })).toMatchObject({ status: "done" });
  });

  test("a budget interrupts again when the granted extension is not enough", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, tokens: 1, onExceeded: "ask" }, script });
    await agent.run();
    const second = await agent.resume({ budget: { turns: 5 } });
    expect(second).toMatchObject({ status: "waiting", interrupts: [{ payload: { exceeded: "tokens" } }] });
    expect(await agent.resume({ budget: { tokens: 9_999 } })).toMatchObject({ status: "done" });
  });

  test("answering a budget interrupt with false ends the agent", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, onExceeded: "ask" }, script });
    await agent.run();
    const end = await agent.resume({ budget: false });
    expect(end).toMatchObject({ status: "done", ended: createBudgetEnd("1 turns") });
  });

  test("a budget interrupt that expires ends the agent", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, onExceeded: "ask", expiresMs: 1_000 }, script });
    await agent.run();
    await agent.world.advance(2_000);
    expect(await agent.resume()).toMatchObject({ status: "done", ended: createBudgetEnd("1 turns") });
  });

  test("a budget interrupt can extend the number of tool calls after refused calls", async () => {
    const log: string[] = [];
    const agent = createBudgetAgent({
      budget: { toolCalls: 1, onExceeded: "ask" },
      script: [[work, work], work, say("done")],
      log,
    });
    expect(await agent.run()).toMatchObject({ interrupts: [{ payload: { exceeded: "toolCalls" } }] });
    expect(await agent.resume({ budget: { toolCalls: 1 } })).toMatchObject({ ended: { by: "answer" } });
    expect(log).toHaveLength(2);
  });

  test("an invalid answer to a budget interrupt is refused with the expected values", async () => {
    const agent = createBudgetAgent({ budget: { turns: 1, onExceeded: "ask" }, script });
    await agent.run();
    await expect(agent.resume({ budget: { steps: 3 } })).rejects.toThrow(
      "expected true, false, or an object with the amounts to add: turns, toolCalls, tokens, cost, wallMs",
    );
  });
});

test("a budget warning is emitted once, added to each later request, and not saved", async () => {
  const agent = createBudgetAgent({
    budget: { turns: 4, tokens: 1_000_000, warnAt: 0.5 },
    script: [work, work, work, say("done")],
  });
  const { state } = await agent.run();
  const warnings = agent.events.filter((event) => event.type === "custom");
  expect(warnings).toMatchObject([
    { name: "budget.warning", payload: { budget: "budget", per: "run", near: ["turns"], usage: "2 of 4 turns" } },
  ]);
  const notes = agent.requests.map(({ messages }) => texts(messages).filter((text) => text.includes("[Budget")));
  expect(notes).toEqual([
    [],
    [],
    ["user [Budget: 2 of 4 turns used. Finish soon.]"],
    ["user [Budget: 3 of 4 turns used. Finish soon.]"],
  ]);
  expect(texts(state.messages).join(" ")).not.toContain("[Budget");
});

test("two budgets of an agent count separately", async () => {
  const agent = createBudgetAgent({
    budget: { turns: 3 },
    middleware: [budget({ name: "daily", per: "thread", turns: 4 })],
    script: [work, say("1"), work, work, say("never")],
  });
  expect((await agent.run()).ended).toEqual({ by: "answer" });
  const second = await agent.run();
  expect(second.ended).toEqual({ by: "daily", reason: "the budget of 4 turns is exhausted" });
});

describe("budget trees", () => {
  /** A lead agent that starts `count` researchers in one message; each of them runs `turns` turns. */
  function tree(
    limits: BudgetOptions | readonly Middleware[],
    count: number,
    turns: number,
    store: Store = memoryStore(),
  ) {
    const asked: string[] = [];
    const researcher = createAgent({
      name: "researcher",
      model: scriptedModel(({ messages }) => {
        asked.push("researcher");
        return messages.filter(({ role }) => role === "assistant").length + 1 < turns
          ? [say("", createUsage(10, 0)), work]
          : say("found", createUsage(10, 0));
      }),
      tools: [working()],
    });
    const lead = createAgent({
      name: "lead",
      model: scriptedModel(({ messages }) => {
        asked.push("lead");
        if (messages.at(-1)?.role === "tool") return say("summed up", createUsage(10, 0));
        return [
          say("", createUsage(10, 0)),
          ...Array.from({ length: count }, () => call("research", { task: "look" })),
        ];
      }),
      tools: [agentTool(researcher, { name: "research", description: "Researches." })],
      middleware: Array.isArray(limits) ? limits : [budget(limits as BudgetOptions)],
      store,
    });
    return { lead, asked };
  }

  test("sub-agents spend from the budget of the calling agent", async () => {
    const { lead, asked } = tree({ turns: 20, tokens: 1_000 }, 2, 2);
    const { state, ended } = await lead.run({ thread: "t", input: "go" }).result;
    expect(ended).toEqual({ by: "answer" });
    expect(asked).toHaveLength(6);
    expect(sumSpent(state)).toMatchObject({ turns: 6, tokens: 60, toolCalls: 4 });
  });

  test("a budget of a tree adds no commits: spending of sub-agents is written with existing commits", async () => {
    const countCommits = async (middleware: readonly Middleware[]): Promise<number> => {
      let commits = 0;
      const memory = memoryStore();
      const commit: Store["commit"] = (write, onCommitted) => {
        commits += 1;
        memory.commit(write, onCommitted);
      };
      const { lead } = tree(middleware, 1, 5, { ...memory, commit });
      await lead.run({ thread: "t", input: "go" }).result;
      return commits;
    };
    expect(await countCommits([budget({ turns: 20, tokens: 1_000, toolCalls: 50 })])).toBe(await countCommits([]));
  });

  test.each([3, 4, 5, 6, 7])(
    "a budget tree of parallel sub-agents makes at most %i requests in total",
    async (turns) => {
      const { lead, asked } = tree({ turns }, 3, 3);
      const { state, ended } = await lead.run({ thread: "t", input: "go" }).result;
      expect(asked).toHaveLength(turns);
      expect(sumSpent(state).turns).toBe(turns);
      expect(ended).toEqual(createBudgetEnd(`${turns} turns`));
      // A stopped sub-agent is not a success.
      const stopped = state.messages.filter((message) => message.role === "tool" && message.isError);
      expect(stopped.length).toBeGreaterThan(0);
    },
  );

  test.each([2, 3, 4])(
    "a budget tree runs at most %i tool calls in total, calls of sub-agent tools included",
    async (toolCalls) => {
      const { lead } = tree({ toolCalls }, 2, 3);
      const { state } = await lead.run({ thread: "t", input: "go" }).result;
      expect(sumSpent(state).toolCalls).toBe(toolCalls);
    },
  );

  test("a budget tree holds back parallel requests that would exceed the remaining tokens", async () => {
    const { lead, asked } = tree({ tokens: 30 }, 3, 1);
    const { state } = await lead.run({ thread: "t", input: "go" }).result;
    expect(asked).toEqual(["lead", "researcher", "researcher"]);
    expect(sumSpent(state).tokens).toBe(30);
  });

  test("a single answer to a budget interrupt extends the budget for all waiting sub-agents", async () => {
    const { lead, asked } = tree({ turns: 3, onExceeded: "ask" }, 2, 2);
    const first = await lead.run({ thread: "t", input: "go" }).result;
    expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "research.budget" }] });
    const second = await lead.resume({ thread: "t", answers: { "research.budget": { turns: 2 } } }).result;
    expect(second).toMatchObject({
      status: "waiting",
      interrupts: [{ payload: { spent: { extended: { turns: 2 } } } }],
    });
    expect([sumSpent(second.state).turns, asked]).toHaveLength(2);
    const third = await lead.resume({ thread: "t", answers: { budget: true } }).result;
    expect(third).toMatchObject({ status: "done", ended: { by: "answer" } });
    expect(asked).toHaveLength(6);
    expect(sumSpent(third.state)).toMatchObject({ turns: 6, extended: { turns: 5 } });
  });

  test.each([
    ["throws", () => Promise.reject(new Error("broken")), false],
    [
      "raises an undeclared interrupt",
      ({ interrupt }: Pick<ModelHookRuntime, "interrupt">) => interrupt("nothing"),
      true,
    ],
  ])("a budget tree does not wait for a request blocked by a hook: it %s", async (_, fails, isFatal) => {
    const researcher = createAgent({
      name: "researcher",
      model: scriptedModel(() => say("found", createUsage(10, 0))),
      middleware: [
        {
          name: "picky",
          beforeModel: async ({ messages }, runtime) => {
            if (messages.some((message) => getMessageText(message) === "bad")) await fails(runtime);
            return undefined;
          },
        },
      ],
    });
    const lead = createAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool"
          ? say("summed up", createUsage(10, 0))
          : [
              say("", createUsage(10, 0)),
              call("research", { task: "bad" }, { id: "a" }),
              call("research", { task: "good" }, { id: "b" }),
            ],
      ),
      tools: [agentTool(researcher, { name: "research", description: "Researches." })],
      // Budget for the lead and one researcher: the other researcher waits until that request has ended.
      middleware: [budget({ tokens: 20, turns: 9 })],
      store: memoryStore(),
    });
    const { result } = lead.run({ thread: "t", input: "go" });
    if (isFatal) await expect(result).rejects.toThrow("unknown_interrupt");
    else expect(sumSpent((await result).state)).toMatchObject({ turns: 2, tokens: 20 });
  });

  test("a budget with tree false does not count spending of sub-agents", async () => {
    const { lead } = tree({ turns: 3, tree: false }, 2, 3);
    const { state, ended } = await lead.run({ thread: "t", input: "go" }).result;
    expect(ended).toEqual({ by: "answer" });
    expect(sumSpent(state)).toMatchObject({ turns: 2, toolCalls: 2 });
  });

  test("a budget shared by an agent and its sub-agent counts once", async () => {
    const shared = budget({ turns: 3 });
    const inner = createAgent({ name: "inner", model: scriptedModel([say("found")]), middleware: [shared] });
    const outer = createAgent({
      name: "outer",
      model: scriptedModel([call("inner", { task: "x" }), say("done")]),
      tools: [agentTool(inner, { description: "Looks." })],
      middleware: [shared],
    });
    const { state, ended } = await outer.run({ thread: "t", input: "go" }).result;
    expect([ended, sumSpent(state).turns]).toEqual([{ by: "answer" }, 3]);
  });
});

test("maxTurns ends an agent by that name, and its sub-agents have their own turn count", async () => {
  const inner = createAgent({
    name: "inner",
    model: scriptedModel([work, say("found")]),
    tools: [working()],
    maxTurns: 2,
  });
  const outer = createAgent({
    name: "outer",
    model: scriptedModel([call("inner", { task: "x" }), call("inner", { task: "y" }), say("never")]),
    tools: [agentTool(inner, { description: "Looks." })],
    maxTurns: 2,
  });
  const { ended } = await outer.run({ thread: "t", input: "go" }).result;
  expect(ended).toEqual({ by: "maxTurns", reason: "the limit of 2 turns is reached" });
  expect(() => createAgent({ name: "a", model: scriptedModel([]), maxTurns: 0 })).toThrow(
    'agent "a": `maxTurns` must be an integer ≥ 1 or Infinity, got 0',
  );
});

test("a recursive agent has its own turn count in each call, and all calls spend from one budget", async () => {
  const agent: ReturnType<typeof createAgent> = createAgent({
    name: "looper",
    model: scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").length;
      const [first] = messages;
      if (first !== undefined && getMessageText(first) === "go")
        return results < 2 ? call("again", { task: `part ${results}` }) : say("whole");
      return results < 2 ? work : say("a part");
    }),
    tools: [working(), agentTool(() => agent, { name: "again", description: "Does a part." })],
    maxTurns: 3,
    middleware: [budget({ turns: 99 })],
  });
  const { state, ended } = await agent.run({ thread: "t", input: "go" }).result;
  expect(ended).toEqual({ by: "answer" });
  expect(texts(state.messages)).toContain("tool a part");
  expect(sumSpent(state)).toMatchObject({ turns: 9, toolCalls: 6 });
});

test("a team spends from one budget, and each of its agents has its own turn count", async () => {
  const members = (maxTurns: number) => [
    createAgent({
      name: "triage",
      model: scriptedModel([call("transfer_to_billing", {}), say("never")]),
      tools: [handoff("billing")],
      maxTurns,
    }),
    createAgent({ name: "billing", model: scriptedModel([work, work, say("paid")]), tools: [working()], maxTurns }),
  ];
  const office = team({ name: "office", agents: members(3), middleware: [budget({ turns: 10 })] });
  const { state, ended } = await office.run({ thread: "t", input: "pay" }).result;
  expect([ended, sumSpent(state).turns]).toEqual([{ by: "answer" }, 4]);
  const hurried = team({ name: "office", agents: members(3), middleware: [budget({ turns: 3 })] });
  expect((await hurried.run({ thread: "t", input: "pay" }).result).ended).toEqual(createBudgetEnd("3 turns"));
  const short = team({ name: "office", agents: members(2) });
  expect((await short.run({ thread: "t", input: "pay" }).result).ended?.by).toBe("maxTurns");
});

test("two budgets with one name are refused at agent creation", () => {
  const twice = [budget({ turns: 1 }), budget({ tokens: 1 })];
  expect(() => createAgent({ name: "a", model: scriptedModel([]), middleware: twice })).toThrow(
    'middleware "budget": `channels` must be channels that no other middleware declares, got the channel "budgetSpent" of another middleware. Rename one of the middleware',
  );
});

test("the spending of a cancelled run counts in its thread", async () => {
  const store = memoryStore();
  const agent = createBudgetAgent({
    budget: { per: "thread", turns: 10, tokens: 1_000 },
    script: [[say("", createUsage(7, 0)), work], say("more", createUsage(7, 0))],
    store,
    middleware: [
      {
        name: "cancels",
        beforeTool: () => ({ action: "abort", reason: "enough" }),
      },
    ],
  });
  expect(await agent.run()).toMatchObject({ status: "cancelled" });
  const { state } = await agent.run("more");
  expect(sumSpent(state)).toMatchObject({ turns: 2, tokens: 14 });
});

test.each([
  ["run", 1],
  ["thread", 2],
] as const)(
  "a resume after an abort or a cancel restarts a budget per run and continues one per thread: %s",
  async (per, turns) => {
    for (const how of ["abort", "cancel"]) {
      const store = memoryStore();
      const aborts: Middleware = { name: "aborts", beforeTool: () => ({ action: "abort", reason: "enough" }) };
      const agent = createAgent({
        name: "frugal",
        model: scriptedModel([[say("", createUsage(7, 0)), work], say("more", createUsage(7, 0))]),
        tools: [
          defineTool({
            name: "work",
            description: "Works.",
            input: z.object({}),
            effect: "pure",
            run: () => {
              going.cancel("enough");
              return "worked";
            },
          }),
        ],
        middleware: [budget({ per, turns: 10 }), ...(how === "abort" ? [aborts] : [])],
        store,
      });
      const going = agent.run({ thread: "t", input: "go" });
      expect((await going.result).status).toBe("cancelled");
      const { state } = await agent.resume({ thread: "t" }).result;
      expect([how, sumSpent(state).turns]).toEqual([how, turns]);
    }
  },
);

test("the spending of a failed run counts in its thread, also without a resume", async () => {
  let isBroken = true;
  const agent = createBudgetAgent({
    budget: { per: "thread", tokens: 1_000 },
    script: [say("one", createUsage(7, 0)), say("two", createUsage(7, 0))],
    middleware: [
      {
        name: "breaks",
        afterAgent: () => {
          if (isBroken) throw new Error("broken");
        },
      },
    ],
  });
  await expect(agent.run()).rejects.toThrow("broken");
  isBroken = false;
  const { state } = await agent.run("more", { onBusy: "cancel" });
  expect(sumSpent(state)).toMatchObject({ turns: 2, tokens: 14 });
});

test.each([
  [{}, "budget: expected at least one of its options, got none"],
  [{ turns: 0 }, "budget: `turns` must be an integer ≥ 1, got 0"],
  [{ toolCalls: -1 }, "budget: `toolCalls` must be an integer ≥ 0, got -1"],
  [{ cost: 1 }, "budget: `prices` must be an object or function with token prices for the `cost` limit, got undefined"],
  [{ cost: 0, prices }, "budget: `cost` must be a number > 0, got 0"],
  [{ cost: 1, prices: { x: { input: -1, output: 1 } } }, 'the price of "x": expected numbers ≥ 0, got -1'],
  [{ turns: 1, warnAt: 80 }, "budget: `warnAt` must be a share of the limits between 0 and 1, such as 0.8, got 80"],
  [{ turns: 1, onExceeded: "stop" }, 'budget: `onExceeded` must be "end" or "ask", got "stop"'],
  [{ turns: 1, per: "day" }, 'budget: `per` must be "run" or "thread", got "day"'],
  [{ maxTurns: 1 }, 'budget has no option "maxTurns"'],
  [{ turns: 1, name: "a b" }, 'budget: `name` must be a short name of letters, digits, _ and -, got "a b"'],
])("budget(%j) is refused: %s", (options, text) => {
  expect(() => budget(options as BudgetOptions)).toThrow(text);
});
