/** An agent as a node of a graph: an ordinary subgraph. */
import { type AgentOptions, agentTool, createAgent, getAgentEnd, type NoState } from "@statewright/agent";
import { budget, limitCalls, stopLoops } from "@statewright/agent/middleware";
import {
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  getMessageText,
  type Message,
  type Middleware,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
} from "@statewright/core";
import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createPayTool } from "../support/payment-tool.ts";

const paid: number[] = [];
const pay = createPayTool(paid);
const askFirst = defineMiddleware({
  name: "ask first",
  beforeTool: ({ call: made }) => decide.interrupt(made, "it pays"),
});

test("an agent inside a graph interrupts through the graph, survives a crash, calls its tool once, and returns its text", async () => {
  const clerk = createAgent({
    name: "clerk",
    model: scriptedModel([call("pay", { cents: 7 }), say("It is paid.")]),
    tools: [pay],
    middleware: [askFirst],
  });
  const desk = defineGraph({ name: "desk", state: defineState({ task: z.string(), answer: z.string().default("") }) })
    .nodes({
      clerk: subgraph(clerk, {
        input: (state) => clerk.toInput(state.task),
        output: ({ messages }) => ({ answer: getMessageText(messages.at(-1) as Message) }),
      }),
    })
    .edges({ [START]: "clerk", clerk: END });
  const store = memoryStore();
  const first = await run(desk, { store, thread: "t", input: { task: "Pay 7 cents." } }).result;
  expect(first).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "clerk.approve", node: "clerk.tools", payload: { reason: "it pays", args: { cents: 7 } } }],
  });
  const peer = store.peer();
  store.crash();
  const second = await resume(desk, { store: peer, thread: "t", answers: { "clerk.approve": true } }).result;
  expect(second.state.answer).toBe("It is paid.");
  expect(paid).toEqual([7]);
});

describe("an agent inside a graph", () => {
  /** An agent that never stops, inside a graph that would store its final text. */
  async function stopped(options: { readonly middleware?: readonly Middleware[]; readonly maxSteps?: number }) {
    const look = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "nothing" });
    const clerk = createAgent({
      name: "clerk",
      model: scriptedModel(Array.from({ length: 20 }, () => [say("Still looking."), call("look", {})])),
      tools: [look],
      ...(options.middleware && { middleware: options.middleware }),
    });
    const filed: string[] = [];
    const desk = defineGraph({ name: "desk", state: defineState({ answer: z.string().default("") }) })
      .nodes({
        clerk: subgraph(clerk, {
          input: () => clerk.toInput("Look."),
          output: ({ messages }) => ({ answer: getMessageText(messages.at(-1) as Message) }),
        }),
        file: ({ answer }) => {
          filed.push(answer);
        },
      })
      .edges({ [START]: "clerk", clerk: "file", file: END });
    const { maxSteps } = options;
    const end = await run(desk, { store: memoryStore(), thread: "t", ...(maxSteps && { maxSteps }) }).result.then(
      ({ status, state, ...more }) => ({ status, answer: state.answer, ...more }),
      ({ code }: { readonly code: string }) => ({ status: code, answer: "" }),
    );
    expect(filed).toEqual([]);
    return end;
  }

  test.each([
    ["a loop", { middleware: [stopLoops({ same: 1, warnings: 0 })] }, "cancelled"],
    ["a limit to its calls", { middleware: [limitCalls({ perRun: 2, atLimit: "end" })] }, "cancelled"],
    ["a limit to its steps", { maxSteps: 6 }, "step_limit"],
  ] as const)("an inner agent stopped by %s is never treated as answered [T55]", async (_what, options, status) => {
    expect(await stopped(options)).toMatchObject({ status, answer: "" });
  });
});

