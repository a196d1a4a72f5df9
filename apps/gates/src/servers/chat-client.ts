/**
 * Clients of each protocol, as far as their connections go: they send a message, show the words of the answer, and come
 * back after a broken connection as the clients of the protocol do.
 */
import * as z from "zod";
import { readEvents, type SourceEvent } from "./event-source.ts";
import { serverToken } from "./server-process.ts";

/** Names of the protocols. */
export const clientProtocols = ["native", "langgraph", "langgraph v2", "ai-sdk"] as const;

/** Name of a protocol. */
export type ClientProtocol = (typeof clientProtocols)[number];

/** Conversation of a client: one message of the user, and its answer. */
export interface ChatRequest {
  readonly protocol: ClientProtocol;
  readonly url: string;
  readonly thread: string;
  readonly text: string;
  /** The right answer; every text that the client shows must be a beginning of it. */
  readonly answer: string;
  /** Called with the length of the shown text. */
  readonly onText?: (length: number) => void;
  readonly signal: AbortSignal;
}

/** What a client has seen. */
export interface ChatResult {
  readonly text: string;
  /** Connections that were opened. */
  readonly connections: number;
  /** Responses with a status of 400 or above, and texts that were not a beginning of the answer. */
  readonly violations: readonly string[];
  readonly end: "completed" | "cancelled";
}

/** Milliseconds before a client connects again. */
const reconnectMs = 20;

/** Part of a protocol: how a client connects, and what it does with an event. */
interface ChatProtocol {
  /** Request of the first connection, and of those after it. */
  readonly createRequest: (isFirst: boolean) => { readonly path: string; readonly init?: RequestInit };
  /** Called with each response. */
  readonly onResponse?: (response: Response) => void;
  /** Applies an event; returns the end of the run, if it is one. */
  readonly apply: (event: SourceEvent) => ChatResult["end"] | undefined;
  /** Text of the answer that is shown. */
  readonly getText: () => string;
  /** The connection ended, and nothing is at work: the end of the run, if the protocol can tell. */
  readonly loadEnd?: (load: (path: string) => Promise<unknown>) => Promise<ChatResult["end"] | undefined>;
}

