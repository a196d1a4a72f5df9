/** Input of the inbox of a run. */
import type { Message } from "../../../model/message.ts";

/** Input of `steer` and `followUp`: a text, or messages with the role user or system. */
export type InboxInput = string | readonly Message[];
