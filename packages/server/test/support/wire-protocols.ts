/** The same acts through each protocol: requests as its clients send them. */
import { uiStream } from "../../src/ai-sdk.ts";
import { langgraph } from "../../src/langgraph.ts";
import { createTestServer, type TestRequest, type TestServer, type TestServerOptions } from "./create-test-server.ts";

/** Names of the protocols; the LangGraph protocol has two forms. */
export const wireProtocols = ["native", "langgraph", "langgraph v2", "ai-sdk"] as const;

/** Name of a protocol. */
export type WireProtocol = (typeof wireProtocols)[number];

/** Path of a request, and the request. */
export interface WireCall {
  readonly path: string;
  readonly request: TestRequest;
}

/** Message of a start. */
export interface WireStart {
  readonly thread: string;
  readonly text: string;
  /** Default `m1`. */
  readonly id?: string;
  readonly graph?: string;
  /** Further keys of the body, or of the parameters of a command. */
  readonly more?: object;
}

/** Creates the request that sends a message of the user to a graph. */
export function createStart(protocol: WireProtocol, start: WireStart): WireCall {
  const { thread, text, id = "m1", graph = "assistant", more = {} } = start;
  const human = { assistant_id: graph, input: { messages: [{ type: "human", id, content: text }] } };
  switch (protocol) {
    case "native":
      return {
        path: `/api/threads/${thread}/runs`,
        request: {
          body: { graph, input: { messages: [{ role: "user", id, content: [{ type: "text", text }] }] }, ...more },
        },
      };
    case "langgraph":
      return {
        path: `/langgraph/threads/${thread}/runs`,
        request: { body: { ...human, if_not_exists: "create", ...more } },
      };
    case "langgraph v2":
      return createCommand(thread, "run.start", { ...human, ...more });
    case "ai-sdk":
      return {
        path: `/ui/${graph}`,
        request: { body: { id: thread, trigger: "submit-message", messages: [createUiMessage(id, text)], ...more } },
      };
  }
}

/** Creates a command of the LangGraph protocol v2. */
export function createCommand(thread: string, method: string, params: object): WireCall {
  return { path: `/langgraph/threads/${thread}/commands`, request: { body: { id: 1, method, params } } };
}

/** Creates a message of a page of the AI SDK. */
export function createUiMessage(id: string, text: string): object {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** Creates the request that opens the stream of a thread; that of the AI SDK needs a run at work. */
export function createOpen(protocol: WireProtocol, thread: string, run = ""): WireCall {
  switch (protocol) {
    case "native":
      return { path: `/api/threads/${thread}/events`, request: {} };
    case "langgraph": {
      const modes = ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug"];
      const query = modes.map((mode) => `stream_mode=${mode}`).join("&");
      return {
        path: `/langgraph/threads/${thread}/runs/${run}/stream?${query}`,
        request: { headers: { "last-event-id": "-1" } },
      };
    }
    case "langgraph v2": {
      const channels = [
        "values",
        "updates",
        "messages",
        "tools",
        "lifecycle",
        "input",
        "checkpoints",
        "tasks",
        "custom",
      ];
      return { path: `/langgraph/threads/${thread}/stream/events`, request: { body: { channels } } };
    }
    case "ai-sdk":
      return { path: `/ui/assistant/${thread}/stream`, request: {} };
  }
}

/** Creates the request that approves the call of a tool. `more` are further keys of the answer. */
export function createApproval(
  protocol: WireProtocol,
  { thread, interrupt, callId, run, more = {} }: WaitingCall & { readonly more?: object },
): WireCall {
  const decisions = { decisions: [{ type: "approve", ...more }] };
  switch (protocol) {
    case "native":
      return {
        path: `/api/threads/${thread}/answers`,
        request: { body: { answers: { [interrupt]: { approved: true, ...more } } } },
      };
    case "langgraph":
      return {
        path: `/langgraph/threads/${thread}/runs`,
        request: { body: { assistant_id: "assistant", command: { resume: { [interrupt]: decisions } } } },
      };
    case "langgraph v2":
      return createCommand(thread, "input.respond", { namespace: [], interrupt_id: interrupt, response: decisions });
    case "ai-sdk": {
      const approval = { id: interrupt, approved: true };
      const part = {
        type: "tool-transfer",
        toolCallId: callId,
        state: "approval-responded",
        input: { to: "ann", amount: 5 },
        approval,
        ...more,
      };
      const messages = [createUiMessage("m1", "transfer"), { id: run, role: "assistant", parts: [part] }];
      return { path: "/ui/assistant", request: { body: { id: thread, trigger: "submit-message", messages } } };
    }
  }
}

/** Call of a tool that waits for an approval. */
export interface WaitingCall {
  readonly thread: string;
  readonly interrupt: string;
  readonly callId: string;
  readonly run: string;
}

/** Server of all protocols. */
export interface WireServer extends TestServer {
  /** Sends a request, and reads its response until it ends or brings only beats. */
  readonly perform: (call: WireCall, more?: TestRequest) => Promise<WireAnswer>;
  /** Starts a run that waits for the approval of the tool `transfer`. */
  readonly startWaiting: (thread: string) => Promise<WaitingCall>;
}

/** Response with its whole text. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Creates a server with all protocols. */
export async function createWireServer(options: TestServerOptions = {}): Promise<WireServer> {
  const server = await createTestServer({ protocols: [langgraph(), uiStream()], ...options });
  const { clock, send, store } = server;
  const perform: WireServer["perform"] = async ({ path, request }, more = {}) => {
    const left = new AbortController();
    const headers = { ...request.headers, ...more.headers };
    const response = await send(path, { ...request, ...more, headers, signal: left.signal });
    const text = await readWhileNew(response, left, clock);
    return { status: response.status, headers: response.headers, text };
  };
  return {
    ...server,
    perform,
    startWaiting: async (thread) => {
      await perform(createStart("native", { thread, text: "transfer" }));
      await clock.waitUntilIdle();
      const open = (await store.openInterrupts()).find((interrupt) => interrupt.thread === `t.acme.${thread}`);
      if (open === undefined) throw new Error(`the thread ${thread} waits for no approval`);
      const callId = open.id.split(":").at(-1) ?? "";
      return { thread, interrupt: open.id, callId, run: open.run };
    },
  };
}

/** Reads a body; a stream that brings only beats for ten seconds is left. */
async function readWhileNew(response: Response, left: AbortController, clock: TestServer["clock"]): Promise<string> {
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
    return await clock.until(response.text());
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let beats = 0; reader !== undefined && beats < 2; ) {
    const { done, value } = await clock.until(reader.read());
    if (done) return text;
    const part = decoder.decode(value, { stream: true });
    beats = /^(?::[^\n]*\n)*$/.test(part) ? beats + 1 : 0;
    text += part;
  }
  left.abort();
  await clock.until(reader?.cancel() ?? Promise.resolve());
  return text;
}
