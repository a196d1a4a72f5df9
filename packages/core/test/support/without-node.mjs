// Worker without Node.js: no Buffer, no Node.js modules, and only the part of `process` that bundlers provide in place
// of process.env.NODE_ENV, which immer reads. Runs a graph, answers its interrupt, forks, and posts the results.
import { registerHooks } from "node:module";
import { parentPort } from "node:worker_threads";

const asked = [];
registerHooks({
  resolve(specifier, context, nextResolve) {
    const conditions = ["browser", ...context.conditions.filter((each) => each !== "node" && each !== "node-addons")];
    const found = nextResolve(specifier, { ...context, conditions });
    if (!found.url.startsWith("file:")) asked.push(`${specifier} from ${context.parentURL}`);
    return found;
  },
});
const tell = parentPort.postMessage.bind(parentPort);
const onlyInNode = ["process", "Buffer", "global", "setImmediate", "clearImmediate", "require"];
for (const name of onlyInNode) Reflect.deleteProperty(globalThis, name);
globalThis.process = Object.freeze({ env: Object.freeze({ NODE_ENV: "production" }) });

const {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  fork,
  getHistory,
  memoryStore,
  resume,
  run,
  START,
  toolNode,
} = await import("../../src/index.ts");
const z = await import("zod");

const add = defineTool({
  name: "add",
  description: "Add two numbers.",
  input: z.object({ a: z.number(), b: z.number() }),
  effect: "pure",
  run: ({ a, b }) => `${a + b}`,
});
const call = { type: "call", id: "c1", name: "add", args: { a: 1, b: 2 } };
const graph = defineGraph({
  name: "anywhere",
  state: defineState({ messages: channel.messages(), notes: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    ask: () => ({ messages: [{ role: "assistant", id: "a1", content: [call], finish: "calls" }] }),
    tools: toolNode({ tools: [add] }),
    wait: async (_state, { interrupt, step }) => {
      await step("look", () => new Uint8Array([1, 2]));
      return { notes: [(await interrupt("ok")) ? "yes" : "no"] };
    },
  })
  .edges({ [START]: "ask", ask: "tools", tools: "wait", wait: END });
const store = memoryStore();
const first = await run(graph, { store, thread: "t" }).result;
const last = await resume(graph, { store, thread: "t", answers: { ok: true } }).result;
const steps = [];
for await (const { checkpointId, node } of getHistory(graph, { store, thread: "t" })) steps.push([checkpointId, node]);
const branch = await fork(graph, { store, thread: "t", at: steps.at(-1)[0], name: "again" });
const again = await resume(graph, { store, thread: "t", branch }).result;
tell({
  left: onlyInNode.filter((name) => name in globalThis && name !== "process"),
  asked,
  first: first.status,
  notes: last.state.notes,
  said: last.state.messages[1].content,
  again: again.status,
});
