/** Streamed messages as frames: start, content blocks, finish. */
import type { AssistantMessage, OpenWork, RunEvent, ToolCallBlock } from "@statewright/core";
import { toResponseMetadata, toUsageMetadata, type WireObject } from "../to-wire-message.ts";
import { cutGrowing, cutWords } from "./cut-chunks.ts";
import { hashIdentity } from "./hash-identity.ts";
import type { V2Frame } from "./v2-frame.ts";
import {
  getV2Graph,
  getV2Message,
  toWorkKey,
  type V2Block,
  type V2Graph,
  type V2Memory,
  type V2Message,
  type V2Place,
} from "./v2-memory.ts";
import { createValuesFrame } from "./values-frame.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

/** A message in the stream. */
interface Streamed {
  readonly graph: V2Graph;
  readonly message: V2Message;
  readonly key: string;
  readonly at: number;
}

/** Message of an event. */
interface MessagePlace extends V2Place {
  readonly id: string;
  readonly node: string;
  readonly at: number;
}

function findStreamed(memory: V2Memory, place: MessagePlace): Streamed {
  const graph = getV2Graph(memory, place);
  const message = getV2Message(memory, graph, place);
  return { graph, message, key: toWorkKey(memory, graph, place.id), at: place.at };
}

/** Text or reasoning of a model. */
export function mapDelta(event: EventOf<"message.delta">, memory: V2Memory): readonly V2Frame[] {
  const streamed = findStreamed(memory, { ...event, id: event.messageId });
  const opened = openBlock(streamed, { kind: event.kind, callId: "", tool: "" });
  opened.block.text += event.text;
  return [...opened.frames, ...sendWhole(streamed, opened.block)];
}

/** Arguments of a tool call. */
export function mapCallDelta(event: EventOf<"message.call_delta">, memory: V2Memory): readonly V2Frame[] {
  const streamed = findStreamed(memory, { ...event, id: event.messageId });
  const opened = openBlock(streamed, { kind: "call", callId: event.callId, tool: event.tool });
  opened.block.text += event.argsText;
  return [...opened.frames, ...startBlock(streamed, opened.block), ...sendWhole(streamed, opened.block)];
}

/** The text of a failed request is taken back: an error on the message, and the state without the message. */
export function mapRetraction(event: EventOf<"message.retracted">, memory: V2Memory): readonly V2Frame[] {
  const streamed = findStreamed(memory, { ...event, id: event.messageId });
  return voidMessage(streamed, streamed.message.failures + 1);
}

/** A failed request: the next text is that of another request. */
export function noteFailure(event: EventOf<"model.retried">, memory: V2Memory): void {
  const { message } = findStreamed(memory, { ...event, id: event.messageId });
  message.failures = Math.max(message.failures, event.attempt);
}

function voidMessage(streamed: Streamed, failures: number): readonly V2Frame[] {
  const { message, graph, at } = streamed;
  message.failures = failures;
  message.blocks.length = 0;
  Object.assign(message, { isStarted: false, isFinished: false });
  const error = createVoid(streamed);
  message.isVoided = true;
  const values = createValuesFrame(graph, at);
  return values === undefined ? [error] : [error, { ...values, id: toFrameId(streamed, "w") }];
}

function createVoid(streamed: Streamed): V2Frame {
  return createFrame(streamed, "v", { event: "error", message: "The model begins again.", code: "retracted" });
}

/** A whole message: what was not sent of it, and its end. */
export function mapCompletedMessage(event: EventOf<"message.completed">, memory: V2Memory): readonly V2Frame[] {
  return finishMessage(findStreamed(memory, { ...event, id: event.message.id }), event.message);
}

/** Message of a commit that this reader has not seen to its end. */
export function mapCommittedMessage(
  message: AssistantMessage,
  place: V2Place & { readonly node: string; readonly at: number },
  memory: V2Memory,
): readonly V2Frame[] {
  return finishMessage(findStreamed(memory, { ...place, id: message.id }), message);
}

/**
 * What is open in the run at work: the rest of each message, and an error on those whose requests have failed. A message
 * that is not open there stays: its rest comes with its commit.
 */
export function mapOpenMessages(event: EventOf<"snapshot">, memory: V2Memory): readonly V2Frame[] {
  const { messages, retried = [], at } = event;
  const voided = retried.flatMap((message) => voidRetried(findStreamed(memory, { ...message, at }), message));
  const frames = messages.flatMap((found) => continueMessage(findStreamed(memory, { ...found, at }), found));
  return [...voided, ...frames];
}

/** Text of requests that have failed while the reader was away is taken back. */
function voidRetried(streamed: Streamed, { failedRequests }: { readonly failedRequests: number }): readonly V2Frame[] {
  const { message } = streamed;
  if (message.failures >= failedRequests) return [];
  if (message.isStarted) return voidMessage(streamed, failedRequests);
  message.failures = failedRequests;
  return [];
}

