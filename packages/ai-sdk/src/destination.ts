/** Where a prompt goes: what the conversion of every part of it must know of the model. */
import type { ClientRules } from "./client-rules.ts";
import type { Dialect } from "./dialect.ts";
import type { TakesUrl } from "./media.ts";

/** The model that a prompt is made for, in the dialect of its specification. */
export interface Destination<Data, Media, Own> {
  /** The provider name of its client, such as `openai.chat`. */
  readonly client: string;
  readonly model: string;
  readonly rules: ClientRules;
  readonly dialect: Dialect<Data, Media, Own>;
  readonly takesUrl: TakesUrl;
  /** Told what is sent otherwise than it was said. */
  readonly warn: (warning: string) => void;
}
