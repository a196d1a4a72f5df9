/** Body of a post of `useChat`: only what the server believes of it is checked and read. */
import type { Json } from "@statewright/core";
import * as z from "zod";
import type { UiContentPart } from "./ui-chunk.ts";

/** Posted message. Parts are read by {@link readContentParts} and {@link readAnswerPart}. */
export interface PostedMessage {
  readonly id: string;
  readonly role: "system" | "user" | "assistant";
  readonly parts: readonly { readonly type: string }[];
}

/** Body of a post. Other keys are what the page asks for: `contextOf` of the server decides about them. */
export interface UiRequest {
  /** Id of the thread. */
  readonly id: string;
  readonly messages: readonly PostedMessage[];
  readonly trigger: "submit-message" | "regenerate-message";
  readonly messageId?: string | undefined;
  readonly [asked: string]: unknown;
}

const id = z.string().min(1).max(1_000);

/** Schema of the body. */
export const uiRequest: z.ZodType<UiRequest> = z
  .object({
    id: z.string(),
    messages: z
      .array(
        z.object({
          id,
          role: z.enum(["system", "user", "assistant"]),
          parts: z.array(z.looseObject({ type: z.string() })).max(10_000),
        }),
      )
      .max(1_000),
    trigger: z.enum(["submit-message", "regenerate-message"]),
    messageId: id.optional(),
  })
  .catchall(z.json());

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const filePart = z.object({
  type: z.literal("file"),
  mediaType: z.string().min(1).max(200),
  url: z.string(),
  filename: z.string().max(400).optional(),
  providerReference: z.record(z.string(), z.string()).optional(),
});

/** Reads text and files of a user message; other parts are data of the page. Undefined for an invalid text or file. */
export function readContentParts({ parts }: PostedMessage): readonly UiContentPart[] | undefined {
  const read = parts
    .filter(({ type }) => type === "text" || type === "file")
    .map((part) => (part.type === "text" ? textPart : filePart).safeParse(part).data);
  return read.every((part) => part !== undefined) ? read : undefined;
}

/** Tool part, as far as it can be an answer. */
export interface AnswerPart {
  readonly type: string;
  readonly toolCallId: string;
  readonly state: string;
  readonly output?: Json | undefined;
  readonly errorText?: string | undefined;
  readonly approval?:
    | { readonly id: string; readonly approved?: boolean | undefined; readonly reason?: string | undefined }
    | undefined;
}

const answerPart: z.ZodType<AnswerPart> = z.object({
  type: z.string(),
  toolCallId: z.string(),
  state: z.string(),
  output: z.json().optional(),
  errorText: z.string().optional(),
  approval: z.object({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() }).optional(),
});

/** Reads a tool part; undefined for another part. */
export function readAnswerPart(part: PostedMessage["parts"][number]): AnswerPart | undefined {
  if (!part.type.startsWith("tool-") && part.type !== "dynamic-tool") return undefined;
  return answerPart.safeParse(part).data;
}
