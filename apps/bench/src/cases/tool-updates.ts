/** B18 updates: cost of a partial tool result with one listener, in a call with ten thousand updates. */
import { channel, defineGraph, defineState, defineTool, END, type Message, run, START, toolNode } from "statewright";
import * as z from "zod";
import { type Case, listDoublings } from "../case.ts";

const showTool = defineTool({
  name: "show",
  description: "Shows partial results.",
  input: z.object({ rows: z.int() }),
  effect: "pure",
  run: ({ rows }, { update }) => {
    for (let row = 0; row < rows; row++) update?.({ content: `Row ${row}`, details: { done: row / rows } });
    return "done";
  },
});

const toolGraph = defineGraph({ name: "answer-calls", state: defineState({ messages: channel.messages() }) })
  .nodes({ tools: toolNode({ tools: [showTool] }) })
  .edges({ [START]: "tools", tools: END });

export function createToolUpdateCase(): Case {
  return {
    id: "B18 updates",
    title: "partial tool result, copied, filtered and emitted in order",
    unit: "update",
    budget: { cpuUs: 10, text: "10 µs" },
    size: 10_000,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        growth: listDoublings(2_500),
        open: () => ({
          run: async (size) => {
            const handle = run(toolGraph, { input: { messages: [createCallMessage(size)] } });
            let received = 0;
            handle.on((event) => {
              if (event.type !== "tool.update") return;
              if (event.partial.content !== `Row ${received}`)
                throw new Error("expected tool updates in order, got an update out of order");
              received += 1;
            });
            await handle.result;
            if (received !== size) throw new Error(`expected ${size} tool updates, got ${received}`);
            return undefined;
          },
        }),
      },
      { name: "copy of the partial result", role: "limit", open: () => ({ run: copyUpdates }) },
    ],
  };
}

function createCallMessage(rows: number): Message {
  const content = [{ type: "call" as const, id: "call-1", name: "show", args: { rows } }];
  return { role: "assistant", id: "asking", finish: "calls", content };
}

async function copyUpdates(size: number): Promise<undefined> {
  for (let row = 0; row < size; row++) structuredClone({ content: `Row ${row}`, details: { done: row / size } });
}
