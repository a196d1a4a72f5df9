/** Graphs for the matcher tests: a claim is checked, decided by an approval when it is large, and paid. */
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  fanOut,
  goto,
  inputNode,
  listToolCalls,
  type Model,
  route,
  START,
  toolNode,
} from "@statewright/core";
import * as z from "zod";

/** Pays claims of up to 100, raises an interrupt for larger ones; each document is checked in a separate task. */
export const claims = defineGraph({
  name: "claims",
  state: defineState({
    amount: z.number().default(0),
    documents: z.array(z.string()).default([]),
    checked: channel.list(z.string()),
    paid: z.number().default(0),
  }),
  interrupts: { approve: z.boolean() },
})
  .nodes({
    read: () => undefined,
    check: inputNode(z.string(), (_state, { input }) => ({ checked: [input] })),
    decide: () => undefined,
    ask: async (state, { interrupt }) =>
      (await interrupt("approve", { payload: { amount: state.amount } })) ? goto("pay") : goto("refuse"),
    pay: async (state, { step }) => ({ paid: await step("transfer", () => state.amount) }),
    refuse: () => undefined,
  })
  .edges({
    [START]: "read",
    read: fanOut("check", (state) => state.documents, { otherwise: "decide" }),
    check: "decide",
    decide: route(["pay", "ask"], (state) => (state.amount > 100 ? "ask" : "pay")),
    ask: commandTargets("pay", "refuse"),
    pay: END,
    refuse: END,
  });

const offline: Model = { id: "offline", respond: () => Promise.reject(new Error("there is no network here")) };

/** Records every real execution of the tool below. */
export const sent: string[] = [];
export const lookUp = defineTool({
  name: "look_up",
  description: "Look a customer up.",
  input: z.object({ id: z.string() }),
  effect: "pure",
  run: ({ id }) => `customer ${id}`,
});
const sendMail = defineTool({
  name: "send_mail",
  description: "Send a letter.",
  input: z.object({ to: z.string(), text: z.string().min(1) }),
  effect: "idempotent",
  run: ({ to }) => {
    sent.push(to);
    return "sent";
  },
});

/** A model and two tools. */
export const office = defineGraph({ name: "office", state: defineState({ messages: channel.messages() }) })
  .nodes({
    model: async (state, runtime) => ({
      messages: [await runtime.model({ model: offline, request: { messages: state.messages, tools: [] } })],
    }),
    tools: toolNode({ tools: [lookUp, sendMail] }),
  })
  .edges({
    [START]: "model",
    model: route(["tools", END], (state) => {
      const last = state.messages.at(-1);
      return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
    }),
    tools: "model",
  });

/** Inputs of the graph. */
export const words: {
  readonly messages: readonly [
    {
      readonly role: "user";
      readonly id: "u1";
      readonly content: readonly [{ readonly type: "text"; readonly text: "go" }];
    },
  ];
} = {
  messages: [{ role: "user", id: "u1", content: [{ type: "text", text: "go" }] }],
};
