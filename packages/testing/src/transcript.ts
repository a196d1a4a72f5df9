/**
 * Transcript rules of providers: each tool call is answered exactly once, in call order, directly after the message.
 */
import { listToolCalls, type Message, type Model, StatewrightError } from "@statewright/core";

/**
 * Throws `invalid_transcript` unless the tool messages directly follow their assistant message, one for each call, in
 * call order.
 */
export function checkTranscript(messages: readonly Message[]): void {
  let openCalls: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      const [expected, ...rest] = openCalls;
      if (message.callId !== expected) throw createUnexpectedAnswerError(messages, index, message.callId, expected);
      openCalls = rest;
      continue;
    }
    if (openCalls.length > 0) throw createUnansweredError(openCalls, `before message ${index} (${message.role})`);
    if (message.role === "assistant") openCalls = listToolCalls(message).map((call) => call.id);
  }
  if (openCalls.length > 0) throw createUnansweredError(openCalls, "at the end of the transcript");
}

/** Returns the model with a check of every request: rejects a transcript that a strict provider would reject. */
export function rejectInvalidTranscripts<Strict extends Model>(model: Strict): Strict {
  return {
    ...model,
    respond: async (request, options) => {
      checkTranscript(request.messages);
      return model.respond(request, options);
    },
  };
}

function createUnansweredError(calls: readonly string[], position: string): StatewrightError {
  return createTranscriptError(
    `${calls.map((id) => `the call "${id}"`).join(" and ")} ${calls.length === 1 ? "has" : "have"} no answer ${position}`,
    calls,
  );
}

function createUnexpectedAnswerError(
  messages: readonly Message[],
  index: number,
  callId: string,
  expected: string | undefined,
): StatewrightError {
  if (expected !== undefined)
    return createTranscriptError(`message ${index} answers "${callId}", expected an answer to "${expected}"`, [
      callId,
      expected,
    ]);
  const isAnswered = messages.slice(0, index).some((message) => message.role === "tool" && message.callId === callId);
  return createTranscriptError(
    `message ${index} answers "${callId}", ${isAnswered ? "which is already answered" : "which is not an open call"}`,
    [callId],
  );
}

function createTranscriptError(problem: string, calls: readonly string[]): StatewrightError {
  return new StatewrightError("invalid_transcript", {
    what: `a model request: expected a transcript that providers accept, got an invalid transcript: ${problem}`,
    next: "Add exactly one tool message for each call, directly after the message with the calls, in call order",
    details: { calls },
  });
}
