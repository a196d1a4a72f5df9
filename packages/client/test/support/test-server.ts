/** Server in this process, and a client of it whose connections the test can break. */
import { createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import { defineTool, engine, getMessageText, memoryStore } from "@statewright/core";
import { type Server, type ServerAccess, serve } from "@statewright/server";
import { call, say, scriptedModel } from "@statewright/testing";
import { onTestFinished } from "vitest";
import * as z from "zod";
import { type Client, createClient, type Fetch } from "../../src/index.ts";

export const token = "a-token-of-the-tests";

/** Words of the long answer. */
export const words: readonly string[] = Array.from({ length: 60 }, (_, index) => `word${index + 1}`);

const transfer = defineTool({
  name: "transfer",
  description: "Transfers money.",
  input: z.object({ amount: z.number() }),
  safety: { confirm: "always" },
  run: ({ amount }) => `Sent ${amount}`,
});

/** Agent of the tests: "transfer" asks for approval, everything else is answered with sixty words. */
export const assistant = createAgent({
  name: "assistant",
  model: scriptedModel(({ messages }) => {
    const newest = messages.at(-1);
    if (newest?.role === "tool") return say(`Result: ${getMessageText(newest)}`);
    if (newest !== undefined && getMessageText(newest).includes("transfer")) return call("transfer", { amount: 5 });
    return say(words.join(" "));
  }),
  tools: [transfer],
  middleware: [confirmTools()],
});

/** Graphs of the server, for the types of its clients. */
export interface Graphs {
  readonly [name: string]: unknown;
  readonly assistant: typeof assistant;
}

/** Access of a server, and the token that its client sends. */
interface TestAccess {
  readonly access: ServerAccess;
  readonly token: string;
}

export interface TestServer {
  readonly server: Server;
  readonly client: Client<Graphs>;
  /** Requests, as method and path. */
  readonly requests: readonly string[];
  /** Delays that the client waited, in milliseconds. */
  readonly delays: readonly number[];
}

/** Starts a server. `intercept` may answer, break or pass on each request. */
export async function startTestServer(
  given: ((request: Request, next: Fetch) => Promise<Response>) | TestAccess = { access: { token }, token },
): Promise<TestServer> {
  const intercept = typeof given === "function" ? given : undefined;
  const { access, token: sent } = typeof given === "function" ? { access: { token }, token } : given;
  const host = engine({ store: memoryStore(), graphs: [assistant] });
  const server = serve({ engine: host, access });
  await host.start();
  onTestFinished(async () => {
    await server.close();
    await host.stop({ now: true });
  });
  const requests: string[] = [];
  const delays: number[] = [];
  const next: Fetch = (url, init) => server.fetch(new Request(url, init));
  const client = createClient<Graphs>({
    url: "http://localhost/",
    token: async () => sent,
    fetch: (url, init) => {
      const request = new Request(url, init);
      requests.push(`${request.method} ${new URL(url).pathname}`);
      return intercept === undefined ? next(url, init) : intercept(request, next);
    },
    runtime: {
      random: () => 1,
      sleep: async (ms) => {
        delays.push(ms);
      },
    },
  });
  return { server, client, requests, delays };
}

/** Input with one message of the user. */
export function ask(text: string, id: string) {
  return { messages: [{ role: "user" as const, id, content: [{ type: "text" as const, text }] }] };
}
