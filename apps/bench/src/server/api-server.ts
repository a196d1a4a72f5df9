/** HTTP API of a server: the requests that the bench sends to it. Each server runs in a process of its own. */

/** Request; `{id}` in the path and in the body stands for a new random id. */
export interface ApiRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Text that the body of each response has, and how often. */
  readonly expected: { readonly text: string; readonly times: number };
}

/** Requests of a server. */
export interface ApiRequests {
  /** Creates a thread. */
  readonly createThread: ApiRequest;
  /** Lists the newest 50 threads. */
  readonly listThreads: ApiRequest;
  /** Runs three nodes on a new thread, and answers at the end of the run. */
  readonly run: ApiRequest;
}

/** Started server. */
export interface ApiServer {
  readonly port: number;
  readonly requests: ApiRequests;
}

/** Started server that closes itself; a server in a process of its own ends with the process. */
export interface ClosableApiServer extends ApiServer {
  readonly close: () => Promise<void>;
}

/** Starts a server whose files are in the folder. */
export type StartApiServer = (folder: string) => Promise<ApiServer>;
