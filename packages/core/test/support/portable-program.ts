/** Program for any JavaScript engine: calls a tool, waits for an approval, continues and reads its history. */
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  getHistory,
  getMessageText,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} from "../../src/index.ts";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  effect: "pure",
  run: ({ a, b }) => String(a + b),
});
const graph = defineGraph({
  name: "anywhere",
  state: defineState({ messages: channel.messages(), sure: z.boolean().default(false) }),
  interrupts: { sure: z.boolean() },
})
  .nodes({
    tools: toolNode({ tools: [add] }),
    ask: async (_state, { interrupt }) => ({ sure: await interrupt("sure") }),
  })
  .edges({ [START]: "tools", tools: "ask", ask: END });

/** Runs the program and returns its output as one line. */
export async function runPortableProgram(): Promise<string> {
  const at = { store: memoryStore(), thread: "t" };
  const asks = { type: "call", id: "c", name: "add", args: { a: 1, b: 2 } } as const;
  const input = { messages: [{ role: "assistant", id: "a", finish: "calls", content: [asks] }] } as const;
  const first = await run(graph, { ...at, input }).result;
  const { state } = await resume(graph, { ...at, answers: { sure: true } }).result;
  const nodes: string[] = [];
  for await (const step of getHistory(graph, at)) nodes.push(step.node ?? "");
  const said = state.messages.map(getMessageText).filter((text) => text !== "");
  return JSON.stringify({ first: first.status, sure: state.sure, said, nodes });
}
