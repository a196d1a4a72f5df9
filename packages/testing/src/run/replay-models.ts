/** Two runs of one thread hear the same from a model: what it said to the first, it says to the second in the same place. */
import type { Model, ModelReply } from "@statewright/core";
import { withNormalIds } from "./normalize-ids.ts";

/** What a model has said, by what it was asked; generated ids count for nothing. */
export type Heard = Map<string, ModelReply>;

/** The model; what it says is kept. */
export function hearing(model: Model, heard: Heard): Model {
  return {
    ...model,
    respond: async (request, options) => {
      const reply = await model.respond(request, options);
      heard.set(placeOf(request), reply);
      return reply;
    },
  };
}

/** A model that says again what was heard, and asks `model` for the rest. */
export function sayingAgain(model: Model, heard: Heard): Model {
  return {
    ...model,
    respond: async (request, options) => heard.get(placeOf(request)) ?? model.respond(request, options),
  };
}

function placeOf({ messages, instructions }: Parameters<Model["respond"]>[0]): string {
  return JSON.stringify(withNormalIds([instructions, messages]));
}
