/** A model with one act per request, and a graph that requests it. */
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

/** Handles one request of the model. */
export type Act = (options: ModelCallOptions, request: ModelRequest) => Promise<ModelReply> | ModelReply;

export interface ActingModel extends Model {
  readonly requests: ModelRequest[];
}

/** Creates a model with one act per request; the last act repeats. */
export function createActingModel(id: string, ...acts: readonly Act[]): ActingModel {
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

/** Streams these words and returns them as the reply. */
export function answerWith(...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    return createReply(words.join(""));
  };
}

/** Creates a complete reply. */
export function createReply(text: string): ModelReply {
  return { content: [{ type: "text", text }], finish: "stop", usage: { inputTokens: 3, outputTokens: 2 } };
}

/** Streams these words and fails. */
export function failWith(details: Partial<ModelFailure>, ...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    throw createModelFailure(details);
  };
}

/** Streams these words and never settles, even when its signal fires. */
export function hangAfter(...words: readonly string[]): Act {
  return ({ delta }) => {
    for (const text of words) delta?.({ type: "text", text });
    return new Promise(() => undefined);
  };
}

/** Creates a model failure. */
export function createModelFailure(details: Partial<ModelFailure>): StatewrightError {
  return new StatewrightError("model_failed", {
    what: `it failed by ${details.kind ?? details.status ?? "chance"}`,
    next: "Look",
    details: { retryable: true, ...details },
  });
}

/** Creates a graph of one node that requests the model once per user message. */
export function createAskingGraph(
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

/** Creates an input with one user message. */
export function createUserInput(text: string): { readonly messages: readonly Message[] } {
  return { messages: [user(text)] };
}

/** Returns the last message, an assistant message. */
export function getLastAnswer(state: { readonly messages: readonly Message[] }): AssistantMessage {
  return state.messages.at(-1) as AssistantMessage;
}
