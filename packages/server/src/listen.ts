/** Listener of a server on an address of this machine. */
import {
  checkCount,
  checkFlag,
  checkOptions,
  checkTime,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { handleTermination, serveHttp } from "@statewright/host";
import { isLoopbackAddress } from "@statewright/host/access";
import type { Handler, HandlerParts } from "./http/handler.ts";

/** Options of `listen`. */
export interface ListenOptions {
  /** TCP port; 0 selects a free port. Default 4270. */
  readonly port?: number;
  /** Address to bind to. Default 127.0.0.1, not reachable from other machines. Another address needs host names. */
  readonly host?: string;
  /** Maximum number of open connections. Default 6,000: all streams of the process, and requests beside them. */
  readonly maxConnections?: number;
  /** Milliseconds until an idle connection is closed. Default 5,000. */
  readonly keepAliveTimeoutMs?: number;
  /**
   * Drains the server at SIGTERM and exits; a second SIGTERM exits at once. Default true.
   */
  readonly handleSigterm?: boolean;
  /** Milliseconds after which a drain at SIGTERM aborts the runs that have not saved their superstep. Default 10,000. */
  readonly graceMs?: number;
}

/** Listening server. */
export interface Listener {
  /** URL of the listener, with the base path. */
  readonly url: string;
  readonly port: number;
  /** Stops listening and closes all connections. The engine goes on. */
  close(): Promise<void>;
}

/** What a listener needs of its server. */
export interface ListenParts extends Pick<HandlerParts, "access" | "limits" | "log" | "basePath" | "exposeErrors"> {
  readonly handle: Handler;
  /** True if the options name the host names of the server. */
  readonly hasHostNames: boolean;
  readonly drain: (options: { readonly graceMs: number }) => Promise<void>;
}

/** Milliseconds that open responses have to end when a process ends. */
const lastResponseMs = 1_000;

const names = listOptionNames<ListenOptions>({
  port: true,
  host: true,
  maxConnections: true,
  keepAliveTimeoutMs: true,
  handleSigterm: true,
  graceMs: true,
});

/**
 * Listens. Throws `invalid_option` without access options, and for an address that other machines reach with access
 * `"open"`, with `exposeErrors`, or without host names; `io` for an address that cannot be bound.
 */
export async function listenHttp(parts: ListenParts, options: ListenOptions): Promise<Listener> {
  checkOptions("listen", options, names);
  const { port = 4_270, host = "127.0.0.1", maxConnections = 6_000, keepAliveTimeoutMs = 5_000 } = options;
  const { handleSigterm = true, graceMs = 10_000 } = options;
  checkCount("listen", { port }, 0, 65_535);
  checkCount("listen", { maxConnections });
  checkTime("listen", { keepAliveTimeoutMs, graceMs });
  checkFlag("listen", { handleSigterm });
  checkReach(parts, host);
  const { handle, limits, log, basePath, drain } = parts;
  const server = await serveHttp(handle, {
    port,
    host,
    maxConnections,
    keepAliveTimeoutMs,
    maxHeaderBytes: limits.headerBytes,
    requestTimeoutMs: limits.bodyMs,
    onError: (error) => log("error", "a connection failed", { error }),
  });
  let removeHandler = (): void => {};
  const close = async (): Promise<void> => {
    removeHandler();
    await server.close();
  };
  if (handleSigterm)
    removeHandler = handleTermination(async () => {
      await drain({ graceMs });
      await server.close({ graceMs: lastResponseMs });
    });
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${server.port}${basePath}`,
    port: server.port,
    close,
  };
}

function checkReach({ access, exposeErrors, hasHostNames }: ListenParts, host: string): void {
  if (!access.isConfigured)
    throw invalidOption({
      where: "listen",
      expected: "a server with access",
      found: "a server without access",
      fix: 'Pass access to serve: token, tokens, authenticate, or "open" for this machine only',
    });
  if (isLoopbackAddress(host)) return;
  const reach = `the host "${host}", which other machines reach`;
  if (access.isOpen)
    throw invalidOption({
      where: "listen",
      expected: `a server with authentication for ${reach}`,
      found: 'access "open"',
      fix: "Pass authenticate, token or tokens as access, or listen on 127.0.0.1",
    });
  if (exposeErrors)
    throw invalidOption({
      where: "listen",
      expected: `a server without exposeErrors for ${reach}`,
      found: "exposeErrors: true",
      fix: "Remove exposeErrors, or listen on 127.0.0.1",
    });
  if (!hasHostNames)
    throw invalidOption({
      where: "listen",
      expected: `a server with host names for ${reach}`,
      found: "none",
      fix: 'Pass hosts or publicUrl to serve, such as hosts: ["agents.example"], and use an HTTPS proxy',
    });
}
