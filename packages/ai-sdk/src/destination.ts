/** Target of a prompt: the facts about a model that the conversion of each part needs. */
import type { ClientRules } from "./client-rules.ts";
import type { Dialect } from "./dialect.ts";
import type { UrlPredicate } from "./media.ts";

/** Target model of a prompt, with the dialect of its specification. */
export interface Destination<Data, Media, NativePart> {
  /** Provider name of the client, such as `openai.chat`. */
  readonly client: string;
  readonly model: string;
  readonly rules: ClientRules;
  readonly dialect: Dialect<Data, Media, NativePart>;
  readonly takesUrl: UrlPredicate;
  /** Callback for each part of the prompt that is sent in another form than in the message. */
  readonly warn: (warning: string) => void;
}
