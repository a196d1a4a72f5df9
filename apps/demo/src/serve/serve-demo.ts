/** `npm run demo -- --serve`: serves the audit agent over HTTP, until Ctrl-C. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Listener, type Server, serve } from "@statewright/server";
import { uiStream } from "@statewright/server/ai-sdk";
import { langgraph } from "@statewright/server/langgraph";
import { engine, type Log, type SqliteStore, sqliteStore } from "statewright";
import { loadModel, systemWorld } from "statewright/adapter";
import { createAuditAgent, createServedModel } from "./audit-agent.ts";
import { createToken, getConnectionPath, readConnection, writeConnection } from "./connection-file.ts";

/** Options of the served demo. */
export interface ServeDemoOptions {
  /** Source tree that the agent reads. */
  readonly target: string;
  /** Path of the database. */
  readonly store: string;
  /** Port. Default: that of the last start with this store, else 4270, or a free one if 4270 is taken. */
  readonly port: number | undefined;
  /** Real model, as `provider/name`; the scripted model if absent. */
  readonly model: string | undefined;
  /** Milliseconds between two words of the scripted model. Default 40. */
  readonly chunkMs?: number;
  /** Receives failures. Default: none. */
  readonly log?: Log;
}

/** Served demo. */
export interface ServedDemo {
  readonly url: string;
  readonly token: string;
  /** Stops the server and the engine: runs finish their superstep, and continue with the next start. */
  close(): Promise<void>;
}

const defaultPort = 4_270;

/** Starts the engine and the server. The port and the token of an earlier start with the same store are used again. */
export async function startServedDemo(options: ServeDemoOptions): Promise<ServedDemo> {
  const { store: path, target } = options;
  mkdirSync(dirname(path), { recursive: true });
  const saved = readConnection(path);
  const token = saved?.token ?? createToken();
  const store = sqliteStore(path);
  const agent = createAuditAgent({
    model: options.model === undefined ? createServedModel(options.chunkMs) : await loadModel(options.model),
    root: target,
    writeReport: (key, text) => writeReport(path, key, text),
  });
  const host = engine({ store, graphs: [agent], world: systemWorld({ log: options.log ?? (() => {}) }) });
  const server = serve({ engine: host, access: { token }, protocols: [langgraph(), uiStream()] });
  try {
    await host.start();
    const listener = await listen(server, options.port ?? saved?.port);
    writeConnection(path, { port: listener.port, token });
    return { url: listener.url, token, close: () => closeAll(server, store) };
  } catch (error) {
    await closeAll(server, store);
    throw error;
  }
}

async function closeAll(server: Server, store: SqliteStore): Promise<void> {
  await server.drain({ graceMs: 5_000 });
  await server.close();
  await store.close();
}

/** Listens on the port; without one on the default port, or on a free port if that one is taken. */
async function listen(server: Server, port: number | undefined): Promise<Listener> {
  if (port !== undefined) return await server.listen({ port, handleSigterm: false });
  try {
    return await server.listen({ port: defaultPort, handleSigterm: false });
  } catch {
    // The port is taken by another program. A second failure is reported.
    return await server.listen({ port: 0, handleSigterm: false });
  }
}

/** Writes a report beside the store. The same key writes the same file again. */
function writeReport(store: string, key: string, text: string): string {
  const path = join(dirname(store), `report-${key.replaceAll(/[^A-Za-z0-9]/g, "-")}.md`);
  writeFileSync(path, `${text}\n`);
  return path;
}

/** Describes how to talk to the server: ten lines with fetch, ten with the LangGraph SDK, and how to approve a call. */
export function describeServedDemo({ url }: Pick<ServedDemo, "url">, store: string): string {
  const connection = getConnectionPath(store);
  return `Serving the agent "audit" on ${url}
  native API              ${url}/api
  LangGraph SDK           ${url}/langgraph
  AI SDK, useChat         ${url}/ui/audit
The store is ${store}
The port and the token are in ${connection}

With fetch, in another terminal, as talk.mjs:

  import { readFileSync } from "node:fs";
  const { port, token } = JSON.parse(readFileSync(${JSON.stringify(connection)}, "utf8"));
  const headers = { authorization: \`Bearer \${token}\`, "content-type": "application/json", accept: "text/event-stream" };
  const input = { messages: [{ role: "user", content: process.argv[2] ?? "What is in this tree?" }] };
  const response = await fetch(\`http://127.0.0.1:\${port}/api/threads/first/runs\`, {
    method: "POST",
    headers,
    body: JSON.stringify({ graph: "audit", input, onBusy: "cancel" }),
  });
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) process.stdout.write(text);

After node talk.mjs "Write a report" a call waits. Approve it, as approve.mjs:

  import { readFileSync } from "node:fs";
  const { port, token } = JSON.parse(readFileSync(${JSON.stringify(connection)}, "utf8"));
  const url = \`http://127.0.0.1:\${port}/api/threads/first\`;
  const headers = { authorization: \`Bearer \${token}\`, "content-type": "application/json", prefer: "wait=30" };
  const { interrupts } = await (await fetch(\`\${url}/state\`, { headers })).json();
  const answers = Object.fromEntries(interrupts.map(({ id }) => [id, { approved: true }]));
  const response = await fetch(\`\${url}/answers\`, { method: "POST", headers, body: JSON.stringify({ answers }) });
  console.log((await response.json()).state.values.messages.at(-1).content);

With the LangGraph SDK (npm install @langchain/langgraph-sdk), as sdk.mjs:

  import { readFileSync } from "node:fs";
  import { Client } from "@langchain/langgraph-sdk";
  const { port, token } = JSON.parse(readFileSync(${JSON.stringify(connection)}, "utf8"));
  const client = new Client({ apiUrl: \`http://127.0.0.1:\${port}/langgraph\`, apiKey: token });
  const { thread_id } = await client.threads.create();
  const input = { messages: [{ role: "user", content: process.argv[2] ?? "What is in this tree?" }] };
  let last;
  for await (const { event, data } of client.runs.stream(thread_id, "audit", { input, streamMode: "messages-tuple" })) {
    if (event === "messages") process.stdout.write((data[0].id === last ? "" : "\\n\\n") + data[0].content);
    if (event === "messages") last = data[0].id; // a new id begins a new message
  }

It approves a waiting call with { command: { resume: { decisions: [{ type: "approve" }] } } } in place of { input }.

Kill the server in the middle of an answer and start it again: the LangGraph client continues by itself, and ends with
the whole answer. The connection of fetch breaks: read ${url}/api/threads/first/events?end=idle

Ctrl-C stops the server. Start it again with the same store, and its threads, port and token are there.`;
}
