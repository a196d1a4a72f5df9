/** Parts of an assistant message in the memory of a mapper: the chunks that create a part, and its form in a message. */
import type { Json, JsonObject } from "@statewright/core";
import type { UiChunk, UiContentPart, UiPart } from "./ui-chunk.ts";

/** Text or reasoning of a model message. */
export interface TextPart {
  readonly kind: "text" | "reasoning";
  readonly id: string;
  /** Message of the model. */
  readonly source: string;
  text: string;
  isDone: boolean;
}

/** File that a model has generated. */
export interface FilePart {
  readonly kind: "file";
  readonly source: string;
  readonly mediaType: string;
  readonly url: string;
}

/** Answer of a person to an approval. */
export interface ApprovalResponse {
  readonly approved: boolean;
  readonly reason?: string;
}

/** Approval that a call waits for, or has waited for. */
export interface PartApproval {
  readonly id: string;
  readonly reason?: string;
  /** True for a decision without a person. */
  readonly isAutomatic?: true;
  response?: ApprovalResponse;
}

/** Result of a call. */
export type CallResult =
  | { readonly kind: "output"; readonly output: Json; readonly isPreliminary: boolean }
  | { readonly kind: "error"; readonly text: string }
  | { readonly kind: "denied" };

/** Tool call of a model, or an interrupt that clients answer like a tool call. */
export interface CallPart {
  readonly kind: "call";
  /** Message of the model; undefined for an interrupt that belongs to no shown call. */
  readonly source: string | undefined;
  readonly callId: string;
  readonly name: string;
  argsText: string;
  /** Arguments; undefined while the model streams them. */
  input: { readonly value: Json; readonly isInvalid: boolean } | undefined;
  /** True when the call runs, waits for a person, or has a result: clients see its arguments as available. */
  isShown: boolean;
  readonly metadata?: JsonObject;
  approval?: PartApproval;
  result?: CallResult;
}

/** Data of a node or of a channel. */
export interface DataPart {
  readonly kind: "data";
  readonly name: string;
  readonly id?: string;
  data: unknown;
}

/** Message of a user that was delivered while the run was at work. */
export interface SteeringPart {
  readonly kind: "steering";
  readonly id: string;
  readonly parts: readonly UiContentPart[];
}

/** Part of an assistant message. */
export type MessagePart = TextPart | FilePart | CallPart | DataPart | SteeringPart;

/** Error text of a call whose arguments are no JSON object. */
const invalidArgsText = "The arguments are not a JSON object.";

/** Lists the chunks that create a part in its present form. */
export function listPartChunks(part: MessagePart): readonly UiChunk[] {
  switch (part.kind) {
    case "text":
    case "reasoning":
      return [
        { type: `${part.kind}-start`, id: part.id },
        ...(part.text === "" ? [] : [{ type: `${part.kind}-delta`, id: part.id, delta: part.text } as const]),
        ...(part.isDone ? [{ type: `${part.kind}-end`, id: part.id } as const] : []),
      ];
    case "file":
      return [{ type: "file", mediaType: part.mediaType, url: part.url }];
    case "data":
      return [{ type: `data-${part.name}`, ...(part.id === undefined ? {} : { id: part.id }), data: part.data }];
    case "steering":
      return [{ type: "steering-message", id: part.id, parts: part.parts }];
    case "call":
      return [...listInputChunks(part), ...listApprovalChunks(part), ...listResultChunks(part)];
  }
}

function listInputChunks(part: CallPart): readonly UiChunk[] {
  if (part.isShown) return [createInputChunk(part)];
  const { callId: toolCallId, name: toolName, argsText } = part;
  const text = argsText === "" && part.input !== undefined ? JSON.stringify(part.input.value) : argsText;
  return [
    { type: "tool-input-start", toolCallId, toolName },
    ...(text === "" ? [] : [{ type: "tool-input-delta", toolCallId, inputTextDelta: text } as const]),
  ];
}

