/** A server on the loopback in the place of providers: it keeps their rules, answers by chance, and misbehaves. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Chance, chanceOf } from "@statewright/testing";
import { anthropicFormat } from "./anthropic-format.ts";
import { googleFormat } from "./google-format.ts";
import { openaiChatFormat } from "./openai-chat-format.ts";
import { openaiResponsesFormat } from "./openai-responses-format.ts";
import { type Fate, nextFate } from "./random-reply.ts";
import { frame, objectOf, type WireFormat, type WireSession } from "./wire-format.ts";

/** The providers whose formats are spoken. */
export const formats: Readonly<Record<string, WireFormat>> = {
  anthropic: anthropicFormat,
  chat: openaiChatFormat,
  responses: openaiResponsesFormat,
  google: googleFormat,
};

/** What providers saw of one conversation. */
export interface WireConversation {
  /** Where clients find a provider: the base of its addresses. */
  readonly baseUrl: (provider: string) => string;
  readonly requests: number;
  /** What a provider would have refused; the request is answered all the same. */
  readonly problems: readonly string[];
  readonly fates: Readonly<Record<string, number>>;
}

export interface WireServer {
  readonly conversation: (seed: number) => WireConversation;
  readonly close: () => Promise<void>;
}

interface Talk {
  readonly chance: Chance;
  readonly sessions: Map<string, WireSession>;
  readonly problems: string[];
  readonly fates: Record<string, number>;
  requests: number;
}

/** Start it on a free port. */
export async function startWireServer(): Promise<WireServer> {
  const talks = new Map<string, Talk>();
  const server = createServer((request, response) => void serve(talks, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    conversation: (seed) => {
      const talk: Talk = {
        chance: chanceOf(seed + 1_000_003),
        sessions: new Map(),
        problems: [],
        fates: {},
        requests: 0,
      };
      talks.set(String(seed), talk);
      return Object.assign(talk, { baseUrl: (provider: string) => `http://127.0.0.1:${port}/${seed}/${provider}` });
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serve(
  talks: ReadonlyMap<string, Talk>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  const [, seed = "", provider = ""] = (request.url ?? "").split("/");
  const talk = talks.get(seed);
  const format = formats[provider];
  if (talk === undefined || format === undefined) {
    response.writeHead(404).end();
    return;
  }
  const session = talk.sessions.get(provider) ?? format.open();
  talk.sessions.set(provider, session);
  talk.requests += 1;
  for (const problem of session.problems(objectOf(JSON.parse(text)))) talk.problems.push(`${provider}: ${problem}`);
  const fate = nextFate(talk.chance, talk.requests);
  const name = fate.kind === "status" ? String(fate.status) : fate.kind;
  talk.fates[name] = (talk.fates[name] ?? 0) + 1;
  await answer(session, fate, response);
}

async function answer(session: WireSession, fate: Fate, response: ServerResponse): Promise<void> {
  if (fate.kind === "status") {
    response.writeHead(fate.status, { "content-type": "application/json", "retry-after-ms": "1" });
    response.end(session.refusal(fate.status));
    return;
  }
  const frames = session.frames(fate.reply);
  response.writeHead(200, { "content-type": "text/event-stream" });
  switch (fate.kind) {
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
      const begun = frames.slice(0, Math.min(fate.after, frames.length - 1)).join("");
      if (fate.kind === "short") response.end(begun);
      else if (fate.kind === "garbage") response.end(`${begun}${frame("{ no JSON")}`);
      else response.write(begun, () => response.destroy());
    }
  }
}
