/** Middleware that checks answers of the model before the answers leave the agent. */

import {
  defineMiddleware,
  type Middleware,
  type ModelReply,
  type ModelRequest,
  type WritingRuntime,
} from "@statewright/core";
import {
  checkChoice,
  checkCount,
  checkFunction,
  checkOptions,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { getReplyText, isFinalAnswer, isFinalCall } from "../output/is-final-answer.ts";
import type { Refusal } from "./input-guardrail.ts";

/** Answer to check. */
export interface GuardedOutput {
  /** Text of the answer; structured output as JSON, native or by tool call. */
  readonly text: string;
  readonly reply: ModelReply;
}

/** Verdict: the model is called again with this reason. */
export interface RetryVerdict {
  readonly askAgain: string;
}

/** Check of answers, and the effect of an answer that does not pass. */
export interface OutputGuardrailOptions<Context = unknown, State = unknown> {
  /** Checks an answer; undefined accepts the answer. */
  readonly check: (
    output: GuardedOutput,
    runtime: WritingRuntime<Context, State>,
  ) => Refusal | RetryVerdict | undefined | Promise<Refusal | RetryVerdict | undefined>;
  /** Checked replies: final answers (default), or all replies including tool calls. */
  readonly replies?: "answers" | "all";
  /** Maximum answers of the model until an answer passes. Default 2. */
  readonly attempts?: number;
  /** Text with which the agent ends when no answer has passed. */
  readonly fallbackText?: string;
  /**
   * `hold` (default): streams nothing before an answer has passed. `retract`: streams the answer, and retracts an
   * answer that does not pass (`message.retracted`).
   */
  readonly stream?: "hold" | "retract";
  /** Name, unique among the guardrails of an agent. Default `outputGuardrail`. */
  readonly name?: string;
}

const optionNames = listOptionNames<OutputGuardrailOptions>({
  check: true,
  replies: true,
  attempts: true,
  fallbackText: true,
  stream: true,
  name: true,
});

/**
 * Checks answers of the model. Drops an answer that does not pass: calls the model again with the reason, within the
 * same recorded call, or ends the agent with the refusal text. The usage of dropped answers is recorded as failed
 * attempts of the message.
 */
export function outputGuardrail<Context = unknown, State = unknown>(
  options: OutputGuardrailOptions<Context, State>,
): Middleware<Context, State> {
  checkOptions("outputGuardrail", options, optionNames);
  const { check, replies = "answers", attempts = 2, stream = "hold", name = "outputGuardrail" } = options;
  const { fallbackText = "I cannot answer that." } = options;
  checkFunction("outputGuardrail", { check: check ?? null });
  checkChoice("outputGuardrail", { replies }, ["answers", "all"]);
  checkChoice("outputGuardrail", { stream }, ["hold", "retract"]);
  checkCount("outputGuardrail", { attempts });
  /** Verdicts of `aroundModel` by reply content, so that `afterModel` does not check the same content again. */
  const verdicts: WeakMap<ModelReply["content"], Verdict> = new WeakMap();
  type Verdict = Refusal | RetryVerdict | "passed";
  const checkReply = async (reply: ModelReply, runtime: WritingRuntime<Context, State>): Promise<Verdict> => {
    if (replies === "answers" && !isFinalAnswer(reply)) return "passed";
    const verdict: unknown = (await check({ text: getReplyText(reply), reply }, runtime)) ?? "passed";
    if (!isVerdict(verdict))
      throw invalidOption({
        where: `${name}: result of \`check\``,
        expected: "{ refuse: text }, { askAgain: reason } or undefined",
        got: verdict,
      });
    verdicts.set(reply.content, verdict);
    return verdict;
  };
  return defineMiddleware<Context, State>({
    name,
    required: true,
    ...(stream === "hold"
      ? {
          onModelDelta: () => (delta) =>
            delta.type === "call" && replies === "answers" && !isFinalCall(delta) ? delta : null,
        }
      : {}),
    aroundModel: async (request, next, runtime) => {
      let nextRequest = request;
      for (let attempt = 1; ; attempt++) {
        const reply = await next(nextRequest);
        const verdict = await checkReply(reply, runtime);
        if (verdict === "passed" || "refuse" in verdict || attempt >= attempts) return reply;
        nextRequest = {
          ...nextRequest,
          messages: [...nextRequest.messages, ...createRetryMessages(reply, verdict.askAgain, attempt)],
        };
      }
    },
    afterModel: async (reply, runtime) => {
      const verdict = verdicts.get(reply.content) ?? (await checkReply(reply, runtime));
      verdicts.delete(reply.content);
      if (verdict === "passed") return undefined;
      const { refuse, reason } = "refuse" in verdict ? verdict : { refuse: fallbackText, reason: verdict.askAgain };
      return runtime.end(refuse, { by: "guardrail", reason: reason ?? name });
    },
  });
}

/**
 * Creates the messages of a retry: the dropped answer as text, and the reason. Omits the tool calls, which have
 * no results.
 */
function createRetryMessages(reply: ModelReply, reason: string, attempt: number): ModelRequest["messages"] {
  const texts = reply.content.filter(({ type }) => type === "text");
  const content = reply.content.some((block) => isFinalCall(block))
    ? [{ type: "text" as const, text: getReplyText(reply) }]
    : texts;
  const reasonMessage = {
    role: "user" as const,
    id: `askAgain:${attempt}`,
    content: [{ type: "text" as const, text: reason }],
  };
  if (content.length === 0) return [reasonMessage];
  return [{ role: "assistant", id: `dropped:${attempt}`, content, finish: "stop" }, reasonMessage];
}

function isVerdict(value: unknown): value is Refusal | RetryVerdict | "passed" {
  if (value === "passed") return true;
  if (typeof value !== "object" || value === null) return false;
  return (
    ("refuse" in value && typeof value.refuse === "string") ||
    ("askAgain" in value && typeof value.askAgain === "string")
  );
}
