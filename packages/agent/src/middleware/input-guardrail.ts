/** Middleware that checks user messages before a model reads the messages. */
import {
  type Channel,
  channel,
  defineMiddleware,
  getMessageText,
  type Message,
  type Middleware,
  type ModelHookRuntime,
  type UserMessage,
} from "@statewright/core";
import { checkFunction, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { isFromPerson } from "../agent/is-from-person.ts";
import { createStringsSchema } from "../output/strings-schema.ts";
import { getMessages } from "./conversation-calls.ts";

/** User messages to check, as messages and as text, with the conversation. */
export interface GuardedInput {
  /** User messages since the last model message. */
  readonly messages: readonly UserMessage[];
  /** Text of these messages. */
  readonly text: string;
  /** The whole conversation. */
  readonly conversation: readonly Message[];
}

/** Verdict: the agent ends with this text instead of an answer of the model. */
export interface Refusal {
  readonly refuse: string;
  /** Reason for the operator of the agent; visible to a parent model when the agent runs as a tool. */
  readonly reason?: string;
}

/** Check of user messages, and the name of the guardrail. */
export interface InputGuardrailOptions<Context = unknown, State = unknown> {
  /** Checks user messages; undefined accepts the messages. */
  readonly check: (
    input: GuardedInput,
    runtime: ModelHookRuntime<Context, State>,
  ) => Refusal | undefined | Promise<Refusal | undefined>;
  /** Name, unique among the guardrails of an agent. Default `inputGuardrail`. */
  readonly name?: string;
}

type RefusedChannel = Channel<readonly string[], readonly string[], readonly string[] | undefined>;

/** Channel of the ids of refused messages; add it to a user-defined graph: `defineState({ …, ...refusedInput })`. */
export const refusedInput: { readonly refusedInput: RefusedChannel } = {
  refusedInput: channel.reduce(createStringsSchema("ids of messages"), (ids, refused: readonly string[]) =>
    ids.concat(refused),
  ) as RefusedChannel,
};

/**
 * Checks user messages before each model request, including messages sent during the run. A refusal ends the agent
 * with the refusal text, and removes the refused messages from all later model requests.
 */
export function inputGuardrail<Context = unknown, State = unknown>(
  options: InputGuardrailOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions("inputGuardrail", options, listOptionNames<InputGuardrailOptions>({ check: true, name: true }));
  const { check, name = "inputGuardrail" } = options;
  checkFunction("inputGuardrail", { check: check ?? null });
  return defineMiddleware<Context, State>({
    name,
    required: true,
    channels: refusedInput,
    showMessages: (messages, { state }) => removeRefused(messages, getRefusedIds(state)),
    beforeModel: async (request, runtime) => {
      const conversation = getMessages(runtime.state);
      const messages = conversation
        .slice(conversation.findLastIndex(({ role }) => role === "assistant") + 1)
        .filter(isFromPerson);
      if (messages.length > 0) {
        const input = { messages, text: messages.map(getMessageText).join("\n"), conversation };
        const refusal = await check(input, runtime);
        if (refusal !== undefined) {
          if (typeof refusal?.refuse !== "string")
            throw invalidOption({
              where: `${name}: result of \`check\``,
              expected: "{ refuse: text } or undefined",
              got: refusal,
            });
          runtime.write({ refusedInput: messages.map(({ id }) => id) });
          return runtime.end(refusal.refuse, { by: "guardrail", reason: refusal.reason ?? name });
        }
      }
      const refused = getRefusedIds(runtime.state);
      return refused.length === 0 ? undefined : { ...request, messages: removeRefused(request.messages, refused) };
    },
  });
}

function getRefusedIds(state: unknown): readonly string[] {
  return (state as { readonly refusedInput?: readonly string[] }).refusedInput ?? [];
}

/** Removes refused messages and their refusals from the conversation. */
function removeRefused(messages: readonly Message[], refused: readonly string[]): readonly Message[] {
  const refusedIds = new Set(refused);
  return messages.filter((message, index) => {
    if (message.role === "user") return !refusedIds.has(message.id);
    const previous = messages[index - 1];
    const answersRefused = previous?.role === "user" && refusedIds.has(previous.id);
    return !(answersRefused && message.role === "assistant" && message.ended?.by === "guardrail");
  });
}