function continueMessage(streamed: Streamed, found: OpenWork["messages"][number]): readonly V2Frame[] {
  const parts: readonly BlockText[] = [
    { kind: "reasoning", callId: "", tool: "", text: found.reasoning },
    { kind: "text", callId: "", tool: "", text: found.text },
    ...found.calls.map(({ callId, tool, argsText }) => ({ kind: "call", callId, tool, text: argsText }) as const),
  ];
  const isOther = !continuesSent(streamed, parts);
  const restart = isOther ? voidMessage(streamed, streamed.message.failures + 1) : [];
  return [...restart, ...parts.flatMap((part) => growBlock(streamed, part))];
}

/** Returns true if the texts of blocks begin with what was sent of them. */
function continuesSent({ message }: Streamed, parts: readonly BlockText[]): boolean {
  return message.blocks.every((block) => {
    const part = parts.find(({ kind, callId }) => kind === block.kind && callId === block.callId);
    return part === undefined || part.text.startsWith(block.text.slice(0, block.sent));
  });
}

type BlockPlace = Pick<V2Block, "kind" | "callId" | "tool">;
type BlockText = Pick<V2Block, "kind" | "callId" | "tool" | "text">;

/** Sends the rest of a block. A text that does not continue what was sent stands in the end of the block. */
function growBlock(streamed: Streamed, part: BlockText): readonly V2Frame[] {
  if (part.text === "" && part.kind !== "call") return [];
  const { block, frames } = openBlock(streamed, part);
  if (part.text.startsWith(block.text.slice(0, block.sent))) block.text = part.text;
  const start = part.kind === "call" ? startBlock(streamed, block) : [];
  return [...frames, ...start, ...sendWhole(streamed, block)];
}

/** Finds a block of the message, or opens the block and ends the blocks of text before. */
function openBlock(
  streamed: Streamed,
  { kind, callId, tool }: BlockPlace,
): { readonly block: V2Block; readonly frames: readonly V2Frame[] } {
  const { blocks } = streamed.message;
  const known = blocks.find((block) => block.kind === kind && block.callId === callId);
  if (known !== undefined) return { block: known, frames: [] };
  const block: V2Block = { kind, callId, tool, text: "", sent: 0, isStarted: false, isFinished: false };
  const ended = blocks.filter((before) => before.kind !== "call" && !before.isFinished);
  const frames = ended.flatMap((before) => finishBlock(streamed, before, toTextContent(before)));
  blocks.push(block);
  return { block, frames };
}

function toTextContent({ kind, text }: Pick<V2Block, "kind" | "text">): WireObject {
  return kind === "text" ? { type: "text", text } : { type: "reasoning", reasoning: text };
}

/** Sends the whole chunks of a block that were not sent. */
function sendWhole(streamed: Streamed, block: V2Block): readonly V2Frame[] {
  const ends = block.kind === "call" ? cutGrowing(block.text, block.sent) : cutWords(block.text, block.sent);
  return ends.flatMap((end) => sendChunk(streamed, block, end));
}

function sendChunk(streamed: Streamed, block: V2Block, end: number): readonly V2Frame[] {
  const start = startBlock(streamed, block);
  const text = block.text.slice(block.sent, end);
  block.sent = end;
  const label = toLabel(streamed, block);
  const part = `${label}.${end}.${hashIdentity(text)}`;
  const delta = createDelta(block, text, end);
  return [...start, createBlockFrame(streamed, block, part, { event: "content-block-delta", delta })];
}

function createDelta({ kind, text: whole }: V2Block, text: string, end: number): WireObject {
  switch (kind) {
    case "text":
      return { type: "text-delta", text };
    case "reasoning":
      return { type: "reasoning-delta", reasoning: text };
    case "call":
      // Older clients do not know the delta of arguments: they replace the arguments so far.
      return { type: "block-delta", fields: { type: "tool_call_chunk", args: whole.slice(0, end) } };
  }
}

function startMessage(streamed: Streamed): readonly V2Frame[] {
  const { message } = streamed;
  if (message.isStarted) return [];
  message.isStarted = true;
  const isAgain = (message.failures > 0 || message.isRecovering) && !message.isVoided;
  const start = createFrame(streamed, "s", { event: "message-start", role: "ai", id: message.id });
  return isAgain ? [createVoid(streamed), start] : [start];
}

function startBlock(streamed: Streamed, block: V2Block): readonly V2Frame[] {
  if (block.isStarted) return [];
  const start = startMessage(streamed);
  block.isStarted = true;
  const { kind, callId: id, tool: name } = block;
  const content = kind === "call" ? { type: "tool_call_chunk", id, name, args: "" } : toTextContent({ kind, text: "" });
  const first = kind === "call" ? "" : `.${hashIdentity(block.text.slice(0, cutWords(block.text, 0)[0]))}`;
  const part = `${toLabel(streamed, block)}.s${first}`;
  return [...start, createBlockFrame(streamed, block, part, { event: "content-block-start", content })];
}

