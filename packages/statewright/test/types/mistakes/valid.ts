/**
 * Programs that compile: hooks that return nothing, tasks of the deeply readonly items of a state, and commands to a
 * node that is known only at run time.
 */
import {
  channel,
  commandTargets,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  fanOut,
  goto,
  inputNode,
  START,
  send,
} from "statewright";
import * as z from "zod";

export const counting = defineMiddleware({
  name: "counting",
  channels: { count: channel.reduce(z.number().default(0), (count, more: number) => count + more) },
  beforeTool: ({ call }, { emit }) => {
    if (call.name === "search") emit("search", {});
  },
  afterTool: ({ result }, { emit }) => {
    emit("result", { name: result.name });
  },
  beforeModel: (request, { write }) => {
    write({ count: request.messages.length });
  },
  afterModel: (reply, { write }) => {
    write({ count: reply.content.length });
  },
});

const Part = z.object({ name: z.string(), excluded: z.array(z.string()) });
const Audit = defineState({ parts: z.array(Part).default([]), found: channel.list(z.string()) });

const audit = defineGraph({ name: "audit", state: Audit });
export const parts = audit
  .nodes({
    plan: () => undefined,
    resend: ({ parts: [first] }) => (first === undefined ? undefined : send("look", first)),
    look: inputNode(Part, (_state, { input }) => ({ found: input.excluded })),
  })
  .edges({
    [START]: "plan",
    plan: fanOut("look", (state) => state.parts, { otherwise: END }),
    resend: commandTargets("look"),
    look: END,
  });

export const next = audit
  .nodes({
    plan: ({ found: [first] }) => goto(first ?? "check"),
    check: async ({ found }) =>
      found.length > 3 ? goto(["plan", "check"].join(""), { found: [] }) : { found: ["checked"] },
    look: inputNode(Part, () => goto(["plan", "check"].join(""))),
    resend: { run: ({ found: [first] }) => send(first ?? "look", { name: "a", excluded: [] }) },
  })
  .edges({
    [START]: "plan",
    plan: commandTargets("check", "resend"),
    check: commandTargets("plan"),
    look: commandTargets("plan"),
    resend: commandTargets("look"),
  });
