/** Server of a test: two tenants, deterministic graphs, a virtual clock, and a store in memory or in a file. */
import { type Engine, engine, type Graph, type Store } from "@statewright/core";
import { type VirtualClock, virtualClock } from "@statewright/testing";
import { onTestFinished } from "vitest";
import { type ServeOptions, type Server, serve } from "../../src/index.ts";
import { awaitOnClock } from "./await-on-clock.ts";
import { checkAnswer, isJsonType } from "./check-answer.ts";
import { createTestGraphs, type TestGraphs } from "./test-graphs.ts";
import { openTestStore, type StoreKind } from "./test-store.ts";

/** Callers: ann and amy share the tenant acme, bob is of globex, root of acme has the scope admin. */
export type TestCaller = "ann" | "amy" | "bob" | "root";

/** Tokens of the callers. */
export const testTokens: Readonly<Record<TestCaller, string>> = {
  ann: "token-of-ann-0123456789",
  amy: "token-of-amy-0123456789",
  bob: "token-of-bob-0123456789",
  root: "token-of-root-0123456789",
};

/** Request of a test. */
export interface TestRequest {
  /** Default `ann`. Null sends no token. */
  readonly as?: TestCaller | null;
  /** Default: POST with a body, otherwise GET. */
  readonly method?: string;
  /** Value that is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Options of a test server, beside those of `serve`. */
export interface TestServerOptions extends Partial<Omit<ServeOptions, "engine">> {
  /** Default `memory`. */
  readonly store?: StoreKind | Store;
  /** Clock of the engine. Default: a new one. */
  readonly clock?: VirtualClock;
  /** Further graphs; one in place of a test graph of the same name. */
  readonly graphs?: readonly Graph[];
}

/** Server with its parts. */
export interface TestServer extends TestGraphs {
  readonly server: Server;
  readonly engine: Engine;
  readonly store: Store;
  readonly clock: VirtualClock;
  /** Sends a request to a path of the server, and advances the clock until its response begins. */
  readonly send: (path: string, request?: TestRequest) => Promise<Response>;
  /** Sends a request, and returns the status and the parsed body. */
  readonly sendJson: (
    path: string,
    request?: TestRequest,
  ) => Promise<{ readonly status: number; readonly body: unknown }>;
}

/** Creates a web request to the server. */
export function createTestRequest(path: string, request: TestRequest = {}): Request {
  const { as = "ann", body, signal } = request;
  const { method = body === undefined ? "GET" : "POST", headers = {} } = request;
  return new Request(`http://localhost${path}`, {
    method,
    headers: {
      ...(as === null ? {} : { authorization: `Bearer ${testTokens[as]}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Creates a server whose engine serves. Everything is closed after the test. */
export async function createTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { store: given = "memory", graphs = [], clock = virtualClock(), ...serveOptions } = options;
  const store = typeof given === "string" ? openTestStore(given, clock) : given;
  const testGraphs = createTestGraphs();
  const replaced = new Set(graphs.map(({ name }) => name));
  const kept = testGraphs.graphs.filter(({ name }) => !replaced.has(name));
  const host = engine({ store, graphs: [...kept, ...graphs], world: clock });
  await host.start();
  onTestFinished(() => host.stop({ now: true }));
  const { ann, amy, bob, root } = testTokens;
  const server = serve({
    engine: host,
    access: {
      tokens: {
        ann: { token: ann, tenant: "acme" },
        amy: { token: amy, tenant: "acme" },
        bob: { token: bob, tenant: "globex" },
        root: { token: root, tenant: "acme", scopes: ["admin"] },
      },
    },
    ...serveOptions,
  });
  onTestFinished(() => server.close());
  // Time moves on while a request waits: engines and waits look for work of other processes at intervals.
  const send = async (path: string, request?: TestRequest): Promise<Response> => {
    const sent = createTestRequest(path, request);
    const response = await awaitOnClock(clock, server.fetch(sent));
    const isJson = isJsonType(response.headers.get("content-type") ?? "");
    checkAnswer({ method: sent.method, path }, response, isJson ? await response.clone().text() : undefined);
    return response;
  };
  return {
    ...testGraphs,
    server,
    engine: host,
    store,
    clock,
    send,
    sendJson: async (path, request) => {
      const response = await send(path, request);
      const text = await awaitOnClock(clock, response.text());
      return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
    },
  };
}
