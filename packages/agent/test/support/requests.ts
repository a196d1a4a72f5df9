/** The model request of an agent with given middleware that continues a conversation. */
import { createAgent } from "@statewright/agent";
import type { Message, Middleware, ModelRequest } from "@statewright/core";
import { say, scriptedModel } from "@statewright/testing";

/** Returns the request of the agent, and the conversation in its state at that time. */
export async function getModelRequest(
  messages: readonly Message[],
  middleware: readonly Middleware[],
  instructions = "Be brief.",
): Promise<{ readonly request: ModelRequest; readonly savedMessages: readonly Message[] }> {
  const model = scriptedModel(() => say("ok"));
  const result = await createAgent({ name: "desk", model, instructions, middleware }).run({ input: messages }).result;
  const [request] = model.requests;
  if (result.status !== "done" || request === undefined)
    throw new Error(`the run is ${result.status}`, { cause: "error" in result ? result.error : undefined });
  return { request, savedMessages: result.state.messages.slice(0, -1) };
}
