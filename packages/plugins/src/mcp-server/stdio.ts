/** Over stdin and stdout: one client, the program that started this one. */
import type { Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { connectionFor, type Served } from "./connection.ts";
import { type McpLimits, unfitMessage } from "./limits.ts";

/** A server at work over stdio. */
export interface StdioServer {
  /** Resolves when the client has gone. */
  readonly gone: Promise<void>;
  readonly close: () => Promise<void>;
}

/** The client at the other end of stdin and stdout. */
const local: { readonly id: string } = Object.freeze({ id: "local" });

/** Serve the program at the other end of stdin and stdout. */
export function overStdio(served: Served): StdioServer {
  const wire = new StdioServerTransport(undefined, undefined, { maxBufferSize: served.limits.messageBytes });
  let leave: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const report = (error: Error): void => served.world.log("warn", "a message over stdio was not taken", { error });
  const handle = serveStdio(() => connectionFor(served, local).server, {
    transport: bounded(wire, served.limits, report, leave),
    onerror: report,
  });
  return { gone, close: () => handle.close() };
}

/** The same transport; messages beyond the limits are not handed on, and a request among them is told so. */
function bounded(wire: Transport, limits: McpLimits, report: (error: Error) => void, onGone: () => void): Transport {
  const outer: Transport = {
    start: async () => {
      wire.onmessage = (message, extra) => {
        const unfit = unfitMessage(message, limits);
        if (unfit === undefined) return outer.onmessage?.(message, extra);
        report(new Error(`a message ${unfit}`));
        const id = "id" in message && "method" in message ? message.id : undefined;
        if (id === undefined) return;
        const error = { code: -32600, message: `Not taken: the message ${unfit}.` };
        wire.send({ jsonrpc: "2.0", id, error }).catch(report);
      };
      wire.onerror = (error) => outer.onerror?.(error);
      wire.onclose = () => {
        outer.onclose?.();
        onGone();
      };
      await wire.start();
    },
    send: (message, options) => wire.send(message, options),
    close: () => wire.close(),
  };
  return outer;
}
