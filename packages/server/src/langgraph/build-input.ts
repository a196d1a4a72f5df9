/** Inputs of clients as inputs of a graph. */
import type { JsonObject } from "@statewright/core";
import type { GraphDetails } from "../service/caller-service.ts";
import { createInputProblem } from "./create-problem.ts";
import { isRecord } from "./is-record.ts";
import { type GivenMessage, parseGivenMessages, toAnyMessage, toUserMessage } from "./parse-wire-message.ts";
import type { WireObject } from "./to-wire-message.ts";

/** Input of a run, and the id that the client gave its newest message. */
export interface BuiltInput {
  readonly input: WireObject;
  readonly messageId: string | undefined;
}

/**
 * Takes the input channels of a graph from an input and drops other keys. Messages of the user are converted; of other
 * messages only ids and roles remain, with which the service finds the messages that are new. Throws a problem for an
 * input without a channel of the graph.
 */
export function buildInput({ name, inputChannels }: GraphDetails, given: unknown): BuiltInput {
  if (!isRecord(given)) throw createInputProblem("/input", "expected an object with channels of the graph");
  const channels = inputChannels.filter((channel) => given[channel] !== undefined);
  if (channels.length === 0)
    throw createInputProblem("/input", `expected a channel of the graph "${name}": ${inputChannels.join(", ")}`);
  let messageId: string | undefined;
  const entries = channels.map((channel) => {
    if (channel !== "messages") return [channel, given[channel]] as const;
    const messages = parseGivenMessages(given[channel], "/input/messages");
    messageId = messages.findLast(({ role, id }) => role === "user" && id !== undefined)?.id;
    return [channel, messages.map(toPosted)] as const;
  });
  return { input: Object.fromEntries(entries), messageId };
}

function toPosted(given: GivenMessage, index: number): WireObject {
  const { role, id } = given;
  const pointer = `/input/messages/${index}`;
  if (role === "remove")
    throw createInputProblem(
      pointer,
      "expected a message, got a removal. Use POST /threads/{thread_id}/state to remove messages",
    );
  const identity = id === undefined ? {} : { id };
  if (role !== "user") return { role, content: [], ...identity };
  const { content } = toUserMessage(id ?? "", given, pointer);
  return { role, content, ...identity };
}

/**
 * Converts the values of an update of the state: channels of the state, with messages of all roles and removals.
 * Throws a problem for a channel that the state does not have, or that is private.
 */
export function buildUpdate({ schemas }: GraphDetails, given: unknown, pointer: string): JsonObject {
  if (!isRecord(given)) throw createInputProblem(pointer, "expected an object with channels of the state");
  const channels = listChannels(schemas.state);
  const entries = Object.entries(given).map(([channel, value]) => {
    if (channels !== undefined && !channels.includes(channel))
      throw createInputProblem(`${pointer}/${channel}`, `expected a channel of the state: ${channels.join(", ")}`);
    if (channel !== "messages") return [channel, value] as const;
    const messages = parseGivenMessages(value, `${pointer}/messages`);
    return [channel, messages.map((message, index) => toWrite(message, `${pointer}/messages/${index}`))] as const;
  });
  return Object.fromEntries(entries) as JsonObject;
}

function listChannels(schema: unknown): readonly string[] | undefined {
  return isRecord(schema) && isRecord(schema["properties"]) ? Object.keys(schema["properties"]) : undefined;
}

/** A message without an id gets one when it is saved. */
function toWrite(given: GivenMessage, pointer: string): unknown {
  if (given.role !== "remove") return toAnyMessage(given.id ?? "", given, pointer);
  if (given.id === undefined) throw createInputProblem(`${pointer}/id`, "expected the id of the message to remove");
  return { remove: given.id };
}
