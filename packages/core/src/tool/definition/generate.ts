/** `generate`: asks a model inside of a node, a tool or a route. */
import type { ModelCallPolicy } from "../../model/call-policy.ts";
import type { AssistantMessage, Message, Usage } from "../../model/message.ts";
import type { ModelSettings } from "../../model/model.ts";
import type { AnyModel } from "../../model/model-source.ts";
import type { UserContent } from "../../model/new-message.ts";
import type { OutputOptions } from "./answer-format.ts";
import type { OutputInput } from "./output-schema.ts";

/** Question to a model. At least one of `prompt` and `messages` is required. */
export interface GenerateRequest<Output = never> extends ModelCallPolicy {
  /** A model, or a list: the first model is called, the others are fallbacks in their order, as with `fallback`. */
  readonly model: AnyModel | readonly AnyModel[];
  /** Instructions for the model. */
  readonly system?: string;
  /** Question as a text, a text with images and files, or blocks. Follows `messages`. */
  readonly prompt?: UserContent;
  /** Conversation before the prompt, such as the messages of a thread. */
  readonly messages?: readonly Message[];
  /** Schema of the answer, or a schema with output options: `object` of the result has its type. */
  readonly output?: OutputInput<Output> | OutputOptions<Output>;
  /** Settings of the request, such as `{ temperature: 0 }`. */
  readonly settings?: ModelSettings;
  /**
   * Key of the recorded answer, unique in the task. Default: a key made from the request, so that an answer counts only
   * for an equal request.
   */
  readonly key?: string;
}

/** Answer of a model. */
export interface Generated<Output = never> {
  /** Text of the answer; JSON with an `output`. */
  readonly text: string;
  /** Parsed output; undefined without an `output` in the request. */
  readonly object: [Output] extends [never] ? undefined : Output;
  /** The answer as a message, for example for a channel of messages. */
  readonly message: AssistantMessage;
  /** Tokens of the answer, as far as the provider reports them. Tokens of other attempts are in the message. */
  readonly usage: Usage | undefined;
}

/**
 * Asks a model as a recorded effect: after a crash, a finished answer is not requested again. Retryable failures get
 * up to 3 attempts (`retry`). With an `output`, an invalid answer is repaired by the model, by default twice; then the
 * call rejects with `invalid_output`.
 *
 * ```ts
 * const { object } = await generate({ model, prompt: state.review, output: z.object({ stars: z.number() }) });
 * ```
 *
 * Rejects with `model_failed` after the last attempt, and with `invalid_option` for an invalid request.
 */
export type Generate = <Output = never>(request: GenerateRequest<Output>) => Promise<Generated<Output>>;
