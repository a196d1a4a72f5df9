/** Client of the native API of a server. */
import type { GraphMap } from "./graph-types.ts";
import { createRequester, type Requester } from "./request.ts";
import { type Fetch, type Runtime, systemRuntime } from "./runtime.ts";
import { createScheduleCalls, type ScheduleCalls } from "./schedule-calls.ts";
import type {
  BulkReport,
  BulkRequest,
  GraphDetails,
  GraphSummary,
  Info,
  InterruptChange,
  NewThread,
  Page,
  PageQuery,
  Run,
  Thread,
  ThreadQuery,
  WaitingInterrupt,
} from "./server-types.ts";
import { ThreadClient } from "./thread-client.ts";
import { readInterrupts } from "./thread-events.ts";

type Headers = Readonly<Record<string, string>>;

/** Options of `createClient`. */
export interface ClientOptions {
  /** URL of the server, with the path of its mount: `https://agents.example/v1`. */
  readonly url: string;
  /** Token, sent as `Authorization: Bearer`. A function is called for each request. Default: none. */
  readonly token?: string | (() => string | Promise<string>);
  /** Further headers. A function is called for each request. Default: none. */
  readonly headers?: Headers | (() => Headers | Promise<Headers>);
  /** Sends the requests. Default: the `fetch` of the runtime. */
  readonly fetch?: Fetch;
  /** Attempts of a request that is safe to repeat: a read, or a call with a key. Default 5. */
  readonly attempts?: number;
  /** Time and chance, for tests. Default: those of the runtime. */
  readonly runtime?: Pick<Runtime, "sleep" | "random">;
}

/** Client of a server. */
export interface Client<Graphs extends GraphMap> extends ScheduleCalls {
  /** Version, protocols, limits and role of the server. */
  getInfo(): Promise<Info>;
  /** Reads a graph with its machine, diagram and JSON Schemas. */
  getGraph(name: string): Promise<GraphDetails>;
  /** Imports an exported thread, by default under its exported id. Needs the scope `admin`. */
  importThread(text: string, options?: { readonly id?: string }): Promise<Thread>;
  /** Cancels, resumes, retries or deletes all runs of the tenant that match. Needs the scope `admin`. */
  changeRuns(request: BulkRequest): Promise<BulkReport>;
  /** Streams the open interrupts and their changes until the signal fires; connects again after a lost connection. */
  streamInterrupts(options?: { readonly signal?: AbortSignal }): AsyncIterable<InterruptChange>;
  /** Calls about a thread, which need not exist yet: its first run creates it. */
  thread(id: string): ThreadClient<Graphs>;
  /** Lists threads, most recently changed first. */
  listThreads(query?: ThreadQuery): Promise<Page<Thread>>;
  /** Creates a thread before its first run. */
  createThread(thread?: NewThread): Promise<Thread>;
  /** Reads a run by its id. */
  getRun(run: string): Promise<Run>;
  /** Lists the open interrupts of all threads, newest first. */
  listInterrupts(
    query?: PageQuery & { readonly thread?: string; readonly graph?: string },
  ): Promise<Page<WaitingInterrupt>>;
  /** Lists the graphs. */
  listGraphs(): Promise<readonly GraphSummary[]>;
}

/**
 * Creates a client. `Graphs` names the graphs of the server with their types, for inputs, states and answers that
 * compile only when they fit. No call of the client repeats a POST without a key.
 *
 * @example
 * import type { support } from "../server/graphs.ts";
 * const client = createClient<{ support: typeof support }>({ url: "http://127.0.0.1:4270", token });
 * const { run, state } = await client.thread("t1").runToRest("support", { input: { messages: [] } });
 */
export function createClient<Graphs extends GraphMap = GraphMap>(options: ClientOptions): Client<Graphs> {
  const { url, attempts = 5, fetch = systemRuntime.fetch, runtime = systemRuntime } = options;
  const requester = createRequester({
    url,
    attempts,
    runtime: { ...runtime, fetch },
    getHeaders: () => readHeaders(options),
  });
  return createCalls<Graphs>(requester);
}

function createCalls<Graphs extends GraphMap>(requester: Requester): Client<Graphs> {
  const { sendJson } = requester;
  return {
    ...createScheduleCalls(requester),
    getInfo: () => sendJson({ method: "GET", path: "/info" }),
    getGraph: (name) => sendJson({ method: "GET", path: `/graphs/${encodeURIComponent(name)}` }),
    importThread: (body, query = {}) => {
      const content = { body, type: "application/x-ndjson" };
      return sendJson({ method: "POST", path: "/threads/imports", query, content });
    },
    changeRuns: (body) => sendJson({ method: "POST", path: "/runs/bulk", body }),
    streamInterrupts: ({ signal } = {}) => readInterrupts(requester, signal),
    thread: (id) => new ThreadClient<Graphs>(requester, id),
    listThreads: ({ metadata = {}, ...query } = {}) => {
      const filters = Object.entries(metadata).map(
        ([key, value]) => [`metadata.${key}`, JSON.stringify(value)] as const,
      );
      return sendJson({ method: "GET", path: "/threads", query: { ...query, ...Object.fromEntries(filters) } });
    },
    createThread: (thread = {}) => {
      const isRepeatable = thread.id !== undefined && thread.ifExists === "keep";
      return sendJson({ method: "POST", path: "/threads", body: thread, isRepeatable });
    },
    getRun: (run) => sendJson({ method: "GET", path: `/runs/${encodeURIComponent(run)}` }),
    listInterrupts: (query = {}) => sendJson({ method: "GET", path: "/interrupts", query: { ...query } }),
    listGraphs: async () => {
      const { data } = await sendJson<{ readonly data: readonly GraphSummary[] }>({ method: "GET", path: "/graphs" });
      return data;
    },
  };
}

async function readHeaders({ token, headers }: ClientOptions): Promise<Headers> {
  const given = typeof token === "function" ? await token() : token;
  const further = typeof headers === "function" ? await headers() : headers;
  return { ...(given === undefined ? {} : { authorization: `Bearer ${given}` }), ...further };
}