/** Creates the chunk that makes the arguments of a call available. */
export function createInputChunk({ callId: toolCallId, name: toolName, input, metadata }: CallPart): UiChunk {
  const value = input?.value ?? {};
  if (input?.isInvalid === true)
    return { type: "tool-input-error", toolCallId, toolName, input: value, errorText: invalidArgsText };
  return {
    type: "tool-input-available",
    toolCallId,
    toolName,
    input: value,
    ...(metadata === undefined ? {} : { toolMetadata: metadata }),
  };
}

/** Lists the request and the response of an approval. */
export function listApprovalChunks({ callId: toolCallId, approval }: CallPart): readonly UiChunk[] {
  if (approval === undefined) return [];
  const { id: approvalId, reason, isAutomatic } = approval;
  return [
    {
      type: "tool-approval-request",
      approvalId,
      toolCallId,
      ...(reason === undefined ? {} : { reason }),
      ...(isAutomatic === undefined ? {} : { isAutomatic }),
    },
    ...(approval.response === undefined ? [] : [createResponseChunk(approvalId, approval.response)]),
  ];
}

/** Creates the chunk of an answered approval. */
export function createResponseChunk(approvalId: string, { approved, reason }: ApprovalResponse): UiChunk {
  return { type: "tool-approval-response", approvalId, approved, ...(reason === undefined ? {} : { reason }) };
}

/** Lists the chunk of the result of a call, if it has one. */
export function listResultChunks({ callId: toolCallId, result }: CallPart): readonly UiChunk[] {
  if (result === undefined) return [];
  if (result.kind === "denied") return [{ type: "tool-output-denied", toolCallId }];
  if (result.kind === "error") return [{ type: "tool-output-error", toolCallId, errorText: result.text }];
  const { output, isPreliminary } = result;
  return [{ type: "tool-output-available", toolCallId, output, ...(isPreliminary ? { preliminary: true } : {}) }];
}

/** Converts a part to its form in a message. */
export function toUiPart(part: MessagePart): UiPart {
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text, state: part.isDone ? "done" : "streaming" };
    case "reasoning":
      return { type: "reasoning", id: part.id, text: part.text, state: part.isDone ? "done" : "streaming" };
    case "file":
      return { type: "file", mediaType: part.mediaType, url: part.url };
    case "data":
      return { type: `data-${part.name}`, ...(part.id === undefined ? {} : { id: part.id }), data: part.data };
    case "steering":
      return { type: "steering-message", id: part.id, parts: part.parts };
    case "call":
      return toToolPart(part);
  }
}

function toToolPart(part: CallPart): UiPart {
  const { callId: toolCallId, name, input, approval, result, metadata } = part;
  const head = {
    type: `tool-${name}`,
    toolCallId,
    ...(metadata === undefined ? {} : { toolMetadata: metadata }),
  };
  const answer = approval === undefined ? {} : { approval: toUiApproval(approval) };
  if (!part.isShown)
    return { ...head, state: "input-streaming", rawInput: part.argsText, ...(input && { input: input.value }) };
  const known = { ...head, input: input?.value ?? {} };
  if (result?.kind === "denied") return { ...known, state: "output-denied", ...answer };
  if (result?.kind === "error") return { ...known, state: "output-error", errorText: result.text, ...answer };
  if (result?.kind === "output")
    return {
      ...known,
      state: "output-available",
      output: result.output,
      ...(result.isPreliminary ? { preliminary: true } : {}),
      ...answer,
    };
  if (input?.isInvalid === true) return { ...known, state: "output-error", errorText: invalidArgsText };
  if (approval === undefined) return { ...known, state: "input-available" };
  return { ...known, state: approval.response === undefined ? "approval-requested" : "approval-responded", ...answer };
}

function toUiApproval({ id, reason, isAutomatic, response }: PartApproval): Readonly<Record<string, unknown>> {
  return {
    id,
    ...(reason === undefined ? {} : { requestReason: reason }),
    ...(isAutomatic === undefined ? {} : { isAutomatic }),
    ...response,
  };
}
