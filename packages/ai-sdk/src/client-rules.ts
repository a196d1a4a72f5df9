/**
 * Limits of AI SDK clients by client name, such as `openai.chat`: rejected input, silently dropped input, special
 * formats.
 */

/** Limits of a client. An unlisted client has no limits: the prompt is sent unchanged. */
export interface ClientRules {
  /** Provider family, if known: clients of the same family accept each other's reasoning. */
  readonly family?: "anthropic" | "google" | "openai";
  /** System messages must precede all other messages, followed by a user message. */
  readonly strictOrder?: true;
  /** The client rejects blank text. */
  readonly refusesBlankText?: true;
  /** Media types of files accepted as bytes in user messages. */
  readonly media?: RegExp;
  /** Media types of files accepted in tool results; "none": text only. */
  readonly resultMedia?: RegExp | "none";
  /** Files accepted in assistant messages: files with inline bytes, or none. */
  readonly assistantFiles?: "bytes" | "none";
  /** Event types that the client reads; it reports any other type as an error, and reads the events after it. */
  readonly events?: ReadonlySet<string>;
  /** A model rejects the reasoning of another model of the same provider. */
  readonly reasoningIsModelBound?: true;
}

const anthropicEvents: ReadonlySet<string> = new Set([
  "message_start",
  "content_block_start",
  "content_block_delta",
  "content_block_stop",
  "message_delta",
  "message_stop",
  "ping",
  "error",
]);

const imagesAndPdf = /^(?:image\/|application\/pdf$)/;

const rulesByClient: readonly (readonly [RegExp, ClientRules])[] = [
  [
    /anthropic/,
    {
      family: "anthropic",
      events: anthropicEvents,
      strictOrder: true,
      refusesBlankText: true,
      media: /^(?:image\/|application\/pdf$|text\/plain$)/,
      resultMedia: imagesAndPdf,
      assistantFiles: "none",
    },
  ],
  [/bedrock/, { strictOrder: true, refusesBlankText: true, assistantFiles: "none" }],
  [/^google|vertex/, { family: "google", strictOrder: true, assistantFiles: "bytes" }],
  [
    /^(?:openai|azure).*\.responses$/,
    { family: "openai", media: imagesAndPdf, assistantFiles: "none", reasoningIsModelBound: true },
  ],
  [
    /^(?:openai|azure)/,
    {
      family: "openai",
      media: /^(?:image\/|application\/pdf$|audio\/(?:wav|mp3|mpeg)$)/,
      resultMedia: "none",
      assistantFiles: "none",
    },
  ],
  // Chat completions API of any provider: a tool result is text, and a file would be sent as its characters.
  [/\.chat$/, { resultMedia: "none", assistantFiles: "none" }],
];

export function getClientRules(client: string): ClientRules {
  return rulesByClient.find(([name]) => name.test(client))?.[1] ?? {};
}
