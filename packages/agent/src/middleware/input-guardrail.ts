/** What people say is looked at before a model reads it. */
import {
  type Channel,
  checkOptions,
  defineMiddleware,
  type Message,
  type Middleware,
  type ModelHookRuntime,
  optionNames,
  reduce,
  textOf,
  type UserMessage,
} from "@statewright/core";
import { checkFunction, unfitOption } from "../agent/check-option.ts";
import { isFromPerson } from "../agent/is-from-person.ts";
import { textsSchema } from "../output/strings-schema.ts";
import { messagesIn } from "./conversation-calls.ts";

/** What an input guardrail looks at. */
export interface GuardedInput {
  /** What was said since the model spoke last. */
  readonly messages: readonly UserMessage[];
  /** Its text. */
  readonly text: string;
  /** Everything that was said until now. */
  readonly conversation: readonly Message[];
}

/** That the agent answers with this text instead of its model's. */
export interface Refusal {
  readonly refuse: string;
  /** Why, for whoever runs the agent; a model that called it as a tool reads it too. */
  readonly reason?: string;
}

/** What `inputGuardrail` takes. */
export interface InputGuardrailOptions<Context = unknown, State = unknown> {
  /** Looks at what was said: nothing lets it pass. */
  readonly check: (
    input: GuardedInput,
    runtime: ModelHookRuntime<Context, State>,
  ) => Refusal | undefined | Promise<Refusal | undefined>;
  /** Tells several guardrails apart. Default `inputGuardrail`. */
  readonly name?: string;
}

type RefusedChannel = Channel<readonly string[], readonly string[], readonly string[] | undefined>;

/** The channel that holds the ids of messages that were refused: a graph of your own declares it, `defineState({ …, ...refusedInput })`. */
export const refusedInput: { readonly refusedInput: RefusedChannel } = {
  refusedInput: reduce(textsSchema("ids of messages"), (before, refused: readonly string[]) => [
    ...before,
    ...refused,
  ]) as RefusedChannel,
};

/**
 * Look at what people say before the model is asked, also at what they say while the agent is at work. What is refused ends
 * the agent with the text of the refusal, and no later request holds it.
 */
export function inputGuardrail<Context = unknown, State = unknown>(
  options: InputGuardrailOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions("inputGuardrail", options, optionNames<InputGuardrailOptions>({ check: true, name: true }));
  const { check, name = "inputGuardrail" } = options;
  checkFunction("inputGuardrail", { check: check ?? null });
  return defineMiddleware<Context, State>({
    name,
    required: true,
    channels: refusedInput,
    showMessages: (messages, { state }) => withoutRefused(messages, refusedIn(state)),
    beforeModel: async (request, runtime) => {
      const conversation = messagesIn(runtime.state);
      const messages = conversation
        .slice(conversation.findLastIndex(({ role }) => role === "assistant") + 1)
        .filter(isFromPerson);
      if (messages.length > 0) {
        const input = { messages, text: messages.map(textOf).join("\n"), conversation };
        const refusal = await check(input, runtime);
        if (refusal !== undefined) {
          if (typeof refusal?.refuse !== "string")
            throw unfitOption(name, "what check gives", refusal, "{ refuse: text }, or nothing");
          runtime.write({ refusedInput: messages.map(({ id }) => id) });
          return runtime.end(refusal.refuse, { by: "guardrail", reason: refusal.reason ?? name });
        }
      }
      const refused = refusedIn(runtime.state);
      return refused.length === 0 ? undefined : { ...request, messages: withoutRefused(request.messages, refused) };
    },
  });
}

function refusedIn(state: unknown): readonly string[] {
  return (state as { readonly refusedInput?: readonly string[] }).refusedInput ?? [];
}

/** The conversation without what was refused, and without the refusals. */
function withoutRefused(messages: readonly Message[], refused: readonly string[]): readonly Message[] {
  const gone = new Set(refused);
  return messages.filter((message, index) => {
    if (message.role === "user") return !gone.has(message.id);
    const before = messages[index - 1];
    const answersRefused = before?.role === "user" && gone.has(before.id);
    return !(answersRefused && message.role === "assistant" && message.ended?.by === "guardrail");
  });
}
