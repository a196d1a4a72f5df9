/** Protocols and their routes: what a protocol declares, and what its handlers receive. */
import type * as z from "zod";
import type { Action, Caller } from "../access/caller.ts";
import type { NativeService } from "../service/native/native-service.ts";
import type { Problem } from "./problem.ts";

export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Frame of a server-sent event stream. `data` is encoded as one line of JSON. */
export interface SseFrame {
  readonly id?: string | undefined;
  readonly event?: string | undefined;
  readonly data: unknown;
}

/** A line that readers ignore, or literal text of a protocol that is not JSON, such as `[DONE]`. */
export type SseLine = SseFrame | { readonly comment: string } | { readonly text: string };

/** Options of a stream response. */
export interface StreamOptions {
  /** Headers beside those of a stream. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Status of the response. Default 200. */
  readonly status?: number;
  /** Last frames after a failure of the source, in the form of the protocol. */
  readonly formatFailure?: (problem: Problem) => readonly SseLine[];
}

/** Request of an authenticated caller who has the right to the action of the route. */
export interface RouteCall {
  readonly request: Request;
  /** Decoded path parameters, each within the grammar of ids. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Acts of this caller. The only way to threads, runs and graphs. */
  readonly service: NativeService;
  /** Public path of the protocol, such as `/agents/api`, for headers like `location`. */
  readonly base: string;
  /** Id of the request, also in the log and in the header `x-request-id`. */
  readonly requestId: string;
  /** Reads and checks the body. Throws a problem: 400, 413, 415 or 422. */
  readJson<Value>(schema: z.ZodType<Value>): Promise<Value>;
  /** Reads the bytes of the body, within the limit of the route. Throws a problem: 400, 408 or 413. */
  readBytes(): Promise<Uint8Array>;
  /**
   * Answers with a stream of server-sent events: a comment at once and every five seconds, the frames, and an end when
   * the source ends, the reader leaves, the caller's right ends, or the server drains.
   */
  stream(source: (signal: AbortSignal) => AsyncIterable<SseLine>, options?: StreamOptions): Response;
  /**
   * Logs the failure of work that goes on after the response, when no client is left to be told. `what` names the work,
   * such as `the deletion of a thread`. A run that has ended already is no failure.
   */
  watchWork(what: string, work: Promise<unknown>): void;
}

/** Route of a protocol. */
export interface Route {
  readonly method: HttpMethod;
  /** Path below the prefix, such as `/threads/:thread/runs`. The parameter `thread` is the id of a thread. */
  readonly path: string;
  /** Right that is asked before the handler is called. */
  readonly action: Action;
  /** False for a route that changes something; a server with the role `readOnly` refuses it. */
  readonly isRead: boolean;
  /** Maximum bytes of the body. Default: the limit `bodyBytes` of the server, or `fileBytes` for a file. */
  readonly maxBodyBytes?: number;
  /** `file`: the body is a file of any media type. Default `json`: another media type is refused. */
  readonly body?: "json" | "file";
  /** Answers a request. A thrown problem or error becomes a response in the form of the protocol. */
  readonly handle: (call: RouteCall) => Promise<Response> | Response;
}

/** Protocol that a server speaks. */
export interface Protocol {
  /** Name, such as `langgraph`; also a value of `expose`. */
  readonly name: string;
  /** Path of all routes below the base path, such as `/api`, or `""`. */
  readonly prefix: string;
  readonly routes: readonly Route[];
  /** Response for a failure before a stream has begun. */
  readonly formatProblem: (problem: Problem) => Response;
}
