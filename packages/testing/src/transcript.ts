/** What every provider asks of a conversation: each call of a model is answered once, in call order, before anything else. */
import { callsOf, type Message, type Model, StatewrightError } from "@statewright/core";

/**
 * Throws `invalid_transcript` unless the answers to the calls of each assistant message stand directly after it, one for
 * each call, in call order.
 */
export function checkTranscript(messages: readonly Message[]): void {
  let open: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      const [expected, ...rest] = open;
      if (message.callId !== expected) throw strayAnswer(messages, index, message.callId, expected);
      open = rest;
      continue;
    }
    if (open.length > 0) throw unanswered(open, `before message ${index} (${message.role})`);
    if (message.role === "assistant") open = callsOf(message).map((call) => call.id);
  }
  if (open.length > 0) throw unanswered(open, "at the end");
}

/** The model, behind a check of every request: a transcript that a strict provider would refuse is refused here. */
export function modelThatRefusesBadTranscripts<Strict extends Model>(model: Strict): Strict {
  return {
    ...model,
    respond: async (request, options) => {
      checkTranscript(request.messages);
      return model.respond(request, options);
    },
  };
}

function unanswered(calls: readonly string[], where: string): StatewrightError {
  return invalid(
    `${calls.map((id) => `the call "${id}"`).join(" and ")} ${calls.length === 1 ? "has" : "have"} no answer ${where}`,
    calls,
  );
}

function strayAnswer(
  messages: readonly Message[],
  index: number,
  callId: string,
  expected: string | undefined,
): StatewrightError {
  if (expected !== undefined)
    return invalid(`message ${index} answers "${callId}" where the answer to "${expected}" is due`, [callId, expected]);
  const before = messages.slice(0, index).some((message) => message.role === "tool" && message.callId === callId);
  return invalid(
    `message ${index} answers "${callId}", ${before ? "which is answered already" : "which nobody asks there"}`,
    [callId],
  );
}

function invalid(what: string, calls: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_transcript", {
    what: `a model was given a transcript that providers refuse: ${what}`,
    next: "Put exactly one tool message for each call directly after the message that calls, in call order",
    details: { calls },
  });
}
