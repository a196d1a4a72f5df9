/**
 * Page with the unmodified `useChat` of @ai-sdk/react in jsdom, driven by JSON lines: `node page.mjs <folder of the
 * packages> <url of the server> <token>`. Each command answers with one line.
 */
import { createRequire } from "node:module";
import process from "node:process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , folder, url, token] = process.argv;
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { JSDOM } = await load("jsdom");
const { window } = new JSDOM("<!doctype html><div id='root'></div>", { url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: false });
const React = await load("react");
const { createRoot } = await load("react-dom/client");
const { useChat } = await load("@ai-sdk/react");
const ai = await load("ai");
const { DefaultChatTransport, readUIMessageStream, uiMessageChunkSchema, validateUIMessages } = ai;

const headers = { authorization: `Bearer ${token}` };
const requests = [];
const streams = [];

/** Fetch that counts the requests and keeps the chunks of each stream. */
async function countingFetch(input, init) {
  const path = new URL(input).pathname;
  const response = await fetch(input, init);
  requests.push({ method: init?.method ?? "GET", path, status: response.status });
  if (response.body === null || !response.headers.get("content-type")?.includes("event-stream")) return response;
  const [shown, kept] = response.body.tee();
  streams.push(readChunks(kept));
  return new Response(shown, { status: response.status, headers: response.headers });
}

/** Lines of a stream until its end, or until its connection broke. */
async function readChunks(body) {
  const lines = [];
  let text = "";
  try {
    for await (const part of body.pipeThrough(new TextDecoderStream())) {
      text += part;
      const parts = text.split("\n");
      text = parts.pop();
      lines.push(...parts.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)));
    }
  } catch (error) {
    lines.push(`broken: ${error.name}`);
  }
  return lines;
}

let chat;
let root;
let watchers = new Set();
const texts = new Set();

function App({ id, graph, initial, resume, automatic }) {
  const [transport] = React.useState(
    () => new DefaultChatTransport({ api: `${url}/ui/${graph}`, headers, fetch: countingFetch }),
  );
  const automatics = {
    approvals: ai.lastAssistantMessageIsCompleteWithApprovalResponses,
    tools: ai.lastAssistantMessageIsCompleteWithToolCalls,
  };
  chat = useChat({
    id,
    transport,
    messages: initial,
    resume,
    ...(automatic === undefined ? {} : { sendAutomaticallyWhen: automatics[automatic] }),
  });
  React.useEffect(() => {
    texts.add(getText(chat.messages.at(-1)));
    for (const watcher of watchers) watcher();
  });
  return null;
}

function getText(message) {
  return (message?.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
}

function getState() {
  const { messages, status, error } = chat;
  return { messages, status, error: error?.message, text: getText(messages.at(-1)) };
}

/** Resolves when the page shows what is asked for. */
function waitUntil({ status, text, state, timeoutMs = 30_000 }) {
  const fits = () => {
    const now = getState();
    const last = now.messages.at(-1);
    return (
      (status === undefined || now.status === status) &&
      (text === undefined || now.text.includes(text)) &&
      (state === undefined || (last?.parts ?? []).some((part) => part.state === state))
    );
  };
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      watchers.delete(check);
      reject(
        new Error(`the page never showed ${JSON.stringify({ status, text, state })}: ${JSON.stringify(getState())}`),
      );
    }, timeoutMs);
    const check = () => {
      if (!fits()) return;
      clearTimeout(timer);
      watchers.delete(check);
      resolve(getState());
    };
    watchers.add(check);
    check();
  });
}

async function getMessages(id, graph = "chat") {
  const response = await fetch(`${url}/ui/${graph}/${id}/messages`, { headers });
  return response.ok ? await response.json() : [];
}

/** Chunks of all ended streams, checked by the schema of the package. */
async function getStreams() {
  const all = await Promise.all(streams);
  const schema = uiMessageChunkSchema();
  const issues = [];
  for (const lines of all)
    for (const line of lines) {
      if (line === "[DONE]" || line.startsWith("broken: ")) continue;
      const checked = await schema.validate(JSON.parse(line));
      if (!checked.success) issues.push(line);
    }
  return { streams: all, issues };
}

const commands = {
  open: async ({ id, graph = "chat", resume = false, automatic, load: isLoaded = false }) => {
    root?.unmount();
    document.getElementById("root").replaceWith(Object.assign(document.createElement("div"), { id: "root" }));
    root = createRoot(document.getElementById("root"));
    const initial = isLoaded ? await getMessages(id, graph) : [];
    texts.clear();
    await new Promise((resolve) => {
      watchers.add(resolve);
      root.render(React.createElement(App, { key: `${id} ${Math.random()}`, id, graph, initial, resume, automatic }));
    });
    watchers = new Set();
    return getState();
  },
  send: ({ text, files, messageId }) => void chat.sendMessage({ text, files, messageId }),
  sendNothing: () => void chat.sendMessage(),
  approve: ({ id, approved, reason }) => chat.addToolApprovalResponse({ id, approved, reason }),
  output: ({ tool, toolCallId, output }) => chat.addToolOutput({ tool, toolCallId, output }),
  regenerate: ({ messageId }) => void chat.regenerate({ messageId }),
  stop: () => chat.stop(),
  resume: () => void chat.resumeStream(),
  until: waitUntil,
  state: getState,
  texts: () => [...texts],
  requests: () => requests,
  streams: getStreams,
  messages: ({ id, graph }) => getMessages(id, graph),
  call: async ({ method, path, body }) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...headers, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  },
  /** Checks messages with the package, and reads a recorded stream with its own reader. */
  validate: async ({ messages }) => {
    await validateUIMessages({ messages: messages ?? chat.messages });
    return true;
  },
  read: async ({ lines }) => {
    const chunks = lines.filter((line) => line !== "[DONE]").map((line) => JSON.parse(line));
    let last;
    for await (const message of readUIMessageStream({ stream: ReadableStream.from(chunks) })) last = message;
    return last;
  },
};

process.on("unhandledRejection", (error) => {
  console.error(error);
  process.exit(1);
});
console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...options } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ value: (await commands[command](options)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error?.stack ?? error) }));
  }
}
process.exit(0);