describe("an inner agent at a limit", () => {
  const usage = { inputTokens: 500_000, outputTokens: 0 };
  const prices = { scripted: { input: 1, output: 1 } };
  /** An agent with tool calls of 400 ms that reaches no answer before any limit. */
  function createClerk(
    limit: Partial<Pick<AgentOptions<NoState, unknown, unknown>, "maxTurns" | "middleware">>,
    hasOutput: boolean,
  ) {
    return createAgent({
      name: "clerk",
      model: scriptedModel(() => [say("Still looking.", { usage }), call("look", {})]),
      tools: [
        defineTool({
          name: "look",
          description: "Looks.",
          input: z.object({}),
          effect: "pure",
          run: async (_, { wait }) => {
            await wait(400);
            return "nothing";
          },
        }),
      ],
      ...limit,
      ...(hasOutput && { output: z.object({ found: z.string() }) }),
    });
  }

  const limits = [
    ["maxTurns", { maxTurns: 2 }, "maxTurns", /limit of 2 turns is reached/],
    ["a budget of turns", { middleware: [budget({ turns: 2 })] }, "budget", /budget of 2 turns is exhausted/],
    ["a budget of tool calls", { middleware: [budget({ toolCalls: 1 })] }, "budget", /budget of 1 tool calls/],
    ["a budget of tokens", { middleware: [budget({ tokens: 900_000 })] }, "budget", /budget of 900000 tokens/],
    ["a budget of cost", { middleware: [budget({ cost: 0.9, prices })] }, "budget", /budget of a cost of 0.9/],
    ["a budget of time", { middleware: [budget({ wallMs: 700 })] }, "budget", /budget of 700 ms of active time/],
  ] as const;

  test.each(limits)(
    "a sub-agent tool stopped by %s returns an error to the calling agent [T55]",
    async (_what, limit, _by, why) => {
      for (const hasOutput of [false, true]) {
        const boss = createAgent({
          name: "boss",
          model: scriptedModel([call("clerk", { task: "look" }), say("done")]),
          tools: [agentTool(createClerk(limit, hasOutput), { description: "Looks." })],
        });
        const world = virtualClock();
        const { result } = boss.run({ input: "go", world });
        await world.advance(10_000);
        const { state, ended } = await result;
        const answer = state.messages.find((message) => message.role === "tool");
        expect([ended, answer?.isError]).toEqual([{ by: "answer" }, true]);
        expect(getMessageText(answer as Message)).toMatch(/^clerk was stopped before it had an answer: /);
        expect(getMessageText(answer as Message)).toMatch(why);
        expect(getMessageText(answer as Message)).toMatch(/Findings so far: Still looking\.$/);
      }
    },
  );

  test.each(limits)("an agent node ended by %s is distinguishable from an answered one", async (_, limit, by) => {
    for (const hasOutput of [false, true]) {
      const inner = createClerk(limit, hasOutput);
      const desk = defineGraph({ name: "desk", state: defineState({ given: z.unknown(), by: z.string().default("") }) })
        .nodes({
          clerk: subgraph(inner, {
            input: () => inner.toInput("look"),
            output: (given, { ended }) => ({ given, by: getAgentEnd(ended.messages).by }),
          }),
        })
        .edges({ [START]: "clerk", clerk: END });
      const world = virtualClock();
      const { result } = run(desk, { world });
      await world.advance(10_000);
      const { state } = await result;
      expect(state.by).toBe(by);
      if (hasOutput) expect(state.given).toBeUndefined();
    }
  });

  test("a sub-agent tool call that exceeds its timeout returns an error [T55]", async () => {
    const boss = createAgent({
      name: "boss",
      model: scriptedModel([call("clerk", { task: "look" }), say("done")]),
      tools: [agentTool(createClerk({}, false), { description: "Looks.", timeoutMs: 1_000 })],
    });
    const world = virtualClock();
    const { result } = boss.run({ input: "go", world });
    await world.advance(10_000);
    const { state } = await result;
    const answer = state.messages.find((message) => message.role === "tool");
    expect([answer?.isError, getMessageText(answer as Message)]).toEqual([true, expect.stringContaining("1000 ms")]);
    expect(getMessageText(answer as Message)).toContain("Still looking.");
  });
});
