/** The program of docs/tool-packs.md and of the README: a graph whose tools work in one folder. */
import { channel, defineGraph, defineState, END, type Message, run, START, toolNode } from "@statewright/core";
import { bash, codingTools, defaultTools, presetTools, search } from "@statewright/tools";

const root = process.argv[2] ?? process.cwd();

const tools = defaultTools({ root });
tools.push(...presetTools("none", { root }));

export const strict = [
  bash({ root, nonZero: "error", timeoutMs: 30_000, inherit: ["CI"] }),
  search({ root, ripgrep: false, maxHits: 50 }),
];

const graph = defineGraph({ name: "coder", state: defineState({ messages: channel.messages() }) })
  .nodes({ tools: toolNode({ tools: codingTools({ root }), strategy: "sequential" }) })
  .edges({ [START]: "tools", tools: END });

const ask: Message = {
  role: "assistant",
  id: "a1",
  finish: "calls",
  content: [
    { type: "call", id: "c1", name: "write_file", args: { path: "notes/todo.md", content: "- ship it\n- rest\n" } },
    { type: "call", id: "c2", name: "bash", args: { command: "wc -l < notes/todo.md; ls no-such-folder" } },
    { type: "call", id: "c3", name: "search", args: { pattern: "ship", glob: "*.md" } },
  ],
};

const { state } = await run(graph, { input: { messages: [ask] } }).result;
for (const message of state.messages) {
  if (message.role !== "tool") continue;
  console.log(`--- ${message.name}`);
  for (const block of message.content) if (block.type === "text") console.log(block.text);
}
