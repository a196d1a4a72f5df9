/** An agent as a node of a graph: it is an ordinary graph, and so an ordinary subgraph. */
import { createAgent, limitCalls, stopLoops } from "@statewright/agent";
import {
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  interruptFor,
  type Message,
  type Middleware,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
  textOf,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { payingInto } from "../support/pay.ts";

const paid: number[] = [];
const pay = payingInto(paid);
const askFirst = defineMiddleware({ name: "ask first", beforeTool: ({ call: made }) => interruptFor(made, "it pays") });

test("an agent inside a graph asks through it, survives a crash, calls its tool once, and answers with its text", async () => {
  const clerk = createAgent({
    name: "clerk",
    model: scriptedModel([call("pay", { cents: 7 }), say("It is paid.")]),
    tools: [pay],
    middleware: [askFirst],
  });
  const desk = defineGraph({ name: "desk", state: defineState({ task: z.string(), answer: z.string().default("") }) })
    .nodes({
      clerk: subgraph(clerk, {
        input: (state) => clerk.inputOf(state.task),
        output: ({ messages }) => ({ answer: textOf(messages.at(-1) as Message) }),
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
  /** A clerk that looks for ever, inside a desk that would file its last words. */
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
          input: () => clerk.inputOf("Look."),
          output: ({ messages }) => ({ answer: textOf(messages.at(-1) as Message) }),
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
  ] as const)("T55 that was stopped by %s is never taken for one that has answered", async (_what, options, status) => {
    expect(await stopped(options)).toMatchObject({ status, answer: "" });
  });
});
