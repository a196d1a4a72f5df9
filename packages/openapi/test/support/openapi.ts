/** A server that records its requests, and tool calls to it. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getMessageText,
  type JsonObject,
  type Message,
  memoryStore,
  type RunEvent,
  run,
  START,
  type Store,
  type Tool,
  type ToolResult,
  type ToolRuntime,
  toolNode,
  type World,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** A recorded request. */
export interface RecordedRequest {
  readonly method: string;
  /** URL as sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answer instead of the echo. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** A local server. */
export interface EchoServer {
  readonly base: string;
  readonly observed: RecordedRequest[];
  /** Answers by path prefix; the longest prefix wins. "drop" closes the connection, "hang" never answers. */
  readonly answers: Map<string, Answer | "drop" | "hang">;
  readonly close: () => Promise<void>;
}

/** Starts the server. */
export async function startEchoServer(): Promise<EchoServer> {
  const observed: RecordedRequest[] = [];
  const answers: EchoServer["answers"] = new Map();
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const asked = { method, url, headers, body: Buffer.concat(chunks).toString("latin1") };
      observed.push(asked);
      const [, found] =
        [...answers].filter(([start]) => url.startsWith(start)).sort(([a], [b]) => b.length - a.length)[0] ?? [];
      if (found === "drop") request.socket.destroy();
      else if (found === undefined) response.setHeader("content-type", "application/json").end(JSON.stringify(asked));
      else if (found !== "hang") response.writeHead(found.status ?? 200, found.headers ?? {}).end(found.body);
    });
  }).listen(0, "127.0.0.1");
  await new Promise((ready) => server.once("listening", ready));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    observed,
    answers,
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Result of one call: answer for the model, result for programs, and all emitted and saved data. */
export interface CallOutcome {
  readonly text: string;
  readonly result: ToolResult;
  readonly events: readonly RunEvent[];
  readonly store: Store;
}

/** Runs one call with the secrets of a run. */
export async function call(
  tools: readonly Tool[],
  name: string,
  args: JsonObject,
  options: {
    readonly secrets?: Readonly<Record<string, string>>;
    readonly world?: World;
    readonly signal?: AbortSignal;
    readonly onEvent?: (event: RunEvent) => void;
  } = {},
): Promise<CallOutcome> {
  const { secrets = {}, world = systemWorld(), signal, onEvent } = options;
  const store = memoryStore();
  const graph = defineGraph({ name: "calls", state: defineState({ messages: channel.messages() }) })
    .nodes({ tools: toolNode({ tools }) })
    .edges({ [START]: "tools", tools: END });
  const asks: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    content: [{ type: "call", id: "c1", name, args }],
  };
  const handle = run(graph, {
    input: { messages: [asks] },
    store,
    thread: "t",
    secrets: { get: (wanted) => secrets[wanted] },
    world,
    ...(signal === undefined ? {} : { signal }),
  });
  const events: RunEvent[] = [];
  handle.on((event) => {
    events.push(event);
    onEvent?.(event);
  });
  const { state } = await handle.result;
  const answer = state.messages.find((message) => message.role === "tool");
  const result = events.flatMap((event) =>
    event.type === "tool.completed" || event.type === "tool.failed" ? [event.result] : [],
  )[0];
  if (answer === undefined || result === undefined) throw new Error("the call has no answer");
  return { text: getMessageText(answer), result, events, store };
}

/** Creates the runtime of one call outside of a run: without artifacts, long-term store and secrets. */
export function createToolRuntime(parts: Partial<Pick<ToolRuntime, "clock" | "signal">> = {}): ToolRuntime {
  return {
    callId: "c1",
    toolName: "look",
    attempt: 1,
    run: { run: "r", thread: "t", branch: "main", graph: "calls", node: "tools", task: "1:0", step: 1 },
    context: undefined,
    injected: undefined,
    signal: new AbortController().signal,
    steered: new AbortController().signal,
    idempotencyKey: "t/main/1:0/c1",
    clock: systemWorld().clock,
    wait: async () => undefined,
    progress: () => undefined,
    emit: () => undefined,
    longTerm: () => failUnavailable("long-term store"),
    generate: () => failUnavailable("model"),
    artifacts: {
      list: async () => [],
      read: async () => failUnavailable("artifacts"),
      page: async () => failUnavailable("artifacts"),
    },
    secrets: { get: () => undefined },
    ...parts,
  };
}

function failUnavailable(part: string): never {
  throw new Error(`${part}: expected no use outside of a run`);
}
