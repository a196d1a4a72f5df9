/** Streamed messages as wire events: chunks with metadata, and growing messages. */
import { type AssistantMessage, listToolCalls, type OpenWork, type RunEvent } from "@statewright/core";
import { toResponseMetadata, toUsageMetadata, toWireMessage, type WireObject } from "../to-wire-message.ts";
import { toWireValues } from "../to-wire-values.ts";
import type { LegacyEvent } from "./legacy-event.ts";
import {
  type EventPlace,
  type GraphMemory,
  getGraphMemory,
  getOpenMessage,
  type LegacyMemory,
  listPositions,
} from "./legacy-memory.ts";
import { createOpenMessage, hashText, type OpenMessage } from "./open-message.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

/** Streamed message with its memory, graph, id and node. */
interface Streamed {
  readonly memory: LegacyMemory;
  readonly graph: GraphMemory;
  readonly message: OpenMessage;
  readonly id: string;
  readonly node: string;
}

function findStreamed(memory: LegacyMemory, place: EventPlace, id: string, node: string): Streamed {
  const graph = getGraphMemory(memory, place);
  return { memory, graph, message: getOpenMessage(memory, graph, id, place.withinId), id, node };
}

/** Maps text or reasoning of a model to a chunk. */
export function mapDelta(event: EventOf<"message.delta">, memory: LegacyMemory): readonly LegacyEvent[] {
  const streamed = findStreamed(memory, event, event.messageId, event.node);
  return event.kind === "text" ? addText(streamed, event.text) : addReasoning(streamed, event.text);
}

/** Maps arguments of a tool call: first to a chunk with the name only, then to chunks with arguments only. */
export function mapCallDelta(event: EventOf<"message.call_delta">, memory: LegacyMemory): readonly LegacyEvent[] {
  const streamed = findStreamed(memory, event, event.messageId, event.node);
  return addCall(streamed, { callId: event.callId, tool: event.tool, argsText: event.argsText });
}

/** Maps the retraction of a text to the state; the next attempt has another message id. */
export function mapRetraction(event: EventOf<"message.retracted">, memory: LegacyMemory): readonly LegacyEvent[] {
  const { graph, message } = findStreamed(memory, event, event.messageId, event.node);
  return restartMessage(graph, message);
}

/** Maps a complete message to the rest of its text and calls, and to the reason of its end. */
export function mapCompletedMessage(
  event: EventPlace & { readonly message: AssistantMessage; readonly node: string },
  memory: LegacyMemory,
): readonly LegacyEvent[] {
  const { message } = event;
  const streamed = findStreamed(memory, event, message.id, event.node);
  streamed.graph.streamedIds.add(message.id);
  if (streamed.message.isComplete) return [];
  const calls = listToolCalls(message).map(({ id, name, args }) => ({
    callId: id,
    tool: name,
    argsText: JSON.stringify(args),
  }));
  const restart = restoreCalls(streamed.message, calls) ? [] : restartMessage(streamed.graph, streamed.message);
  const unsent = calls.filter(({ callId }) => !((streamed.message.calls.get(callId) ?? 0) > 0));
  const events = [
    ...restart,
    ...continueMessage(streamed, joinText(message), joinReasoning(message)),
    ...unsent.flatMap((call) => addCall(streamed, call)),
    ...endMessage(streamed, message),
  ];
  return events;
}

function joinText({ content }: AssistantMessage): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function joinReasoning({ content }: AssistantMessage): string {
  return content.map((block) => (block.type === "reasoning" ? block.text : "")).join("");
}

function endMessage(streamed: Streamed, message: AssistantMessage): readonly LegacyEvent[] {
  const { graph } = streamed;
  streamed.message.isComplete = true;
  const usage = message.usage === undefined ? {} : { usage_metadata: toUsageMetadata(message.usage) };
  const chunk = createChunk(streamed, "", { response_metadata: toResponseMetadata(message), ...usage });
  const whole = { ...toWireMessage(message), id: chunk[0]["id"] };
  return [
    toTupleEvent(streamed, chunk),
    { event: "messages/complete", mode: "messages", namespace: graph.namespace, data: [whole] },
  ];
}

