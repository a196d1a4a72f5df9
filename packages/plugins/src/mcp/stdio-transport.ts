/** The stdio transport of a server that is a child process: one JSON-RPC message a line, in a group that dies with us. */
import { deserializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import type { World } from "@statewright/core";
import { type RunningProcess, startProcess } from "@statewright/host";
import { lineReader } from "../line-reader.ts";
import { isObject } from "../protocol.ts";

/** What starts the process of a server, with every variable in place. */
export interface ChildStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly inherit: readonly string[] | "all";
  readonly cwd: string | undefined;
  readonly maxMessageLength: number;
  readonly onStderr: (line: string) => void;
  readonly world: World;
}

/** A transport with the life of its other end. */
export interface OwnedTransport extends Transport {
  readonly pid: number | undefined;
  /** How it ended; undefined while it has not. */
  readonly ended: () => string | undefined;
  /** Whether our process stays alive for it. */
  readonly holdOpen: (isHeld: boolean) => void;
  /** End it now. */
  readonly stop: () => Promise<void>;
}

/** How long a server may take to end by itself once its input is closed. */
const closeGraceMs = 2_000;

/** The transport of a child process, which is started when the client connects. */
export function stdioTransport(start: ChildStart): OwnedTransport {
  const { command, world } = start;
  let running: RunningProcess | undefined;
  let end: string | undefined;
  let isClosing = false;
  /** One message at a time: the client takes in news of a call a little later than its answer, and drops what comes then. */
  let told: Promise<unknown> = Promise.resolve();
  const tell = (work: () => void): void => {
    told = told.then(work);
  };

  const die = (how: string): void => {
    if (end !== undefined) return;
    end = how;
    tell(() => transport.onclose?.());
  };
  const read = (line: string): void => {
    if (line.trim() === "") return;
    const message = messageOf(line);
    if (message === undefined)
      world.log("warn", `the MCP server "${command}" wrote a line that is no message`, { line: line.slice(0, 200) });
    else tell(() => transport.onmessage?.(message));
  };
  const stdout = lineReader(start.maxMessageLength, read, (length) => {
    die(`it wrote a line that is longer than ${start.maxMessageLength} characters (${length} so far)`);
    void running?.stop();
  });
  const stderr = lineReader(start.maxMessageLength, start.onStderr, () => undefined);

  const transport: OwnedTransport & { stderr: null } = {
    // By this and the pid the client tells a child process from a connection.
    stderr: null,
    get pid() {
      return end === undefined ? running?.group.id : undefined;
    },
    ended: () => end,
    holdOpen: (isHeld) => {
      if (!isClosing && end === undefined) running?.holdOpen(isHeld);
    },
    start: async () => {
      running = await startProcess(command, start.args, {
        env: start.env,
        inherit: start.inherit,
        ...(start.cwd === undefined ? {} : { cwd: start.cwd }),
        keepInputOpen: true,
        maxBytes: 4_096,
        world,
        onOutput: (chunk, stream) => (stream === "stdout" ? stdout : stderr).add(chunk),
      });
      void running.result.then(
        ({ exitCode, stderr: said }) => die(`it ended with exit code ${exitCode}${tail(said)}`),
        () => die("it was ended, since what took its output failed"),
      );
    },
    send: async (message) => {
      if (running === undefined || end !== undefined) throw new Error(end ?? "it was not started");
      try {
        await running.write(`${JSON.stringify(message)}\n`);
      } catch (error) {
        // It takes nothing more, so it has ended, or is ended: how, is told to all that wait, also for this message.
        await Promise.allSettled([running.stop()]);
        throw error;
      }
    },
    close: async () => {
      if (running === undefined || isClosing) return;
      isClosing = true;
      running.holdOpen(true);
      const child = running;
      const stopTimer = world.schedule.after(closeGraceMs, () => void child.stop());
      child.endInput();
      await Promise.allSettled([child.result]);
      stopTimer();
    },
    stop: async () => {
      if (running !== undefined) await Promise.allSettled([running.stop()]);
    },
  };
  return transport;
}

/** A line as a message. What answers a request and is no message by the letter is an error for who asked. */
function messageOf(line: string): JSONRPCMessage | undefined {
  try {
    return deserializeMessage(line);
  } catch {
    const id = idOf(line);
    return id === undefined
      ? undefined
      : { jsonrpc: "2.0", id, error: { code: -32_700, message: "The answer is no message of JSON-RPC 2.0." } };
  }
}

function idOf(line: string): string | number | undefined {
  try {
    const given: unknown = JSON.parse(line);
    if (!isObject(given) || "method" in given) return undefined;
    const { id } = given;
    return typeof id === "string" || typeof id === "number" ? id : undefined;
  } catch {
    return undefined;
  }
}

function tail(stderr: string): string {
  const text = stderr.trim();
  return text === "" ? "" : `: ${text.slice(-500)}`;
}
