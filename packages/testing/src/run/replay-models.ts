/**
 * Replayed models: a second run of a thread receives the recorded model replies of the first run for equal requests.
 */
import type { Model, ModelReply } from "@statewright/core";
import { normalizeIds } from "./normalize-ids.ts";

/** Recorded model replies by request; generated ids are normalized. */
export type RecordedReplies = Map<string, ModelReply>;

/** Returns the model with its replies recorded. */
export function recordReplies(model: Model, replies: RecordedReplies): Model {
  return {
    ...model,
    respond: async (request, options) => {
      const reply = await model.respond(request, options);
      replies.set(toRequestKey(request), reply);
      return reply;
    },
  };
}

/** Returns a model that replays recorded replies and sends other requests to `model`. */
export function replayReplies(model: Model, replies: RecordedReplies): Model {
  return {
    ...model,
    respond: async (request, options) => replies.get(toRequestKey(request)) ?? model.respond(request, options),
  };
}

function toRequestKey({ messages, instructions }: Parameters<Model["respond"]>[0]): string {
  return JSON.stringify(normalizeIds([instructions, messages]));
}
