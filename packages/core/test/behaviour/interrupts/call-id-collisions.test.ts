/** Tool call ids that look like engine paths, whether made by a model or passed on by a provider. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  approval,
  channel,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  END,
  graphTool,
  type Message,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "../../../src/index.ts";

test("a tool call whose id looks like the path of a nested graph tool call has its own interrupt", async () => {
  const paid: string[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    run: (_args, { callId }) => {
      paid.push(callId);
      return "Paid.";
    },
  });
  const asks = defineMiddleware({
    name: "asks",
    interrupts: { approve: approval },
    beforeTool: ({ call }) => (call.name === "pay" ? decide.interrupt(call, "Money") : undefined),
  });
  const calls = (...content: readonly { readonly id: string; readonly name: string; readonly args: object }[]) => ({
    messages: [
      {
        role: "assistant",
        id: "asks",
        finish: "calls",
        content: content.map((each) => ({ type: "call", ...each })),
      } as Message,
    ],
  });
  const inner = defineGraph({
    name: "inner",
    state: defineState({ messages: channel.messages() }),
    interrupts: { approve: approval },
  })
    .nodes({ tools: toolNode({ tools: [pay], middleware: [asks] }) })
    .edges({ [START]: "tools", tools: END });
  const sub = graphTool(inner, {
    name: "sub",
    description: "Pay by another.",
    input: z.object({}),
    toInput: () => calls({ id: "x", name: "pay", args: { cents: 1 } }),
    toResult: () => "Done.",
  });
  const outer = defineGraph({
    name: "outer",
    state: defineState({ messages: channel.messages() }),
    interrupts: { approve: approval },
  })
    .nodes({ tools: toolNode({ tools: [pay, sub], middleware: [asks] }) })
    .edges({ [START]: "tools", tools: END });

  const store = memoryStore();
  const input = calls({ id: "1/0:0:x", name: "pay", args: { cents: 1 } }, { id: "s", name: "sub", args: {} });
  const asked = await run(outer, { store, thread: "t", input }).result;
  const questions = asked.status === "waiting" ? asked.interrupts : [];
  expect(questions.map(({ key }) => key)).toEqual(["approve", "sub.approve"]);
  expect(new Set(questions.map(({ id }) => id)).size).toBe(2);

  const [first, second] = questions.map(({ id }) => id);
  const answers = { [first ?? ""]: { approved: false }, [second ?? ""]: true };
  expect(await resume(outer, { store, thread: "t", answers }).result).toMatchObject({ status: "done" });
  expect(paid).toEqual(["x"]);
});
