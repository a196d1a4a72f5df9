/** B18 updates: what it costs a tool to show a partial result to somebody who listens, one of ten thousand of a call. */
import { defineGraph, defineState, defineTool, END, type Message, messages, run, START, toolNode } from "statewright";
import * as z from "zod";
import { type Case, doublings } from "../case.ts";

const showing = defineTool({
  name: "show",
  description: "Shows what it has so far.",
  input: z.object({ rows: z.int() }),
  effect: "pure",
  run: ({ rows }, { update }) => {
    for (let row = 0; row < rows; row++) update?.({ content: `Row ${row}`, details: { done: row / rows } });
    return "done";
  },
});

const answerCalls = defineGraph({ name: "answer-calls", state: defineState({ messages: messages() }) })
  .nodes({ tools: toolNode({ tools: [showing] }) })
  .edges({ [START]: "tools", tools: END });

export function toolUpdates(): Case {
  return {
    id: "B18 updates",
    title: "a partial result of a tool, copied, filtered and told in order",
    unit: "update",
    budget: { cpuUs: 10, text: "10 µs" },
    size: 10_000,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        growth: doublings(2_500),
        open: () => ({
          run: async (size) => {
            const handle = run(answerCalls, { input: { messages: [asking(size)] } });
            let told = 0;
            handle.on((event) => {
              if (event.type !== "tool.update") return;
              if (event.partial.content !== `Row ${told}`) throw new Error("an update came out of order");
              told += 1;
            });
            await handle.result;
            if (told !== size) throw new Error(`${told} of ${size} updates were told`);
            return undefined;
          },
        }),
      },
      { name: "a copy of the partial result", role: "limit", open: () => ({ run: copies }) },
    ],
  };
}

function asking(rows: number): Message {
  const content = [{ type: "call" as const, id: "call-1", name: "show", args: { rows } }];
  return { role: "assistant", id: "asking", finish: "calls", content };
}

async function copies(size: number): Promise<undefined> {
  for (let row = 0; row < size; row++) structuredClone({ content: `Row ${row}`, details: { done: row / size } });
}
