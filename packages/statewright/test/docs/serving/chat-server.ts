/** A chat over HTTP: users, a stream to the browser, approval, and a process that may be killed. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import process from "node:process";
import {
  createAgent,
  defineContext,
  engine,
  getState,
  isStatewrightError,
  type RunEvent,
  type RunHandle,
  sqliteStore,
} from "statewright";
import { listThreads } from "statewright/inspect";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";
import { createBankModel, defineTransfer } from "./bank-model.ts";

const User = defineContext({ userId: z.string() });
const model = createBankModel();
const transfer = defineTransfer(User.from(({ userId }) => userId));

// the agent
const store = sqliteStore("chats.db");
const assistant = createAgent({
  name: "assistant",
  model,
  context: User,
  tools: [transfer],
  middleware: [confirmTools()],
  store,
});

// connected browsers
const browsers = new Map<string, Set<ServerResponse>>();
const writing = new Map<string, Map<string, string>>();

function broadcast(thread: string, data: object | undefined): void {
  if (data === undefined) return;
  for (const browser of browsers.get(thread) ?? []) send(browser, data);
}

function send(browser: ServerResponse, data: object): void {
  browser.write(`data: ${JSON.stringify(data)}\n\n`);
  if (browser.writableLength > 1_000_000) browser.destroy(); // too slow: the browser reconnects and loads the chat
}

function listen(thread: string, browser: ServerResponse): void {
  browser.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const others = browsers.get(thread) ?? new Set();
  browsers.set(thread, others.add(browser));
  browser.once("close", () => {
    others.delete(browser);
    if (others.size === 0 && browsers.get(thread) === others) browsers.delete(thread);
  });
  for (const [id, text] of writing.get(thread) ?? []) send(browser, { type: "snapshot", id, text });
  send(browser, { type: "listening" });
}

// events for browsers
function toBrowserEvent(thread: string, event: RunEvent): object | undefined {
  if (event.within !== undefined) return undefined; // of a sub-agent
  const texts = writing.get(thread) ?? new Map<string, string>();
  switch (event.type) {
    case "message.delta":
      if (event.kind !== "text") return undefined;
      writing.set(thread, texts.set(event.messageId, (texts.get(event.messageId) ?? "") + event.text));
      return { type: "text", id: event.messageId, text: event.text };
    case "message.retracted":
      texts.delete(event.messageId);
      return { type: "snapshot", id: event.messageId, text: "" };
    case "message.completed":
      texts.delete(event.message.id);
      return { type: "message", message: event.message };
    case "tool.completed":
    case "tool.failed":
      return { type: "tool", call: event.callId, label: event.label, content: event.result.content };
    case "run.waiting":
      return { type: "interrupts", interrupts: event.interrupts };
    case "run.completed":
    case "run.cancelled":
    case "run.paused":
    case "run.failed":
      writing.delete(thread);
      return { type: "ended", reason: event.type };
    default:
      return undefined;
  }
}

const host = engine({
  store,
  graphs: [assistant],
  context: ({ owner }) => ({ userId: owner }),
  onRun: (run) => run.on((event) => broadcast(run.thread, toBrowserEvent(run.thread, event))),
});

// requests of browsers
const Words = z.object({ id: z.string(), text: z.string().min(1) });
const Verdict = z.object({ interrupt: z.string(), approved: z.boolean(), reason: z.string().optional() });
const ChatId = z.string().regex(/^[\w-]{1,60}$/);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const userId = getUser(request);
  const [, , chat, part = ""] = new URL(request.url ?? "/", "http://localhost").pathname.split("/");
  if (chat === undefined) return listThreads(store, { owner: userId });
  const thread = `${userId}.${ChatId.parse(chat)}`;
  const context = { userId };
  switch (`${request.method} ${part}`) {
    case "GET events":
      return listen(thread, response);
    case "GET ": {
      const { state, interrupts, status } = await getState(assistant, { store, thread });
      return { messages: state.messages, interrupts, status };
    }
    case "POST ": {
      const { id, text } = Words.parse(await readBody(request));
      const input = assistant.toInput(text);
      return confirmStart(host.run(assistant, { thread, owner: userId, input, context, key: id, onBusy: "cancel" }));
    }
    case "POST verdicts": {
      const { interrupt, approved, reason } = Verdict.parse(await readBody(request));
      const answers = { [interrupt]: { approved, reason } };
      return confirmStart(host.resume(assistant, { thread, context, answers, by: userId }));
    }
  }
  throw new HttpError(404);
}

/** Resolves when the run has started; a refusal, such as `already_answered`, rejects. */
async function confirmStart(run: RunHandle<unknown>): Promise<object> {
  for await (const event of run.events()) return { run: run.id, event: event.type };
  return { run: run.id };
}

// the server
const server = createServer((request, response) => {
  const respond = (status: number, body: object): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  answer(request, response).then(
    (body) => (typeof body === "object" && body !== null ? respond(200, body) : undefined),
    (error: unknown) => {
      if (error instanceof HttpError) return respond(error.status, {});
      if (error instanceof z.ZodError) return respond(400, { error: "invalid_request" });
      if (!isStatewrightError(error)) return respond(500, {});
      const { code, kind } = error;
      respond(code === "unknown_thread" ? 404 : kind === "input" ? 409 : 500, { error: code });
    },
  );
});

await host.start();
server.listen(Number(process.argv[2] ?? 0), () => console.log(JSON.stringify(server.address())));
process.once("SIGTERM", async () => {
  await host.stop({ graceMs: 5_000 });
  server.closeAllConnections();
  server.close();
});

// helpers
class HttpError extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`${status}`);
    this.status = status;
  }
}

/** Returns the user of a request: here from a header; in production from a session. */
function getUser({ headers }: IncomingMessage): string {
  const user = headers["x-user"];
  if (typeof user !== "string" || !/^[\w-]{1,60}$/.test(user)) throw new HttpError(401);
  return user;
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 100_000) throw new HttpError(413);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400);
  }
}
