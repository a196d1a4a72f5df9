/** Validates lists of messages, for programs without types. */
import { invalidOption } from "@statewright/core/adapter";

/** Throws `invalid_option` for a value that is no list of messages. */
export function checkMessages(where: string, messages: unknown): void {
  const isMessage = (each: unknown): boolean => typeof each === "object" && each !== null;
  if (Array.isArray(messages) && messages.every(isMessage)) return;
  throw invalidOption({ where, expected: "a list of messages", got: messages });
}
