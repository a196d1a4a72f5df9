/** Schemas of messages from clients: messages of the user only. */
import * as z from "zod";
import { id, nameSchema } from "./common.ts";

/** Content block of a message of the user. */
export type WireUserBlock =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "image" | "file";
      readonly mimeType: string;
      readonly data?: string | undefined;
      readonly url?: string | undefined;
      readonly uploaded?: Readonly<Record<string, string>> | undefined;
      readonly name?: string | undefined;
    };

/** Message of the user. */
export interface WireUserMessage {
  readonly role: "user";
  readonly id?: string | undefined;
  readonly content: string | readonly WireUserBlock[];
}

const media = z
  .strictObject({
    type: z.enum(["image", "file"]),
    mimeType: z.string().min(3).max(255),
    data: z.string().optional().describe("Base64"),
    url: z.url().optional().describe("The model provider fetches it, never the server"),
    uploaded: z
      .record(z.string().min(1).max(64), z.string().min(1).max(256))
      .optional()
      .describe("Ids of uploaded files by provider; `thread` for a file of POST /threads/{thread}/files"),
    name: z.string().max(255).optional(),
  })
  .refine(
    ({ data, url, uploaded }) => [data, url, uploaded].filter((source) => source !== undefined).length === 1,
    "expected exactly one of data, url and uploaded",
  );

const block: z.ZodType<WireUserBlock> = z.union([z.strictObject({ type: z.literal("text"), text: z.string() }), media]);

/** Message of the user. */
const userMessage: z.ZodType<WireUserMessage> = nameSchema(
  "UserMessage",
  z.strictObject({
    role: z.literal("user"),
    id: id.optional().describe("Default: made from the ids of the request"),
    content: z.union([z.string(), z.array(block).min(1).max(100)]),
  }),
);

/** Messages for the run at work, or for the next run. */
export interface WireInboxMessage {
  readonly id?: string | undefined;
  readonly kind: "steer" | "followUp";
  readonly messages: readonly WireUserMessage[];
  readonly branch?: string | undefined;
}

/** Messages for the run at work, or for the next run. */
export const inboxMessage: z.ZodType<WireInboxMessage> = nameSchema(
  "InboxMessage",
  z.strictObject({
    id: id.optional().describe("Saved once for each id. Default: the header Idempotency-Key, else a new id."),
    kind: z
      .enum(["steer", "followUp"])
      .describe("`steer` is delivered after the superstep at work, `followUp` when the run would end"),
    messages: z.array(userMessage).min(1).max(1_000),
    branch: id.optional().describe("Default: the head branch"),
  }),
);

/** Receipt of inbox messages. */
export interface WireInboxReceipt {
  readonly id: string;
}

/** Receipt of inbox messages. */
export const inboxReceipt: z.ZodType<WireInboxReceipt> = nameSchema("InboxReceipt", z.strictObject({ id: z.string() }));

/** Replacement of a message of the user. */
export interface WireEdit {
  readonly message: WireUserMessage;
  readonly branch?: string | undefined;
  readonly key?: string | undefined;
}

/** Replacement of a message of the user. */
export const edit: z.ZodType<WireEdit> = nameSchema(
  "Edit",
  z.strictObject({
    message: userMessage.describe("The id, if given, is that of the path"),
    branch: id.optional().describe("Branch with the message. Default: the head branch."),
    key: id.optional().describe("Idempotency key in the thread; the header Idempotency-Key is the same"),
  }),
);
