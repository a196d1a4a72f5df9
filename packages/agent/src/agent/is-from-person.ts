/**
 * Distinguishes user messages of a person from user messages with which an agent asks its model to repair an output.
 */
import type { Message, UserMessage } from "@statewright/core";

/** Suffix of the id of a repair message. */
export const repairSuffix = ":repair";

/** True for a user message of a person. */
export function isFromPerson(message: Message | undefined): message is UserMessage {
  return message?.role === "user" && !message.id.endsWith(repairSuffix);
}
