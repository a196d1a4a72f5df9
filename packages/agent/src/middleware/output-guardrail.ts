/** What a model answers is looked at before anybody gets it. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  type ModelReply,
  type ModelRequest,
  optionNames,
  type WritingRuntime,
} from "@statewright/core";
import { checkCount, checkFunction, checkWord, unfitOption } from "../agent/check-option.ts";
import { answerText, isAnswer, isFinal } from "../output/is-final-answer.ts";
import type { Refusal } from "./input-guardrail.ts";

/** What an output guardrail looks at. */
export interface GuardedOutput {
  /** What it says. Structured output stands here as JSON, however the model was asked for it. */
  readonly text: string;
  readonly reply: ModelReply;
}

/** That the model is asked again, and reads why. */
export interface AskAgain {
  readonly askAgain: string;
}

/** What `outputGuardrail` takes. */
export interface OutputGuardrailOptions<Context = unknown, State = unknown> {
  /** Looks at an answer: nothing lets it pass. */
  readonly check: (
    output: GuardedOutput,
    runtime: WritingRuntime<Context, State>,
  ) => Refusal | AskAgain | undefined | Promise<Refusal | AskAgain | undefined>;
  /** Which replies it looks at: those that answer (default), or those that call tools too. */
  readonly replies?: "answers" | "all";
  /** How many answers the model may give until one passes. Default 2. */
  readonly attempts?: number;
  /** The agent's answer when none has passed. */
  readonly otherwise?: string;
  /** Nothing of an answer is streamed before it has passed (`hold`, default), or it streams and is made void when it does not pass. */
  readonly stream?: "hold" | "void";
  /** Tells several guardrails apart. Default `outputGuardrail`. */
  readonly name?: string;
}

/**
 * Look at the model's answers. One that does not pass is dropped: the model is asked again with the reason, within the same
 * recorded call, or the agent ends with the text of the refusal. What dropped answers have cost stands in `lost` of the message.
 */
export function outputGuardrail<Context = unknown, State = unknown>(
  options: OutputGuardrailOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions(
    "outputGuardrail",
    options,
    optionNames<OutputGuardrailOptions>({
      check: true,
      replies: true,
      attempts: true,
      otherwise: true,
      stream: true,
      name: true,
    }),
  );
  const { check, replies = "answers", attempts = 2, stream = "hold", name = "outputGuardrail" } = options;
  const { otherwise = "I cannot give an answer to that." } = options;
  checkFunction("outputGuardrail", { check: check ?? null });
  checkWord("outputGuardrail", { replies }, ["answers", "all"]);
  checkWord("outputGuardrail", { stream }, ["hold", "void"]);
  checkCount("outputGuardrail", { attempts });
  /** What was decided about a content around the model: it is not looked at again behind it. */
  const decided: WeakMap<ModelReply["content"], Verdict> = new WeakMap();
  type Verdict = Refusal | AskAgain | "passed";
  const verdictOn = async (reply: ModelReply, runtime: WritingRuntime<Context, State>): Promise<Verdict> => {
    if (replies === "answers" && !isAnswer(reply)) return "passed";
    const verdict: unknown = (await check({ text: answerText(reply), reply }, runtime)) ?? "passed";
    if (!isVerdict(verdict))
      throw unfitOption(name, "what check gives", verdict, "{ refuse: text }, { askAgain: reason }, or nothing");
    decided.set(reply.content, verdict);
    return verdict;
  };
  return defineMiddleware<Context, State>({
    name,
    required: true,
    ...(stream === "hold"
      ? {
          onModelDelta: () => (delta) =>
            delta.type === "call" && replies === "answers" && !isFinal(delta) ? delta : null,
        }
      : {}),
    aroundModel: async (request, next, runtime) => {
      let asked = request;
      for (let attempt = 1; ; attempt++) {
        const reply = await next(asked);
        const verdict = await verdictOn(reply, runtime);
        if (verdict === "passed" || "refuse" in verdict || attempt >= attempts) return reply;
        asked = { ...asked, messages: [...asked.messages, ...exchange(reply, verdict.askAgain, attempt)] };
      }
    },
    afterModel: async (reply, runtime) => {
      const verdict = decided.get(reply.content) ?? (await verdictOn(reply, runtime));
      decided.delete(reply.content);
      if (verdict === "passed") return undefined;
      const { refuse, reason } = "refuse" in verdict ? verdict : { refuse: otherwise, reason: verdict.askAgain };
      return runtime.end(refuse, { by: "guardrail", reason: reason ?? name });
    },
  });
}

/** The dropped answer as text, and what is wrong with it. Its calls are left out: nobody answers them. */
function exchange(reply: ModelReply, reason: string, attempt: number): ModelRequest["messages"] {
  const texts = reply.content.filter(({ type }) => type === "text");
  const content = reply.content.some((block) => isFinal(block))
    ? [{ type: "text" as const, text: answerText(reply) }]
    : texts;
  const told = { role: "user" as const, id: `askAgain:${attempt}`, content: [{ type: "text" as const, text: reason }] };
  if (content.length === 0) return [told];
  return [{ role: "assistant", id: `dropped:${attempt}`, content, finish: "stop" }, told];
}

function isVerdict(value: unknown): value is Refusal | AskAgain | "passed" {
  if (value === "passed") return true;
  if (typeof value !== "object" || value === null) return false;
  return (
    ("refuse" in value && typeof value.refuse === "string") ||
    ("askAgain" in value && typeof value.askAgain === "string")
  );
}