/** Sends the rest of a block and its end. `content` is the whole block. */
function finishBlock(streamed: Streamed, block: V2Block, content: WireObject): readonly V2Frame[] {
  const rest = block.kind !== "call" && block.sent < block.text.length;
  const frames = rest ? sendChunk(streamed, block, block.text.length) : startBlock(streamed, block);
  block.isFinished = true;
  const part = `${toLabel(streamed, block)}.f.${hashIdentity(content)}`;
  return [...frames, createBlockFrame(streamed, block, part, { event: "content-block-finish", content })];
}

/** Sends what was not sent of a message, and its end. */
function finishMessage(streamed: Streamed, message: AssistantMessage): readonly V2Frame[] {
  if (streamed.message.isFinished) return [];
  const parts = listParts(message);
  const failures = countFailures(message);
  const isOther = streamed.message.failures < failures && !continuesSent(streamed, parts);
  const voided = isOther ? voidMessage(streamed, failures) : [];
  if (!streamed.message.isStarted) streamed.message.failures = failures;
  // The end of a call has its arguments: what was not streamed of them is not sent twice.
  const finished = parts.flatMap((part) => {
    const grown = part.kind === "call" ? [] : growBlock(streamed, part);
    const { block, frames } = openBlock(streamed, part);
    const isSent = block.isFinished && block.text === part.text;
    return [...grown, ...frames, ...(isSent ? [] : finishBlock(streamed, block, toContent(part, message)))];
  });
  const start = startMessage(streamed);
  streamed.message.isFinished = true;
  const { usage } = message;
  const end = createFrame(streamed, "e", {
    event: "message-finish",
    reason: toResponseMetadata(message)["finish_reason"],
    ...(usage === undefined ? {} : { usage: toUsageMetadata(usage) }),
    responseMetadata: toResponseMetadata(message),
  });
  return [...voided, ...finished, ...start, ...mapFiles(streamed, message), end];
}

/** Number of failed requests for the message: equal to the number in `model.retried`. */
function countFailures({ failedAttempts = [] }: AssistantMessage): number {
  return failedAttempts.filter(({ kind }) => kind !== "auxiliary").length;
}

/** Blocks of a message: text and reasoning are a block each, however often the model has changed between them. */
function listParts({ content }: AssistantMessage): readonly BlockText[] {
  const parts: { -readonly [Key in keyof BlockText]: BlockText[Key] }[] = [];
  for (const block of content) {
    if (block.type === "call")
      parts.push({ kind: "call", callId: block.id, tool: block.name, text: block.raw ?? JSON.stringify(block.args) });
    if (block.type !== "text" && block.type !== "reasoning") continue;
    const known = parts.find(({ kind }) => kind === block.type);
    if (known === undefined) parts.push({ kind: block.type, callId: "", tool: "", text: block.text });
    else known.text += block.text;
  }
  return parts;
}

function toContent(part: BlockText, { content }: AssistantMessage): WireObject {
  if (part.kind !== "call") return toTextContent(part);
  const call = content.find((block): block is ToolCallBlock => block.type === "call" && block.id === part.callId);
  const { callId: id, tool: name } = part;
  if (call?.raw !== undefined)
    return { type: "invalid_tool_call", id, name, args: call.raw, error: "The arguments are not a JSON object." };
  return { type: "tool_call", id, name, args: call?.args ?? {} };
}

/** Files that a model has made. */
function mapFiles(streamed: Streamed, { content }: AssistantMessage): readonly V2Frame[] {
  const files = content.filter((block) => block.type === "file");
  return files.flatMap(({ mimeType, data, url }, number) => {
    const index = streamed.message.blocks.length + number;
    const source = { ...(data === undefined ? {} : { base64: data }), ...(url === undefined ? {} : { url }) };
    const block = { type: toMediaType(mimeType), mime_type: mimeType, ...source };
    return [
      createFrame(streamed, `m${number}.s`, { event: "content-block-start", index, content: block }),
      createFrame(streamed, `m${number}.f`, { event: "content-block-finish", index, content: block }),
    ];
  });
}

function toMediaType(mimeType: string): string {
  const [type = ""] = mimeType.split("/");
  return ["image", "audio", "video"].includes(type) ? type : "file";
}

/** Label of a block, the same whichever block came first. */
function toLabel({ message }: Streamed, block: V2Block): string {
  if (block.kind !== "call") return block.kind === "text" ? "t" : "r";
  return `c${message.blocks.filter(({ kind }) => kind === "call").indexOf(block)}`;
}

function createBlockFrame(streamed: Streamed, block: V2Block, part: string, data: WireObject): V2Frame {
  const { event, ...rest } = data;
  return createFrame(streamed, part, { event, index: streamed.message.blocks.indexOf(block), ...rest });
}

/** Frames of a message have its id as `run_id`: clients keep messages apart that a node streams at the same time. */
function createFrame(streamed: Streamed, part: string, data: WireObject): V2Frame {
  const { graph, message, at } = streamed;
  return {
    ...{ method: "messages", channel: "messages", namespace: graph.namespace, at, node: message.node },
    data: { ...data, run_id: message.id },
    id: toFrameId(streamed, part),
  };
}

function toFrameId({ key, message }: Streamed, part: string): string {
  return `m.${key}.${message.epoch}-${message.failures}.${part}`;
}
