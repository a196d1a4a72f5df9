/**
 * Server of the pages in pages/chat and pages/use-stream: `node chat-page.ts [port] [page]`. Serves the built page, and
 * an agent whose model is a script of rules, to two tenants. With CHAT_PAGE_STEPPED=1 the long story waits for lines on the standard input, each
 * with the number of words to say.
 */
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { serveHttp } from "@statewright/host";
import { serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { langgraph } from "@statewright/server/langgraph";
import { call, failWith, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineTool,
  engine,
  getMessageText,
  type Model,
  type ModelReply,
  type ModelRequest,
  sqliteStore,
} from "statewright";
import { systemWorld } from "statewright/adapter";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

const port = Number(process.argv[2] ?? "4270");
const page = process.argv[3] ?? "chat";
const folder = process.env["CHAT_PAGE_FOLDER"] ?? fileURLToPath(new URL(`../pages/${page}/dist/`, import.meta.url));
const store = sqliteStore(process.env["CHAT_PAGE_FILE"] ?? "chats.db");

const pay = defineTool({
  name: "pay",
  description: "Pays an amount to a person.",
  input: z.object({ to: z.string(), euros: z.number() }),
  safety: { access: "write", spend: true, confirm: "always" },
  run: ({ to, euros }) => `Paid ${euros} euros to ${to}.`,
});

const weather = defineTool({
  name: "weather",
  description: "Looks up the weather of a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => ({ city, sky: "light rain", degrees: 8 }),
});

/** Reply to the newest message by its words. */
function reply({ messages }: ModelRequest): ScriptedReply {
  const newest = messages.at(-1);
  const text = getMessageText(newest).toLowerCase();
  if (newest?.role === "tool") return say(newest.isError ? "I did not do it." : "That is done.");
  if (text.includes("pay")) return [say("I can pay Ada."), call(pay, { to: "Ada", euros: 25 })];
  if (text.includes("weather")) return [say("I look it up."), call(weather, { city: "Oslo" })];
  if (text.includes("fail")) return failWith(Object.assign(new Error("the provider is down"), { status: 400 }));
  return say(`You wrote: ${getMessageText(newest)}`);
}

const isStepped = process.env["CHAT_PAGE_STEPPED"] === "1";
let allowed = 0;
let wake: (() => void) | undefined;
if (isStepped)
  createInterface({ input: process.stdin }).on("line", (line) => {
    allowed += Number(line);
    wake?.();
  });

const { schedule } = systemWorld();

/** Resolves when the model may say its next word. */
async function waitForWord(signal: AbortSignal): Promise<void> {
  const stop = (): void => wake?.();
  signal.addEventListener("abort", stop, { once: true });
  do
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (isStepped && (allowed > 0 || signal.aborted)) resolve();
      if (!isStepped) schedule.after(60, resolve);
    });
  while (isStepped && allowed === 0 && !signal.aborted);
  signal.removeEventListener("abort", stop);
  signal.throwIfAborted();
  if (isStepped) allowed -= 1;
}

const story = Array.from({ length: 60 }, (_, index) => `word${index + 1} `);
const rules = scriptedModel(reply);

/** Model that tells a story of sixty words, and otherwise follows the rules. */
const model: Model = {
  id: "rules",
  respond: async (request, options): Promise<ModelReply> => {
    if (!getMessageText(request.messages.at(-1)).toLowerCase().includes("story"))
      return await rules.respond(request, options);
    for (const text of story) {
      await waitForWord(options.signal);
      options.delta?.({ type: "text", text });
    }
    return { content: [{ type: "text", text: story.join("") }], finish: "stop" };
  },
};

const assistant = createAgent({
  name: "assistant",
  model,
  tools: [pay, weather],
  middleware: [confirmTools()],
  store,
  retry: { attempts: 1 },
});

const host = engine({ store, graphs: [assistant] });
await host.start();
const server = serve({
  engine: host,
  access: {
    tokens: {
      ann: { token: "ann-has-a-long-token", tenant: "acme" },
      bob: { token: "bob-has-a-long-token", tenant: "globex" },
    },
  },
  protocols: [uiStream(), langgraph()],
});

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

/** Files of the built page: index.html and its assets, whose names have no path. */
function readPage(path: string): Response {
  const name = /^\/assets\/([\w-]+\.(?:js|css))$/.exec(path)?.[1];
  const file = name === undefined ? join(folder, "index.html") : join(folder, "assets", name);
  if (!existsSync(file)) return new Response("Build the page first: npm run build", { status: 404 });
  const type = types[extname(file)] ?? "application/octet-stream";
  return new Response(readFileSync(file), { headers: { "content-type": type, "x-content-type-options": "nosniff" } });
}

const { port: opened } = await serveHttp(
  async (request) => {
    const { pathname } = new URL(request.url);
    return /^\/(?:ui|api|langgraph)\//.test(pathname) ? await server.fetch(request) : readPage(pathname);
  },
  { port },
);
console.log(`http://127.0.0.1:${opened}/`);