/**
 * Maps the open messages of a run at work to the rest of each message. Sent text that is no longer true is taken back by
 * the state.
 */
export function mapOpenMessages({ messages }: OpenWork, memory: LegacyMemory): readonly LegacyEvent[] {
  const open = new Set<OpenMessage>();
  const events = messages.flatMap((found) => {
    const streamed = findStreamed(memory, found, found.id, found.node);
    open.add(streamed.message);
    restoreCalls(streamed.message, found.calls);
    const rest = [
      ...continueMessage(streamed, found.text, found.reasoning),
      ...found.calls.flatMap((call) => continueCall(streamed, call)),
    ];
    if (found.complete) {
      streamed.message.isComplete = true;
      streamed.graph.streamedIds.add(found.id);
    }
    return rest;
  });
  return [...dropVanished(memory, open), ...events];
}

/** Takes back messages that are no longer open: their text was retracted while the reader was away. */
function dropVanished(memory: LegacyMemory, open: ReadonlySet<OpenMessage>): readonly LegacyEvent[] {
  return [memory.root, ...memory.inner.values()].flatMap((graph) =>
    [...graph.messages.values()]
      .filter((message) => !open.has(message) && !message.isComplete && hasSent(message))
      .flatMap((message) => restartMessage(graph, message)),
  );
}

function hasSent({ sent, reasoningLength, calls, restoredCalls }: OpenMessage): boolean {
  return sent.length > 0 || reasoningLength > 0 || calls.size > 0 || restoredCalls.length > 0;
}

/** Sends the rest of a text; a text that does not continue the sent one begins anew under another id. */
function continueMessage(streamed: Streamed, text: string, reasoning: string): readonly LegacyEvent[] {
  const { message, graph } = streamed;
  const { length, hash } = message.sent;
  const continues = text.length >= length && hashText(text.slice(0, length)) === hash;
  const restart = continues ? [] : restartMessage(graph, message);
  if (message.isRestored) {
    message.isRestored = false;
    message.text = text.slice(0, message.sent.length);
  }
  const restOfReasoning = reasoning.slice(message.reasoningLength);
  const restOfText = text.slice(message.sent.length);
  return [
    ...restart,
    ...(restOfReasoning === "" ? [] : addReasoning(streamed, restOfReasoning)),
    ...(restOfText === "" ? [] : addText(streamed, restOfText)),
  ];
}

type CallArgs = OpenWork["messages"][number]["calls"][number];

/**
 * Names the calls of a restored message: an event id holds only the lengths of their arguments. Returns false if a
 * client has a part of the arguments of complete calls: the model may have written them in another form.
 */
function restoreCalls(message: OpenMessage, calls: readonly CallArgs[]): boolean {
  const lengths = message.restoredCalls;
  message.restoredCalls = [];
  calls.slice(0, lengths.length).forEach(({ callId }, index) => {
    message.calls.set(callId, lengths[index] ?? 0);
  });
  return lengths.every((length, index) => length === 0 || length === calls[index]?.argsText.length);
}

function continueCall(streamed: Streamed, { callId, tool, argsText }: CallArgs): readonly LegacyEvent[] {
  const sentLength = streamed.message.calls.get(callId);
  if (sentLength === undefined) return addCall(streamed, { callId, tool, argsText });
  const rest = argsText.slice(sentLength);
  return rest === "" ? [] : addCall(streamed, { callId, tool, argsText: rest });
}

/** Forgets what was sent of a message: the next text has another id, and the state without the message is sent again. */
function restartMessage(graph: GraphMemory, message: OpenMessage): readonly LegacyEvent[] {
  if (!hasSent(message)) return [];
  Object.assign(message, createOpenMessage(message.key, message.attempt + 1));
  return toValuesEvents(graph);
}

