/** Chunks and messages of the AI SDK UI message stream, version 1, as far as the server writes them. */
import type { Json, JsonObject, Usage } from "@statewright/core";

/** Reason at the end of a message. Never `interrupted`: clients do not continue such a message by themselves. */
export type UiFinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";

/** Metadata of a message: its thread and run, and the usage of its model calls at the end. */
export interface UiMetadata {
  readonly threadId?: string;
  readonly runId?: string;
  readonly usage?: Usage;
}

/** Text or file of a user message. */
export type UiContentPart =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "file";
      readonly mediaType: string;
      readonly url: string;
      readonly filename?: string | undefined;
      readonly providerReference?: Readonly<Record<string, string>> | undefined;
    };

interface ToolFields {
  readonly toolCallId: string;
}

/** Chunk of a message. */
export type UiChunk =
  | { readonly type: "start"; readonly messageId: string; readonly messageMetadata: UiMetadata }
  | { readonly type: "finish"; readonly finishReason: UiFinishReason; readonly messageMetadata?: UiMetadata }
  | { readonly type: "abort"; readonly reason?: string }
  | { readonly type: "error"; readonly errorText: string }
  | { readonly type: "start-step" | "finish-step" | "reset-step" }
  | { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; readonly id: string }
  | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "file"; readonly mediaType: string; readonly url: string }
  | ({ readonly type: "tool-input-start"; readonly toolName: string } & ToolFields)
  | ({ readonly type: "tool-input-delta"; readonly inputTextDelta: string } & ToolFields)
  | ({
      readonly type: "tool-input-available";
      readonly toolName: string;
      readonly input: unknown;
      readonly toolMetadata?: JsonObject;
    } & ToolFields)
  | ({
      readonly type: "tool-input-error";
      readonly toolName: string;
      readonly input: unknown;
      readonly errorText: string;
    } & ToolFields)
  | ({
      readonly type: "tool-approval-request";
      readonly approvalId: string;
      readonly reason?: string;
      readonly isAutomatic?: true;
    } & ToolFields)
  | {
      readonly type: "tool-approval-response";
      readonly approvalId: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | ({ readonly type: "tool-output-available"; readonly output: Json; readonly preliminary?: true } & ToolFields)
  | ({ readonly type: "tool-output-error"; readonly errorText: string } & ToolFields)
  | ({ readonly type: "tool-output-denied" } & ToolFields)
  | { readonly type: "steering-message"; readonly id: string; readonly parts: readonly UiContentPart[] }
  | {
      readonly type: `data-${string}`;
      readonly id?: string;
      readonly data: unknown;
      readonly transient?: true;
    };

/** Part of a message, as clients keep it. */
export type UiPart = { readonly type: string } & Readonly<Record<string, unknown>>;

/** Message of the conversation. */
export interface UiMessage {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly metadata?: UiMetadata;
  readonly parts: readonly UiPart[];
}
