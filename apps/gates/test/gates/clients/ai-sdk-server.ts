/** Server process of the gate: an agent with rules for its model, on a SQLite file. Prints its URL. */
import process from "node:process";
import { createInterface } from "node:readline";
import { serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { call, failWith, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  agentTool,
  channel,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  engine,
  getMessageText,
  type Model,
  type ModelCallOptions,
  type ModelReply,
  type ModelRequest,
  START,
  sqliteStore,
} from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";
import { recordTapes } from "./record-tapes.ts";

const [file = "", token = "", port = "0"] = process.argv.slice(2);
const store = sqliteStore(file);

const pay = defineTool({
  name: "pay",
  description: "Pays money to a person.",
  input: z.object({ to: z.string() }),
  safety: { access: "write", confirm: "always" },
  run: ({ to }) => `Paid ${to}.`,
});

const look = defineTool({
  name: "look",
  description: "Looks something up.",
  input: z.object({ at: z.string() }),
  effect: "pure",
  run: ({ at }) => ({ seen: at }),
});

const pickColor = defineTool({
  name: "pick_color",
  description: "Asks the page for a color.",
  input: z.object({ question: z.string() }),
  output: z.object({ color: z.string() }),
});

let failures = 0;

/** Reply to the newest message, by its words. */
function reply({ messages }: ModelRequest): ScriptedReply {
  const newest = messages.at(-1);
  const text = getMessageText(newest);
  const about = getMessageText(messages.findLast(({ role }) => role === "user"));
  if (newest?.role === "tool") return say(`The tools are done with ${about}.`);
  if (text.startsWith("pay"))
    return text
      .split(" ")
      .slice(1)
      .map((to) => call("pay", { to }));
  if (text.startsWith("look")) return [say("I look."), call("look", { at: text.slice(5) })];
  if (text.startsWith("both")) return [call("look", { at: "sea" }), call("look", { at: "sky" })];
  if (text.startsWith("color")) return call("pick_color", { question: "Which color?" });
  if (text.startsWith("retract") && failures++ === 0)
    return failWith(Object.assign(new Error("overloaded"), { status: 529 }), {
      after: say("one two three four five six "),
    });
  if (text.startsWith("fail")) return failWith(Object.assign(new Error("the secret sk-123"), { status: 400 }));
  return say(`You said ${text}.`);
}

/** Words that the model may say, and those that wait for more. */
let allowed = 0;
let wake: (() => void) | undefined;
createInterface({ input: process.stdin }).on("line", (line) => {
  allowed += Number(line);
  wake?.();
});

/** Says sixty words, each when a line of the standard input allows it. */
async function sayWords(signal: AbortSignal, delta: ModelCallOptions["delta"]): Promise<ModelReply> {
  const words = Array.from({ length: 60 }, (_, index) => `w${index} `);
  signal.addEventListener("abort", () => wake?.());
  for (const text of words) {
    while (allowed === 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    signal.throwIfAborted();
    allowed -= 1;
    delta?.({ type: "text", text });
  }
  return { content: [{ type: "text", text: words.join("") }], finish: "stop" };
}

const scripted = scriptedModel(reply);
const model: Model = {
  id: "rules",
  respond: (request, options) =>
    getMessageText(request.messages.at(-1)) === "long"
      ? sayWords(options.signal, options.delta)
      : scripted.respond(request, options),
};

const chat = createAgent({
  name: "chat",
  model,
  tools: [pay, look, pickColor],
  middleware: [confirmTools()],
  store,
  retry: { attempts: 2, initialMs: 1 },
});

const helper = createAgent({
  name: "helper",
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? say("I have looked.") : call("look", { at: "sea" }),
  ),
  tools: [look],
});

const boss = createAgent({
  name: "boss",
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? say("It is done.") : call("helper", { task: "look" }),
  ),
  tools: [agentTool(helper, { description: "Delegates a task to the helper." })],
  store,
});

const trip = defineGraph({
  name: "trip",
  state: defineState({ messages: channel.messages(), city: z.string().default("") }),
  interrupts: { which_city: z.object({ city: z.string() }) },
})
  .nodes({
    ask: async (_state, { interrupt }) => await interrupt("which_city", { payload: { cities: ["Oslo", "Rome"] } }),
  })
  .edges({ [START]: "ask", ask: END });

const host = engine({ store, graphs: [chat, boss, trip] });
await host.start();
const server = serve({ engine: host, access: { token }, protocols: [recordTapes(uiStream(), `${file}.tapes`)] });
const { url } = await server.listen({ port: Number(port) });
console.log(url);
