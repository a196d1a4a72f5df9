/** Server with the UI message stream over one agent, and a client of its wire for tests. */
import { engine, type Message, type Model, memoryStore, type Store } from "@statewright/core";
import { getState } from "@statewright/core/inspect";
import { onTestFinished } from "vitest";
import type { UiChunk, UiMessage } from "../../src/ai-sdk/ui-chunk.ts";
import { uiStream } from "../../src/ai-sdk/ui-stream.ts";
import type { UiStreamOptions } from "../../src/ai-sdk/ui-stream-options.ts";
import { type Server, serve } from "../../src/index.ts";
import { createChat } from "./agents.ts";

const token = "a-token-that-is-long-enough";

/** Response of a stream or of JSON. */
export interface UiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Chunks of a stream. */
  readonly chunks: readonly UiChunk[];
  readonly json: unknown;
}

/** Options of a server of a test. */
export interface UiServerOptions extends UiStreamOptions {
  readonly model: Model;
  readonly helper?: Model;
  readonly store?: Store;
}

/** Server of a test. */
export interface UiServer {
  readonly server: Server;
  readonly store: Store;
  readonly send: (path: string, init?: RequestInit) => Promise<Response>;
  /** Posts as `useChat` does, and reads the whole response. */
  readonly post: (body: object) => Promise<UiResponse>;
  readonly read: (path: string, init?: RequestInit) => Promise<UiResponse>;
  readonly listMessages: (thread?: string) => Promise<readonly UiMessage[]>;
  /** Messages of the state, as saved. */
  readonly getStateMessages: () => Promise<readonly Message[]>;
}

/** Creates a server over an agent `chat`. Everything is closed after the test. */
export async function createUiServer(serverOptions: UiServerOptions): Promise<UiServer> {
  const { model, helper, store = memoryStore(), ...options } = serverOptions;
  const chat = createChat({ model, store, ...(helper === undefined ? {} : { helper }) });
  const host = engine({ store, graphs: [chat] });
  onTestFinished(() => host.stop({ now: true }));
  await host.start();
  const server = serve({ engine: host, access: { token }, protocols: [uiStream(options)] });
  onTestFinished(() => server.close());
  const send = (path: string, init: RequestInit = {}): Promise<Response> =>
    server.fetch(
      new Request(`http://localhost${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...init.headers },
      }),
    );
  const read: UiServer["read"] = async (path, init) => await readResponse(await send(path, init));
  return {
    server,
    store,
    send,
    read,
    post: (body) => read("/ui/chat", { method: "POST", body: JSON.stringify(body) }),
    listMessages: async (thread = "t1") => (await read(`/ui/chat/${thread}/messages`)).json as readonly UiMessage[],
    getStateMessages: async () => {
      const { state } = await getState(chat, { store, thread: "t.local.t1" });
      return state.messages;
    },
  };
}

/** Reads a response whole: the chunks of a stream, or JSON. */
export async function readResponse(response: Response): Promise<UiResponse> {
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
  const lines = text.split("\n").filter((line) => line.startsWith("data: ") && line !== "data: [DONE]");
  return {
    ...{ status: response.status, headers: response.headers, text },
    chunks: isStream ? lines.map((line) => JSON.parse(line.slice("data: ".length)) as UiChunk) : [],
    json: isStream || text === "" ? undefined : JSON.parse(text),
  };
}

/** Creates a user message with text. */
export function createUserMessage(id: string, text: string): object {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** Creates the body of a new message. */
export function createSubmit(messages: readonly object[], more: object = {}): object {
  return { id: "t1", messages, trigger: "submit-message", ...more };
}