/** Sends a message and reads its answer to the end, over broken connections. */
export async function chat(request: ChatRequest): Promise<ChatResult> {
  const { url, answer, signal, onText } = request;
  const protocol = createProtocol(request);
  const violations: string[] = [];
  let connections = 0;
  let isStarted = false;
  const send = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}${path}`, {
      ...init,
      signal,
      headers: { authorization: `Bearer ${serverToken}`, "content-type": "application/json", ...init.headers },
    });
  for (;;) {
    signal.throwIfAborted();
    const { path, init } = protocol.createRequest(!isStarted);
    const response = await send(path, init).catch(toBrokenConnection);
    if (response !== undefined) {
      connections += 1;
      if (response.status >= 400) violations.push(`${path}: ${response.status} ${await response.text()}`);
      else {
        isStarted = true;
        protocol.onResponse?.(response);
        const end = await readResponse(response, (event) => {
          const found = protocol.apply(event);
          const text = protocol.getText();
          if (!answer.startsWith(text))
            violations.push(`expected a beginning of the answer, got ${JSON.stringify(text)}`);
          onText?.(text.length);
          return found;
        });
        const loaded =
          end ??
          (await protocol.loadEnd?.(async (loadPath) => {
            const loadedResponse = await send(loadPath).catch(toBrokenConnection);
            return loadedResponse?.ok === true ? await loadedResponse.json().catch(toBrokenConnection) : undefined;
          }));
        if (loaded !== undefined) return { text: protocol.getText(), connections, violations, end: loaded };
      }
    }
    if (violations.length > 5) return { text: protocol.getText(), connections, violations, end: "completed" };
    await new Promise((resolve) => setTimeout(resolve, reconnectMs));
  }
}

/** A connection that broke is no failure of a client: it comes back. */
function toBrokenConnection(error: unknown): undefined {
  if (error instanceof Error && error.name === "AbortError") throw error;
  return undefined;
}

async function readResponse(
  response: Response,
  apply: (event: SourceEvent) => ChatResult["end"] | undefined,
): Promise<ChatResult["end"] | undefined> {
  const events = readEvents(response);
  for (;;) {
    const next = await events.next().catch(toBrokenConnection);
    if (next === undefined || next.done === true) return undefined;
    const end = apply(next.value);
    if (end === undefined) continue;
    await events.return(undefined);
    return end;
  }
}

function createProtocol(request: ChatRequest): ChatProtocol {
  switch (request.protocol) {
    case "native":
      return createNative(request);
    case "langgraph":
      return createLegacy(request);
    case "langgraph v2":
      return createStreaming(request);
    case "ai-sdk":
      return createPage(request);
  }
}

const nativeEvent = z.object({
  messageId: z.string().optional(),
  kind: z.string().optional(),
  text: z.string().optional(),
  message: z.object({ id: z.string(), content: z.unknown().optional() }).optional(),
  messages: z.unknown().optional(),
});

/** Posts a run with an idempotency key, then reads the events of the thread with `Last-Event-ID`. */
function createNative({ thread, text }: ChatRequest): ChatProtocol {
  const view = createNativeView();
  let last: string | undefined;
  return {
    createRequest: (isFirst) => {
      const messages = [{ role: "user", id: "m1", content: [{ type: "text", text }] }];
      const body = JSON.stringify({ graph: "chat", input: { messages } });
      const headers = { "idempotency-key": "k1" };
      if (isFirst) return { path: `/api/threads/${thread}/runs`, init: { method: "POST", body, headers } };
      const init = last === undefined ? {} : { headers: { "last-event-id": last } };
      return { path: `/api/threads/${thread}/events`, init };
    },
    apply: ({ id, event, data }) => {
      last = id ?? last;
      view.apply(event, nativeEvent.parse(JSON.parse(data)));
      if (event === "run.completed") return "completed";
      return event === "run.cancelled" ? "cancelled" : undefined;
    },
    getText: view.getText,
  };
}

/** Committed text, then the messages that no step has committed. A snapshot replaces the latter. */
function createNativeView() {
  const open = new Map<string, string>();
  const completed = new Set<string>();
  let saved = "";
  return {
    apply: (
      event: string,
      { messageId = "", kind, text = "", message, messages }: z.infer<typeof nativeEvent>,
    ): void => {
      if (event === "message.delta" && kind === "text") open.set(messageId, (open.get(messageId) ?? "") + text);
      else if (event === "message.retracted") open.delete(messageId);
      else if (event === "message.completed" && message !== undefined) {
        open.set(message.id, readContent(message.content));
        completed.add(message.id);
      } else if (event === "snapshot") {
        open.clear();
        for (const one of openMessages.parse(messages)) open.set(one.id, one.text);
      } else if (event === "step.committed")
        for (const id of completed) {
          saved += open.get(id) ?? "";
          open.delete(id);
          completed.delete(id);
        }
    },
    getText: () => saved + [...open.values()].join(""),
  };
}

const openMessages = z.array(z.object({ id: z.string(), text: z.string() }));

const legacyMessage = z.object({ type: z.string(), id: z.string().nullish(), content: z.unknown().optional() });
const legacyValues = z.object({ messages: z.array(legacyMessage).default([]) });

function readContent(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = z.array(z.object({ type: z.string(), text: z.string().optional() })).safeParse(content);
  return blocks.success ? blocks.data.map(({ text = "" }) => text).join("") : "";
}

/** Posts a streamed run, then reads `Location` with `Last-Event-ID`. */
function createLegacy({ thread, text }: ChatRequest): ChatProtocol {
  const chunks = new Map<string, string>();
  let shown = new Map<string, string>();
  let location: string | undefined;
  let last: string | undefined;
  return {
    createRequest: () => {
      if (location !== undefined)
        return {
          path: `/langgraph${location}`,
          init: last === undefined ? {} : { headers: { "last-event-id": last } },
        };
      const body = {
        assistant_id: "chat",
        input: { messages: [{ type: "human", id: "m1", content: text }] },
        stream_mode: ["values", "messages-tuple"],
        if_not_exists: "create",
      };
      return { path: `/langgraph/threads/${thread}/runs/stream`, init: { method: "POST", body: JSON.stringify(body) } };
    },
    onResponse: ({ headers }) => {
      location = headers.get("location") ?? location;
    },
    apply: ({ id, event, data }) => {
      last = id ?? last;
      if (event === "values") {
        const { messages } = legacyValues.parse(JSON.parse(data));
        const answers = messages.filter(({ type }) => type === "ai");
        shown = new Map(answers.map((message) => [message.id ?? "", readContent(message.content)]));
      } else if (event.startsWith("messages")) {
        const [message] = z.tuple([legacyMessage, z.unknown()]).parse(JSON.parse(data));
        if (!message.type.startsWith("AIMessage")) return undefined;
        const key = message.id ?? "";
        chunks.set(key, (chunks.get(key) ?? "") + readContent(message.content));
        shown.set(key, chunks.get(key) ?? "");
      } else if (event === "end") {
        const { status } = z.object({ status: z.string() }).parse(JSON.parse(data));
        return status === "success" ? "completed" : "cancelled";
      }
      return undefined;
    },
    getText: () => [...shown.values()].join(""),
  };
}

const streamedFrame = z.object({
  event_id: z.string(),
  seq: z.number(),
  method: z.string(),
  params: z.object({ namespace: z.array(z.string()), data: z.unknown().optional() }),
});
const messageFrame = z.object({
  event: z.string(),
  id: z.string().optional(),
  delta: z.object({ text: z.string().optional() }).optional(),
  content: z.object({ type: z.string().optional(), text: z.string().optional() }).optional(),
});

/** Sends a command, then reads the events of the thread since the last frame. Each frame is applied once, by its id. */
function createStreaming({ thread, text }: ChatRequest): ChatProtocol {
  const seen = new Set<string>();
  let since = 0;
  let saved = "";
  let open: string | undefined;
  return {
    createRequest: (isFirst) => {
      const input = { messages: [{ type: "human", id: "m1", content: text }] };
      const command = { id: 1, method: "run.start", params: { assistant_id: "chat", input } };
      if (isFirst)
        return {
          path: `/langgraph/threads/${thread}/commands`,
          init: { method: "POST", body: JSON.stringify(command) },
        };
      const subscription = { channels: ["messages", "values", "lifecycle"], ...(since === 0 ? {} : { since }) };
      const body = JSON.stringify(subscription);
      return { path: `/langgraph/threads/${thread}/stream/events`, init: { method: "POST", body } };
    },
    apply: ({ data }) => {
      const frame = streamedFrame.safeParse(JSON.parse(data));
      if (!frame.success) return undefined;
      const { event_id: id, seq, method, params } = frame.data;
      since = Math.max(since, seq);
      if (seen.has(id)) return undefined;
      seen.add(id);
      if (method === "values") {
        const values = legacyValues.parse(params.data);
        saved = values.messages.map(({ type, content }) => (type === "ai" ? readContent(content) : "")).join("");
        if (saved !== "") open = undefined;
      } else if (method === "messages") open = applyMessageFrame(open, messageFrame.parse(params.data));
      else if (method === "lifecycle" && params.namespace.length === 0) {
        const { event } = z.object({ event: z.string() }).parse(params.data);
        if (event === "completed") return "completed";
        if (event === "interrupted") return "cancelled";
      }
      return undefined;
    },
    getText: () => saved + (open ?? ""),
  };
}

function applyMessageFrame(open: string | undefined, frame: z.infer<typeof messageFrame>): string | undefined {
  switch (frame.event) {
    case "message-start":
      return "";
    case "content-block-delta":
      return (open ?? "") + (frame.delta?.text ?? "");
    case "content-block-finish":
      return frame.content?.text ?? open;
    case "error":
      return undefined;
    default:
      return open;
  }
}

const pageChunk = z.object({
  type: z.string(),
  delta: z.string().optional(),
  finishReason: z.string().optional(),
});
const pageMessages = z.array(
  z.object({ role: z.string(), parts: z.array(z.object({ type: z.string(), text: z.string().optional() })) }),
);

/** Posts a message, then resumes the stream, which begins with the whole message. */
function createPage({ thread, text }: ChatRequest): ChatProtocol {
  let shown = "";
  let step = "";
  return {
    createRequest: (isFirst) => {
      shown = "";
      step = "";
      const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text }] }];
      const body = JSON.stringify({ id: thread, trigger: "submit-message", messages });
      return isFirst ? { path: "/ui/chat", init: { method: "POST", body } } : { path: `/ui/chat/${thread}/stream` };
    },
    apply: ({ data }) => {
      if (data === "[DONE]") return undefined;
      const { type, delta = "", finishReason } = pageChunk.parse(JSON.parse(data));
      if (type === "start-step") {
        shown += step;
        step = "";
      } else if (type === "reset-step") step = "";
      else if (type === "text-delta") step += delta;
      if (type === "abort") return "cancelled";
      return type === "finish" && finishReason === "stop" ? "completed" : undefined;
    },
    getText: () => shown + step,
    loadEnd: async (load) => {
      const loaded = pageMessages.safeParse(await load(`/ui/chat/${thread}/messages`));
      const last = loaded.success ? loaded.data.at(-1) : undefined;
      if (last?.role !== "assistant") return undefined;
      const whole = last.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
      if (!whole.endsWith(".")) return undefined;
      shown = whole;
      step = "";
      return "completed";
    },
  };
}
