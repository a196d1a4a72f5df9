/** Servers of the cases of event streams: Statewright, and a bare writer of server-sent events on `node:http`. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@statewright/server";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  type Model,
  memoryStore,
  START,
  type Store,
} from "statewright";

/** Words of a streamed answer, each in a turn of the event loop of its own, as they arrive from a provider. */
async function streamWords(words: number, say: (text: string) => void): Promise<void> {
  for (let index = 0; index < words; index++) {
    say(`word${index % 10} `);
    await new Promise(setImmediate);
  }
}

/** Server of event streams. */
export interface StreamServer {
  readonly port: number;
  /** Path of the stream of a thread. */
  readonly getPath: (thread: string) => string;
  /** Text that each frame of a streamed word has. */
  readonly marker: string;
  /** Streams an answer to the readers of each thread. Resolves when all words are sent. */
  readonly stream: (threads: readonly string[], words: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts a server of Statewright with these threads, which has a graph of one node with a model. */
export async function openStatewrightServer(threads: readonly string[]): Promise<StreamServer> {
  const store: Store = memoryStore();
  let words = 0;
  let questions = 0;
  const model: Model = {
    id: "words",
    respond: async (_, { delta }) => {
      let text = "";
      await streamWords(words, (word) => {
        text += word;
        delta?.({ type: "text", text: word });
      });
      return { content: [{ type: "text", text }], finish: "stop" };
    },
  };
  const chat = defineGraph({ name: "chat", state: defineState({ messages: channel.messages() }) })
    .nodes({
      answer: async ({ messages }, runtime) => ({
        messages: [await runtime.model({ model, request: { messages: messages.slice(-1), tools: [] } })],
      }),
    })
    .edges({ [START]: "answer", answer: END });
  const host = engine({ store, graphs: [chat] });
  await host.start();
  const server = serve({
    engine: host,
    access: { authenticate: (request) => ({ id: request.headers.get("x-user") ?? "user", tenant: "bench" }) },
  });
  const listener = await server.listen({ port: 0, handleSigterm: false });
  const post = (path: string, body: unknown): Promise<Response> =>
    server.fetch(
      new Request(`${listener.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", host: `127.0.0.1:${listener.port}` },
        body: JSON.stringify(body),
      }),
    );
  for (const id of threads) await requireOk(await post("/api/threads", { id }));
  return {
    port: listener.port,
    getPath: (thread) => `/api/threads/${thread}/events`,
    marker: "event: message.delta",
    stream: async (streamed, count) => {
      words = count;
      questions += 1;
      const input = {
        messages: [{ role: "user", id: `q${questions}`, content: [{ type: "text", text: "Tell me." }] }],
      };
      await Promise.all(
        streamed.map(async (thread) => requireOk(await post(`/api/threads/${thread}/runs`, { graph: "chat", input }))),
      );
    },
    close: async () => {
      await server.close();
      await host.stop();
      await store.close();
    },
  };
}

async function requireOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`the server answered ${response.status}: ${await response.text()}`);
}

/** Starts a server that writes each word as JSON to the readers of its thread, and does nothing else. */
export async function openBareServer(): Promise<StreamServer> {
  const readers = new Map<string, ServerResponse[]>();
  const server = createServer((request, response) => {
    const thread = request.url ?? "";
    readers.set(thread, [...(readers.get(thread) ?? []), response]);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.write(": open\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    getPath: (thread) => `/${thread}`,
    marker: "event: message.delta",
    stream: async (threads, words) => {
      await Promise.all(
        threads.map((thread) =>
          streamWords(words, (text) => {
            const place = { node: "answer", task: "0:0", seq: 2, at: new Date().toISOString(), branch: "main" };
            const data = JSON.stringify({
              type: "message.delta",
              kind: "text",
              messageId: "0:0:model",
              text,
              ...place,
            });
            for (const response of readers.get(`/${thread}`) ?? [])
              response.write(`event: message.delta\ndata: ${data}\n\n`);
          }),
        ),
      );
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