/** Returns the state of a graph as `values`; nothing while the state is unknown. */
export function toValuesEvents(graph: GraphMemory, extra: WireObject = {}): readonly LegacyEvent[] {
  if (graph.values === undefined) return [];
  return [
    { event: "values", mode: "values", namespace: graph.namespace, data: { ...toWireValues(graph.values), ...extra } },
  ];
}

function addText(streamed: Streamed, text: string): readonly LegacyEvent[] {
  const { message } = streamed;
  const isFirst = !hasSent(message);
  // Chunks of text after chunks of reasoning are blocks, because clients join a list and a text to one block per chunk.
  const content = message.reasoningLength > 0 ? [{ type: "text", text, index: 1 }] : text;
  message.text += text;
  message.sent = { length: message.sent.length + text.length, hash: hashText(text, message.sent.hash) };
  return sendChunk(streamed, createChunk(streamed, content), { isFirst });
}

function addReasoning(streamed: Streamed, text: string): readonly LegacyEvent[] {
  const isFirst = !hasSent(streamed.message);
  streamed.message.reasoningLength += text.length;
  return sendChunk(streamed, createChunk(streamed, [{ type: "reasoning", reasoning: text, index: 0 }]), { isFirst });
}

function addCall(streamed: Streamed, { callId, tool, argsText }: CallArgs): readonly LegacyEvent[] {
  const { message } = streamed;
  const isFirst = !hasSent(message);
  const events: LegacyEvent[] = [];
  const send = (fields: WireObject, sentLength: number): void => {
    message.calls.set(callId, sentLength);
    const index = [...message.calls.keys()].indexOf(callId);
    const chunk = createChunk(streamed, "", { tool_call_chunks: [{ index, ...fields, type: "tool_call_chunk" }] });
    events.push(...sendChunk(streamed, chunk, { isFirst: isFirst && events.length === 0 }));
  };
  const known = message.calls.get(callId);
  if (known === undefined) send({ id: callId, name: tool, args: "" }, 0);
  if (argsText !== "") send({ args: argsText }, (known ?? 0) + argsText.length);
  return events;
}

type Chunk = readonly [chunk: WireObject, metadata: WireObject];

function createChunk(
  { memory, graph, message, id, node }: Streamed,
  content: string | readonly WireObject[],
  fields: WireObject = {},
): Chunk {
  const wireId = message.attempt === 1 ? id : `${id}~${message.attempt}`;
  const parts = { content, tool_call_chunks: [], additional_kwargs: {}, response_metadata: {} };
  return [{ type: "AIMessageChunk", id: wireId, ...parts, ...fields }, createMetadata(memory, graph, node)];
}

/** Returns the metadata of a message: the place of its node. */
export function createMetadata({ run }: LegacyMemory, { namespace, step }: GraphMemory, node: string): WireObject {
  const checkpointNs = namespace.slice(1);
  return {
    ...{ run_id: run.run, thread_id: run.thread, graph_id: run.graph, assistant_id: run.assistant, tags: [] },
    ...{ langgraph_node: node, langgraph_step: step + 1, langgraph_checkpoint_ns: checkpointNs },
  };
}

function toTupleEvent({ memory, graph }: Streamed, chunk: Chunk): LegacyEvent {
  const { namespace } = graph;
  return { event: "messages", mode: "messages-tuple", namespace, data: chunk, positions: listPositions(memory) };
}

function sendChunk(
  streamed: Streamed,
  chunk: Chunk,
  { isFirst }: { readonly isFirst: boolean },
): readonly LegacyEvent[] {
  const { graph, message } = streamed;
  const { namespace } = graph;
  const id = String(chunk[0]["id"]);
  const partial = {
    type: "ai",
    id,
    content: message.text,
    tool_calls: [],
    additional_kwargs: {},
    response_metadata: {},
  };
  const metadata = { [id]: { metadata: chunk[1] } };
  return [
    toTupleEvent(streamed, chunk),
    ...(isFirst ? [{ event: "messages/metadata", mode: "messages", namespace, data: metadata } as const] : []),
    { event: "messages/partial", mode: "messages", namespace, data: [partial] },
  ];
}
