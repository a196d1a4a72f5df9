/** An agent as a node of a graph: it is an ordinary graph, and so an ordinary subgraph. */
import { createAgent } from "@statewright/agent";
import {
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  interruptFor,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
  textOf,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const paid: number[] = [];
const pay = defineTool({
  name: "pay",
  description: "Pay.",
  input: z.object({ cents: z.int() }),
  effect: "once",
  run: ({ cents }) => {
    paid.push(cents);
    return "paid";
  },
});
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
