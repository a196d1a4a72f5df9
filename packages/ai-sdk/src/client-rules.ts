/** What clients refuse, pass over in silence, or want said in another way: by the name of the client, such as `openai.chat`. */

/** What a client takes. One that nobody has listed gets everything as it is. */
export interface ClientRules {
  /** The provider whose ways it has, where that is known: it shares what models thought with other clients of the same family. */
  readonly family?: "anthropic" | "google" | "openai";
  /** System messages stand before everything else, and the first message behind them is a user's. */
  readonly strictOrder?: true;
  /** Text without a letter in it is refused. */
  readonly refusesBlankText?: true;
  /** Media types of the files that a user may send as bytes. */
  readonly media?: RegExp;
  /** What an answer of a tool may hold besides text: media types of files, or nothing. */
  readonly answerMedia?: RegExp | "none";
  /** Files in what an assistant said: those with their bytes, or none. */
  readonly assistantFiles?: "bytes" | "none";
  /** What one model thought is refused by another one of the same provider. */
  readonly thoughtsStayWithModel?: true;
}

const readable = /^(?:image\/|application\/pdf$)/;

const known: readonly (readonly [RegExp, ClientRules])[] = [
  [
    /anthropic/,
    {
      family: "anthropic",
      strictOrder: true,
      refusesBlankText: true,
      media: /^(?:image\/|application\/pdf$|text\/plain$)/,
      answerMedia: readable,
      assistantFiles: "none",
    },
  ],
  [/bedrock/, { strictOrder: true, refusesBlankText: true, assistantFiles: "none" }],
  [/^google|vertex/, { family: "google", strictOrder: true, assistantFiles: "bytes" }],
  [
    /^(?:openai|azure).*\.responses$/,
    { family: "openai", media: readable, assistantFiles: "none", thoughtsStayWithModel: true },
  ],
  [
    /^(?:openai|azure)/,
    {
      family: "openai",
      media: /^(?:image\/|application\/pdf$|audio\/(?:wav|mp3|mpeg)$)/,
      answerMedia: "none",
      assistantFiles: "none",
    },
  ],
  // Chat completions of anybody: an answer is text there, and a file in it would be sent as its letters.
  [/\.chat$/, { answerMedia: "none", assistantFiles: "none" }],
];

/** The rules of a client. */
export function rulesOf(client: string): ClientRules {
  return known.find(([name]) => name.test(client))?.[1] ?? {};
}
