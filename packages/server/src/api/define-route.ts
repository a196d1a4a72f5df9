/** Routes of the native API: what a route accepts and answers, once for the checks and once for the OpenAPI document. */
import * as z from "zod";
import type { Action } from "../access/caller.ts";
import type { HttpMethod, Route, RouteCall } from "../http/route.ts";
import { readQuery } from "./read-query.ts";

/** Answer of a route with a status. */
export interface Answer {
  readonly description: string;
  /** Schema of a JSON body. Default: no body. */
  readonly schema?: z.ZodType;
  /** Media type of a body that is not JSON. */
  readonly mediaType?: string;
  /** Names of headers, such as `location`. */
  readonly headers?: readonly string[];
}

/** Description of a route for the OpenAPI document. */
export interface Operation {
  /** Name of the operation, unique, such as `startRun`. */
  readonly id: string;
  readonly summary: string;
  readonly tag: string;
  readonly answers: Readonly<Record<number, Answer>>;
  /** Names of request headers that the route reads. */
  readonly headers?: readonly RequestHeader[];
  readonly query?: z.ZodType | undefined;
  readonly body?: z.ZodType | undefined;
  /** Media type of a body that is not JSON. */
  readonly bodyType?: string;
  /** Frames of the answer `text/event-stream`, by event name. */
  readonly frames?: Readonly<Record<string, z.ZodType>>;
}

/** Request header that a route reads. */
export type RequestHeader = "idempotency-key" | "prefer" | "if-match" | "if-none-match" | "last-event-id" | "range";

/** Route with its description. */
export interface ApiRoute extends Route {
  readonly operation: Operation;
}

/** Route to define. */
export interface RouteSpec<Query, Body> extends Omit<Operation, "query" | "body"> {
  readonly method: HttpMethod;
  readonly path: string;
  readonly action: Action;
  /** Default: true for GET. */
  readonly isRead?: boolean;
  readonly maxBodyBytes?: number;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  readonly handle: (call: RouteCall, given: { readonly query: Query; readonly body: Body }) => Promise<Response>;
}

const noQuery: z.ZodType<unknown> = z.strictObject({});

/** Defines a route. The query and a JSON body are checked by their schemas before the handler is called. */
export function defineRoute<Query = unknown, Body = unknown>(spec: RouteSpec<Query, Body>): ApiRoute {
  const { method, path, action, isRead = method === "GET", maxBodyBytes, query, body, handle, ...operation } = spec;
  return {
    ...{ method, path, action, isRead },
    ...(maxBodyBytes === undefined ? {} : { maxBodyBytes }),
    ...(operation.bodyType === undefined ? {} : { body: "file" as const }),
    operation: { ...operation, query, body },
    handle: async (call) => {
      const given = {
        query: readQuery(call.query, query ?? noQuery) as Query,
        body: (body === undefined ? undefined : await call.readJson(body)) as Body,
      };
      return await handle(call, given);
    },
  };
}

/** Creates a JSON response. `undefined` properties are left out. */
export function createJson(
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
  });
}
