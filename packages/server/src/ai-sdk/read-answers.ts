/** Answers to open interrupts in posted messages, by id only: arguments and results of other calls are ignored. */
import type { OpenInterrupt } from "@statewright/core";
import { getUiCallId, toUiInterrupt } from "./ui-interrupts.ts";
import { type AnswerPart, type PostedMessage, readAnswerPart } from "./ui-request.ts";

/** Answers of a post. */
export interface PostedAnswers {
  /** Answers of open interrupts by their ids. */
  readonly answers: Readonly<Record<string, unknown>>;
  /** True if a part answers an interrupt that is not open. */
  readonly hasOther: boolean;
}

/** Reads the answers in the message of the waiting run. */
export function readAnswers(
  messages: readonly PostedMessage[],
  open: readonly OpenInterrupt[],
  run: string,
): PostedAnswers {
  const parts = messages
    .filter(({ role, id }) => role === "assistant" && id === run)
    .flatMap((message) => message.parts.map(readAnswerPart))
    .filter((part) => part !== undefined);
  const found = open.map((interrupt) => [interrupt.id, readAnswer(parts, interrupt)] as const);
  const answered = found.filter(([, answer]) => answer !== undefined);
  return {
    answers: Object.fromEntries(answered),
    hasOther: parts.some(({ state, approval }) => state === "approval-responded" && !isOpen(open, approval?.id)),
  };
}

function isOpen(open: readonly OpenInterrupt[], id: string | undefined): boolean {
  return open.some((interrupt) => interrupt.id === id);
}

function readAnswer(parts: readonly AnswerPart[], interrupt: OpenInterrupt): unknown {
  const shown = toUiInterrupt(interrupt);
  if (shown.kind === "approval") {
    const part = parts.find(({ state, approval }) => state === "approval-responded" && approval?.id === shown.id);
    if (part?.approval?.approved === undefined) return undefined;
    const { approved, reason } = part.approval;
    return { approved, ...(reason === undefined ? {} : { reason }) };
  }
  // The id of a call can repeat in a message: the newest call waits.
  const part = parts.findLast(({ toolCallId }) => toolCallId === getUiCallId(shown));
  if (part?.state === "output-available") return part.output ?? null;
  if (part?.state === "output-error" && shown.kind === "client")
    return { isError: true, content: part.errorText ?? "The page could not run the tool." };
  return undefined;
}
