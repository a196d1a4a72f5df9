/** Stdio transport with a single client: the parent process. */
import type { Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { createConnection, type ServerConfig } from "./connection.ts";
import { findMessageProblem, type McpLimits } from "./limits.ts";

/** Running stdio server. */
export interface StdioServer {
  /** Resolves on the disconnect of the client. */
  readonly disconnected: Promise<void>;
  readonly close: () => Promise<void>;
}

/** Caller of the stdio transport. */
const localCaller: { readonly id: string } = Object.freeze({ id: "local" });

/** Serves the parent process over stdin and stdout. */
export function createStdioServer(config: ServerConfig): StdioServer {
  const transport = new StdioServerTransport(undefined, undefined, { maxBufferSize: config.limits.messageBytes });
  let resolveDisconnect: () => void = () => undefined;
  const disconnected = new Promise<void>((resolve) => {
    resolveDisconnect = resolve;
  });
  const report = (error: Error): void => config.world.log("warn", "a stdio message was rejected", { error });
  const handle = serveStdio(() => createConnection(config, localCaller).server, {
    transport: limitMessages(transport, config.limits, report, resolveDisconnect),
    onerror: report,
  });
  return { disconnected, close: () => handle.close() };
}

/** Wraps a transport with message limits. Drops a message beyond the limits, and answers a request with an error. */
function limitMessages(
  inner: Transport,
  limits: McpLimits,
  report: (error: Error) => void,
  onDisconnect: () => void,
): Transport {
  const outer: Transport = {
    start: async () => {
      inner.onmessage = (message, extra) => {
        const problem = findMessageProblem(message, limits);
        if (problem === undefined) return outer.onmessage?.(message, extra);
        report(new Error(`a message ${problem}`));
        const id = "id" in message && "method" in message ? message.id : undefined;
        if (id === undefined) return;
        const error = { code: -32600, message: `Invalid request: the message ${problem}.` };
        inner.send({ jsonrpc: "2.0", id, error }).catch(report);
      };
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onclose = () => {
        outer.onclose?.();
        onDisconnect();
      };
      await inner.start();
    },
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
  };
  return outer;
}
