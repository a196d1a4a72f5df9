/** Who stands behind a message of the role `user`: a person, or an agent that asks its model to mend an output. */
import type { Message, UserMessage } from "@statewright/core";

/** What the id of a message ends with that asks a model to mend its output. */
export const repairMark = ":repair";

/** Whether a person said this. */
export function isFromPerson(message: Message | undefined): message is UserMessage {
  return message?.role === "user" && !message.id.endsWith(repairMark);
}
