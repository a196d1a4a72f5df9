/** One process of a crash test: an agent with two parallel sub-agents. An external log records each model request. */
import process from "node:process";
import { crashPoint, crashPoints, logEffect, restartExitCode } from "@statewright/testing";
import {
  agentTool,
  createAgent,
  defineTool,
  getMessageText,
  type Model,
  type ModelReply,
  sqliteStore,
} from "statewright";
import * as z from "zod";

const thread = "t";
const store = sqliteStore("office.db");
const isFirst = process.env["STATEWRIGHT_CRASH_PROCESS"] !== "2";

/** Wraps a model: records its requests and answers by `reply`. */
function logged(
  id: string,
  reply: (request: Parameters<Model["respond"]>[0]) => ModelReply | Promise<ModelReply>,
): Model {
  return {
    id,
    respond: async (request) => {
      const said = request.messages.map((message) => getMessageText(message) || message.role);
      logEffect({ model: id, said });
      return reply(request);
    },
  };
}

function createReply(text: string): ModelReply {
  return { content: [{ type: "text", text }], finish: "stop", usage: { inputTokens: 1, outputTokens: 1 } };
}

function calls(...made: readonly (readonly [name: string, args: { readonly [key: string]: string }])[]): ModelReply {
  const content = made.map(([name, args], index) => ({ type: "call" as const, id: `${name}_${index}`, name, args }));
  return { content, finish: "calls", usage: { inputTokens: 1, outputTokens: 1 } };
}

const read = defineTool({
  name: "read",
  description: "Read about a topic.",
  input: z.object({ topic: z.string() }),
  effect: "once",
  run: ({ topic }) => {
    logEffect({ read: topic });
    return `about ${topic}`;
  },
});

const researcher = createAgent({
  name: "researcher",
  tools: [read],
  model: logged("small", async ({ messages }) => {
    const topic = getMessageText(messages[0] as never);
    if (messages.length === 1) return calls(["read", { topic }]);
    // The second request of bees never settles: the process dies when the other sub-agent is done.
    if (topic === "bees" && isFirst) await new Promise(() => undefined);
    return createReply(`${topic} are read`);
  }),
});

const boss = createAgent({
  name: "boss",
  tools: [agentTool(researcher, { description: "Researches a topic." })],
  model: logged("large", ({ messages }) => {
    if (messages.length === 1) return calls(["researcher", { task: "ants" }], ["researcher", { task: "bees" }]);
    return createReply(
      messages.flatMap((message) => (message.role === "tool" ? getMessageText(message) : [])).join("; "),
    );
  }),
});

const at = { store: crashPoints(store), thread };
const known = (await store.thread(thread)) !== undefined;
const run = known ? boss.resume(at) : boss.run({ ...at, input: "Find out." });
run.on((event) => {
  // Reported when durable: one sub-agent is done, the other is in its second request.
  if (event.type === "tool.completed" && event.within === undefined && isFirst) crashPoint("one is done");
});
const end = await run.result;
if (end.status !== "done") process.exit(restartExitCode);
const answers = end.state.messages.flatMap((message) => (message.role === "tool" ? getMessageText(message) : []));
console.log(JSON.stringify({ answers, last: getMessageText(end.state.messages.at(-1) as never) }));
await store.close();
