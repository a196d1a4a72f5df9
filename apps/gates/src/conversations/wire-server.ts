/**
 * Local server that simulates the providers: checks requests by their rules, sends random replies, and injects
 * network faults.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Chance, createChance } from "@statewright/testing";
import { anthropicFormat } from "./anthropic-format.ts";
import { googleFormat } from "./google-format.ts";
import { openaiChatFormat } from "./openai-chat-format.ts";
import { openaiResponsesFormat } from "./openai-responses-format.ts";
import { createServerReply, type ServerReply } from "./random-reply.ts";
import { createFrame, toObject, type WireFormat, type WireSession } from "./wire-format.ts";

/** Simulated providers. */
export const formats: Readonly<Record<string, WireFormat>> = {
  anthropic: anthropicFormat,
  chat: openaiChatFormat,
  responses: openaiResponsesFormat,
  google: googleFormat,
};

/** Conversation from the side of the providers. */
export interface WireConversation {
  /** Returns the base URL of a provider. */
  readonly baseUrl: (provider: string) => string;
  readonly requests: number;
  /** Faults of requests. A faulty request still gets a reply. */
  readonly problems: readonly string[];
  readonly replies: Readonly<Record<string, number>>;
}

export interface WireServer {
  readonly openConversation: (seed: number) => WireConversation;
  readonly close: () => Promise<void>;
}

interface ConversationState {
  readonly chance: Chance;
  readonly sessions: Map<string, WireSession>;
  readonly problems: string[];
  readonly replies: Record<string, number>;
  requests: number;
}

/** Starts the server on a free port. */
export async function startWireServer(): Promise<WireServer> {
  const conversations = new Map<string, ConversationState>();
  const server = createServer((request, response) => void serve(conversations, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    openConversation: (seed) => {
      const conversation: ConversationState = {
        chance: createChance(seed + 1_000_003),
        sessions: new Map(),
        problems: [],
        replies: {},
        requests: 0,
      };
      conversations.set(String(seed), conversation);
      return Object.assign(conversation, {
        baseUrl: (provider: string) => `http://127.0.0.1:${port}/${seed}/${provider}`,
      });
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(
  conversations: ReadonlyMap<string, ConversationState>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  const [, seed = "", provider = ""] = (request.url ?? "").split("/");
  const conversation = conversations.get(seed);
  const format = formats[provider];
  if (conversation === undefined || format === undefined) {
    response.writeHead(404).end();
    return;
  }
  const session = conversation.sessions.get(provider) ?? format.open();
  conversation.sessions.set(provider, session);
  conversation.requests += 1;
  for (const problem of session.findProblems(toObject(JSON.parse(text))))
    conversation.problems.push(`${provider}: ${problem}`);
  const reply = createServerReply(conversation.chance, conversation.requests);
  const name = reply.kind === "status" ? String(reply.status) : reply.kind;
  conversation.replies[name] = (conversation.replies[name] ?? 0) + 1;
  await sendReply(session, reply, response);
}

async function sendReply(session: WireSession, reply: ServerReply, response: ServerResponse): Promise<void> {
  if (reply.kind === "status") {
    response.writeHead(reply.status, { "content-type": "application/json", "retry-after-ms": "1" });
    response.end(session.createErrorBody(reply.status));
    return;
  }
  const frames = session.createFrames(reply.reply);
  response.writeHead(200, { "content-type": "text/event-stream" });
  switch (reply.kind) {
    case "reply":
      response.end(frames.join(""));
      return;
    case "slow":
      for (const each of frames) {
        response.write(each);
        await new Promise(setImmediate);
      }
      response.end();
      return;
    default: {
      const prefix = frames.slice(0, Math.min(reply.after, frames.length - 1)).join("");
      if (reply.kind === "short") response.end(prefix);
      else if (reply.kind === "garbage") response.end(`${prefix}${createFrame("{ no JSON")}`);
      else response.write(prefix, () => response.destroy());
    }
  }
}
