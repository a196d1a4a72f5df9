/** Server with the LangGraph protocol in this process, and a client that sees requests and frames as they are. */
import { engine, type Graph, memoryStore, type Store } from "@statewright/core";
import { onTestFinished } from "vitest";
import * as z from "zod";
import { type Caller, serve } from "../../src/index.ts";
import { type LangGraphOptions, langgraph } from "../../src/langgraph.ts";
import type { ServeOptions } from "../../src/serve-options.ts";
import { createTestGraphs } from "./test-graphs.ts";

/** Tokens of the caller `ann` of the tenant `acme`, and of `bob` of the tenant `globex`. */
export const callerTokens = { ann: "token-of-ann-0123456789", bob: "token-of-bob-0123456789" } as const;

/** Frame of a stream. */
export interface Frame {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: unknown;
}

/** Response of the server, with its body as JSON. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface SendOptions {
  readonly caller?: keyof typeof callerTokens;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Client of a server for tests. */
export interface TestClient {
  readonly store: Store;
  /** Sends a request with a body as JSON. */
  readonly send: (method: string, path: string, body?: unknown, options?: SendOptions) => Promise<Answer>;
  /** Sends a request and returns the response as it is. */
  readonly request: (method: string, path: string, body?: unknown, options?: SendOptions) => Promise<Response>;
  /** Creates a thread and returns its id. */
  readonly createThread: (body?: object) => Promise<string>;
  /** Starts a run and reads its stream to the end. */
  readonly run: (thread: string, body: object) => Promise<readonly Frame[]>;
}

interface ServerParts {
  readonly options?: LangGraphOptions;
  readonly store?: Store;
  readonly graphs?: readonly Graph[];
  readonly serveOptions?: Partial<ServeOptions>;
}

/** Creates a server whose engine has started. Everything ends with the test. */
export async function createLangGraphServer(parts: ServerParts = {}): Promise<TestClient> {
  const { options, store = memoryStore(), graphs = createTestGraphs().graphs, serveOptions } = parts;
  const host = engine({ store, graphs });
  const tokens: Readonly<Record<string, Caller>> = {
    [callerTokens.ann]: { id: "ann", tenant: "acme" },
    [callerTokens.bob]: { id: "bob", tenant: "globex" },
  };
  const server = serve({
    ...{ engine: host, protocols: [langgraph(options)], log: () => {} },
    access: { authenticate: (request) => tokens[request.headers.get("x-api-key") ?? ""] },
    ...serveOptions,
  });
  await host.start();
  onTestFinished(async () => {
    await server.close();
    await host.stop({ now: true });
  });
  const request: TestClient["request"] = (method, path, body, { caller = "ann", headers = {}, signal } = {}) => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const all = { "x-api-key": callerTokens[caller], "content-type": "application/json", ...headers };
    const init = { method, headers: all, ...content, ...(signal === undefined ? {} : { signal }) };
    return server.fetch(new Request(`http://localhost/langgraph${path}`, init));
  };
  const send: TestClient["send"] = async (...args) => {
    const response = await request(...args);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  return {
    store,
    send,
    request,
    createThread: async (body = {}) =>
      z.object({ thread_id: z.string() }).parse((await send("POST", "/threads", body)).body).thread_id,
    run: async (thread, body) =>
      parseFrames(
        await (await request("POST", `/threads/${thread}/runs/stream`, { assistant_id: "assistant", ...body })).text(),
      ),
  };
}

/** Parses the text of a stream. */
export function parseFrames(text: string): readonly Frame[] {
  return text.split("\n\n").flatMap((block) => {
    const fields = block.split("\n").filter((line) => line !== "" && !line.startsWith(":"));
    if (fields.length === 0) return [];
    const get = (name: string): string | undefined =>
      fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    return [{ id: get("id"), event: get("event") ?? "", data: JSON.parse(get("data") ?? "null") }];
  });
}

/** Input with a message of the user. */
export function human(content: string, id?: string): object {
  return { messages: [{ type: "human", content, ...(id === undefined ? {} : { id }) }] };
}
