/** Server with a protocol of its own, whose handlers show what they get: for tests of what is around the handlers. */
import { engine, memoryStore, type Store } from "@statewright/core";
import { type LogLine, type VirtualClock, virtualClock } from "@statewright/testing";
import { onTestFinished } from "vitest";
import * as z from "zod";
import { createServer, type Server } from "../../src/create-server.ts";
import { formatProblem } from "../../src/http/problem-response.ts";
import type { Protocol, Route } from "../../src/http/route.ts";
import type { ServeOptions } from "../../src/serve-options.ts";
import { createTestGraphs } from "./test-graphs.ts";

/** Token of the caller `local`. */
export const bareToken = "a-token-that-is-long-enough";

/** Request to a bare server. */
export interface BareRequest {
  readonly method?: string;
  /** Headers beside the token; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>;
  /** Default `localhost`. */
  readonly host?: string;
}

export interface BareServer {
  readonly server: Server;
  readonly clock: VirtualClock;
  /** Routes whose handler ran, in order. */
  readonly handled: readonly string[];
  readonly lines: readonly LogLine[];
  /** Sends a request, and returns its response with the parsed body. */
  readonly send: (path: string, request?: BareRequest) => Promise<BareResponse>;
}

export interface BareResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Code of the problem; undefined for a success. */
  readonly code: string | undefined;
}

/** Schema of the bodies of a bare server. */
const bareBody = z.strictObject({ text: z.string(), more: z.unknown().optional() });

/** Creates a web request to a bare server. */
export function createBareRequest(path: string, request: BareRequest = {}): Request {
  const { host = "localhost", body } = request;
  const { method = body === undefined ? "GET" : "POST" } = request;
  const headers = new Headers();
  const all = {
    authorization: `Bearer ${bareToken}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...request.headers,
  };
  for (const [name, value] of Object.entries(all)) if (value !== undefined) headers.set(name, value);
  // The option of Node for bodies that are streams is not in the types of the web.
  const init: RequestInit & { readonly duplex: "half" } = { method, headers, duplex: "half" };
  return new Request(`http://${host}${path}`, body === undefined ? init : { ...init, body });
}

/** Creates a bare server. Everything is closed after the test. */
export function createBareServer(
  options: Partial<ServeOptions> & { readonly store?: Store; readonly routes?: readonly Route[] } = {},
): BareServer {
  const { store = memoryStore(), routes = [], ...serveOptions } = options;
  const handled: string[] = [];
  const clock = virtualClock();
  const host = engine({ store, graphs: createTestGraphs().graphs, world: clock });
  onTestFinished(() => host.stop({ now: true }));
  const server = createServer({ engine: host, access: { token: bareToken }, ...serveOptions }, () => ({
    protocols: [createBareProtocol(handled, routes)],
    forCaller: () => {
      throw new Error("the routes of a bare server use no service");
    },
    getDocument: () => ({}),
  }));
  onTestFinished(() => server.close());
  return {
    server,
    clock,
    handled,
    get lines() {
      return clock.lines;
    },
    send: async (path, request) => {
      const response = await server.fetch(createBareRequest(path, request));
      const text = await response.text();
      const isProblem = response.headers.get("content-type") === "application/problem+json";
      const code = isProblem ? z.object({ code: z.string() }).parse(JSON.parse(text)).code : undefined;
      return { status: response.status, headers: response.headers, text, code };
    },
  };
}

function createBareProtocol(handled: string[], more: readonly Route[]): Protocol {
  const createRoute = (method: Route["method"], path: string, parts: Partial<Route> = {}): Route => ({
    method,
    path,
    action: "thread.read",
    isRead: method === "GET",
    handle: async (call) => {
      handled.push(`${method} ${path}`);
      const body = method === "POST" ? await call.readJson(bareBody) : undefined;
      return Response.json({ params: call.params, base: call.base, caller: call.caller, body });
    },
    ...parts,
  });
  return {
    name: "bare",
    prefix: "/bare",
    routes: [
      createRoute("GET", "/threads/:thread"),
      createRoute("GET", "/threads/:thread/runs/:run"),
      createRoute("GET", "/threads/newest"),
      createRoute("POST", "/threads/:thread/runs", { action: "run.start" }),
      createRoute("DELETE", "/threads/:thread", { action: "thread.delete" }),
      createRoute("POST", "/wipe", { action: "admin" }),
      createRoute("GET", "/graphs/:graph", { action: "graph.read" }),
      createRoute("GET", "/broken", {
        handle: () => {
          throw new Error("SELECT secret FROM /var/lib/agents.db");
        },
      }),
      ...more,
    ],
    formatProblem,
  };
}
