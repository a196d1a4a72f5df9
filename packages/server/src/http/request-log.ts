/** One log line per request: route, status, duration and ids. Never bodies, tokens or values of the query. */
import type { Log } from "@statewright/core";

/** Fields of the log line of a request. */
export interface RequestLine {
  /** Time of the request, ISO 8601 in UTC. */
  readonly at: string;
  readonly requestId: string;
  readonly method: string;
  /** Path of the route with the names of its parameters; absent for an unknown path. */
  readonly route: string | undefined;
  readonly protocol: string | undefined;
  readonly status: number;
  /** Milliseconds until the headers of the response. */
  readonly ms: number;
  /** Id of the caller. */
  readonly caller: string | undefined;
  readonly tenant: string | undefined;
  readonly thread: string | undefined;
  readonly run: string | undefined;
  /** Code of the problem; absent for a success. */
  readonly code: string | undefined;
  /** Address of the client: behind a trusted proxy, the address that the proxy names. */
  readonly address: string | undefined;
}

/**
 * Creates a log that formats each message as one line of JSON.
 *
 * @example
 * serve({ engine: host, access, log: createJsonLog((line) => process.stdout.write(line)) });
 */
export function createJsonLog(write: (line: string) => void): Log {
  return (level, message, fields = {}) => write(`${JSON.stringify({ level, message, ...fields }, replaceError)}\n`);
}

/** An error has no enumerable fields: a log line shows its name, message and stack. */
function replaceError(_key: string, value: unknown): unknown {
  return value instanceof Error ? { name: value.name, message: value.message, stack: value.stack } : value;
}

/** Returns the thread and the run that a response names in its location headers. */
export function findLocationIds({ headers }: Response): { readonly thread?: string; readonly run?: string } {
  const location = headers.get("content-location") ?? headers.get("location") ?? "";
  const thread = /\/threads\/([^/?]+)/.exec(location)?.[1];
  const run = /\/runs\/([^/?]+)/.exec(location)?.[1];
  return { ...(thread === undefined ? {} : { thread }), ...(run === undefined ? {} : { run }) };
}
