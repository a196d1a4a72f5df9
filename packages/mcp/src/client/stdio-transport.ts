/**
 * Stdio transport of a child process: one JSON-RPC message per line, in a process group that ends with this process.
 */
import { deserializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import { createLineReader, type RunningProcess, startProcess } from "@statewright/host";
import { isJsonObject } from "@statewright/json-schema";

/** Options of the server process, with expanded variables. */
export interface StdioTransportOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly inherit: readonly string[] | "all";
  readonly cwd: string | undefined;
  readonly maxMessageLength: number;
  readonly onStderr: (line: string) => void;
  readonly world: World;
}

/** Transport with the lifetime of its server. */
export interface ServerTransport extends Transport {
  readonly pid: number | undefined;
  /** Returns the end reason; undefined while the server is running. */
  readonly getEndReason: () => string | undefined;
  /** Sets whether the server keeps this process alive. */
  readonly holdOpen: (isHeld: boolean) => void;
  /** Ends the server immediately. */
  readonly stop: () => Promise<void>;
}

/** Milliseconds for a server to exit after the end of its input. */
const closeGraceMs = 2_000;

/** Creates the transport of a child process, which starts on connect. */
export function createStdioTransport(options: StdioTransportOptions): ServerTransport {
  const { command, world } = options;
  let running: RunningProcess | undefined;
  let endReason: string | undefined;
  let isClosing = false;
  /**
   * Delivers a single message at a time: the client processes the notifications of a call slightly after its response,
   * and drops notifications that arrive in between.
   */
  let deliveries: Promise<unknown> = Promise.resolve();
  const deliver = (work: () => void): void => {
    deliveries = deliveries.then(work);
  };

  const endTransport = (reason: string): void => {
    if (endReason !== undefined) return;
    endReason = reason;
    deliver(() => transport.onclose?.());
  };
  const handleLine = (line: string): void => {
    if (line.trim() === "") return;
    const message = parseMessage(line);
    if (message === undefined)
      world.log("warn", `MCP server "${command}" wrote an invalid message`, { line: line.slice(0, 200) });
    else deliver(() => transport.onmessage?.(message));
  };
  const stdout = createLineReader(options.maxMessageLength, handleLine, (length) => {
    endTransport(`the server wrote a line longer than ${options.maxMessageLength} characters (${length} so far)`);
    void running?.stop();
  });
  const stderr = createLineReader(options.maxMessageLength, options.onStderr, () => undefined);

  const transport: ServerTransport & { stderr: null } = {
    // The SDK client recognizes a child process by `stderr` and `pid`.
    stderr: null,
    get pid() {
      return endReason === undefined ? running?.group.id : undefined;
    },
    getEndReason: () => endReason,
    holdOpen: (isHeld) => {
      if (!isClosing && endReason === undefined) running?.holdOpen(isHeld);
    },
    start: async () => {
      running = await startProcess(command, options.args, {
        env: options.env,
        inherit: options.inherit,
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        keepInputOpen: true,
        maxBytes: 4_096,
        world,
        onOutput: (chunk, stream) => (stream === "stdout" ? stdout : stderr).add(chunk),
      });
      void running.result.then(
        ({ exitCode, stderr: stderrText }) =>
          endTransport(`the server exited with code ${exitCode}${formatTail(stderrText)}`),
        () => endTransport("the server was stopped, because reading its output failed"),
      );
    },
    send: async (message) => {
      if (running === undefined || endReason !== undefined) throw new Error(endReason ?? "the server was not started");
      try {
        await running.write(`${JSON.stringify(message)}\n`);
      } catch (error) {
        // A failed write means an ended process, or stops it: the end reason then reaches all waiting requests,
        // including this one.
        await Promise.allSettled([running.stop()]);
        throw error;
      }
    },
    close: async () => {
      if (running === undefined || isClosing) return;
      isClosing = true;
      running.holdOpen(true);
      const closing = running;
      const stopTimer = world.schedule.after(closeGraceMs, () => void closing.stop());
      closing.endInput();
      await Promise.allSettled([closing.result]);
      stopTimer();
    },
    stop: async () => {
      if (running !== undefined) await Promise.allSettled([running.stop()]);
    },
  };
  return transport;
}

/** Parses a line as a message. A malformed response with a request id becomes an error response for the caller. */
function parseMessage(line: string): JSONRPCMessage | undefined {
  try {
    return deserializeMessage(line);
  } catch {
    const id = findResponseId(line);
    return id === undefined
      ? undefined
      : { jsonrpc: "2.0", id, error: { code: -32_700, message: "The response is not a valid JSON-RPC 2.0 message." } };
  }
}

function findResponseId(line: string): string | number | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    if (!isJsonObject(parsed) || "method" in parsed) return undefined;
    const { id } = parsed;
    return typeof id === "string" || typeof id === "number" ? id : undefined;
  } catch {
    return undefined;
  }
}

function formatTail(stderr: string): string {
  const text = stderr.trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}
