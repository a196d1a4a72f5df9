/**
 * Server process of the gate: an agent with rules for its model, on a SQLite file. Waits for the line `go` on its
 * standard input, so that a process can stand ready for the death of another one; then prints its URL. A line with a
 * number allows the model that many words more.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { serve } from "@statewright/server";
import { langgraph } from "@statewright/server/langgraph";
import { call, failWith, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  agentTool,
  createAgent,
  defineTool,
  engine,
  getMessageText,
  type Model,
  type ModelCallOptions,
  type ModelReply,
  type ModelRequest,
  sqliteStore,
} from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

const [file = "", token = "", port = "0"] = process.argv.slice(2);

const pay = defineTool({
  name: "pay",
  description: "Pays an amount.",
  input: z.object({ amount: z.number() }),
  safety: { access: "write", confirm: "always" },
  run: ({ amount }) => `paid ${amount}`,
});

const look = defineTool({
  name: "look",
  description: "Looks something up.",
  input: z.object({ at: z.string() }),
  effect: "pure",
  run: ({ at }) => `${at}: found`,
});

/** Has no body: the page picks the color. */
const pickColor = defineTool({
  name: "pick_color",
  description: "Asks the page for a color.",
  input: z.object({ among: z.array(z.string()) }),
  output: z.object({ color: z.string() }),
});

/** Reply to the newest message, by its words. */
function reply({ messages }: ModelRequest): ScriptedReply {
  const newest = messages.at(-1);
  const text = getMessageText(newest);
  if (newest?.role === "tool") return say(`Result: ${text}`);
  if (text.startsWith("pay"))
    return text
      .split(" ")
      .slice(1)
      .map((amount) => call("pay", { amount: Number(amount) }));
  if (text.startsWith("look")) return [say("I look. "), call("look", { at: text.slice(5) })];
  if (text.startsWith("ask")) return call("researcher", { task: text.slice(4) });
  if (text.startsWith("color")) return call("pick_color", { among: ["red", "blue"] });
  if (text.startsWith("retract") && failures++ === 0)
    return failWith(Object.assign(new Error("overloaded"), { status: 529 }), {
      after: say("one two three four five "),
    });
  if (text.startsWith("fail")) return failWith(Object.assign(new Error("the secret sk-123"), { status: 400 }));
  return say(`You said: ${text}`);
}

let failures = 0;

/** Words that the model may say, and the request that waits for more. */
let allowed = 0;
let wake: (() => void) | undefined;
let start: (() => void) | undefined;
const started = new Promise<void>((resolve) => {
  start = resolve;
});
createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "go") start?.();
  else allowed += Number(line);
  wake?.();
});

/** Says sixty words, each when a line of the standard input allows it. */
async function sayWords(signal: AbortSignal, delta: ModelCallOptions["delta"]): Promise<ModelReply> {
  const words = Array.from({ length: 60 }, (_, index) => `w${index + 1} `);
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
    getMessageText(request.messages.at(-1)).startsWith("long")
      ? sayWords(options.signal, options.delta)
      : scripted.respond(request, options),
};

const researcher = createAgent({ name: "researcher", model: scripted });

await started;
const store = sqliteStore(file);
const assistant = createAgent({
  name: "assistant",
  model,
  tools: [pay, look, pickColor, agentTool(researcher, { description: "Researches a question." })],
  middleware: [confirmTools()],
  store,
  retry: { attempts: 2, initialMs: 1 },
});
const host = engine({ store, graphs: [assistant] });
const server = serve({ engine: host, access: { token }, protocols: [langgraph()] });
await host.start();
const { url } = await server.listen({ port: Number(port) });
console.log(url);
