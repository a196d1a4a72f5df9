/** A model that does what its acts say, one act a request, and a graph that asks it. */
import {
  type AssistantMessage,
  channel,
  defineGraph,
  defineState,
  END,
  type Message,
  type Middleware,
  type Model,
  type ModelCallOptions,
  type ModelCallPolicy,
  type ModelFailure,
  type ModelReply,
  type ModelRequest,
  type NodePolicy,
  START,
  StatewrightError,
} from "../../src/index.ts";
import { user } from "./tool-loop.ts";

/** What is done with one request. */
export type Act = (options: ModelCallOptions, request: ModelRequest) => Promise<ModelReply> | ModelReply;

export interface ActingModel extends Model {
  readonly requests: ModelRequest[];
}

/** A model with an act for each request; the last one again and again. */
export function acting(id: string, ...acts: readonly Act[]): ActingModel {
  const requests: ModelRequest[] = [];
  return {
    id,
    requests,
    respond: async (request, options) => {
      const act = acts[Math.min(requests.length, acts.length - 1)];
      requests.push(request);
      if (act === undefined) throw new Error("no act");
      return act(options, request);
    },
  };
}

/** Streams these words, then answers with them. */
export function says(...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    return reply(words.join(""));
  };
}

/** A whole answer. */
export function reply(text: string): ModelReply {
  return { content: [{ type: "text", text }], finish: "stop", usage: { inputTokens: 3, outputTokens: 2 } };
}

/** Streams these words, then fails. */
export function fails(details: Partial<ModelFailure>, ...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    throw failure(details);
  };
}

/** Streams these words, then says nothing more, whatever its signal says. */
export function hangs(...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    return new Promise(() => undefined);
  };
}

/** The failure of a model. */
export function failure(details: Partial<ModelFailure>): StatewrightError {
  return new StatewrightError("model_failed", {
    what: `it failed by ${details.kind ?? details.status ?? "chance"}`,
    next: "Look",
    details: { retryable: true, ...details },
  });
}

/** A graph of one node that asks a model once for each thing that a person says. */
export function asking(
  model: Model,
  call: ModelCallPolicy & { readonly middleware?: readonly Middleware[] } = {},
  more: { readonly policies?: readonly Middleware[]; readonly node?: NodePolicy } = {},
) {
  return defineGraph({
    name: "asking",
    state: defineState({ messages: channel.messages() }),
    ...(more.policies === undefined ? {} : { middleware: more.policies }),
  })
    .nodes({
      ask: {
        run: async (state, runtime) => ({
          messages: [await runtime.model({ model, request: { messages: state.messages, tools: [] }, ...call })],
        }),
        ...more.node,
      },
    })
    .edges({ [START]: "ask", ask: END });
}

/** The input that says a text. */
export function saying(text: string): { readonly messages: readonly Message[] } {
  return { messages: [user(text)] };
}

/** The last message, which a model gave. */
export function answerIn(state: { readonly messages: readonly Message[] }): AssistantMessage {
  return state.messages.at(-1) as AssistantMessage;
}
