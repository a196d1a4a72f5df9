/**
 * Ids of messages that were written without one, such as those of `userMessage`. An id follows from the place of the
 * write: the same write has the same id after every crash.
 */
import { fingerprint } from "../../base/ids.ts";
import { deepFreeze } from "../../base/json.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Message, MessageWrite } from "../../model/message.ts";
import type { Write } from "./returns.ts";

/** Returns the writes with an id for each message whose id is empty. `place` is unique for the source of the writes. */
export function assignMessageIds(plan: Plan, writes: readonly Write[], place: string): readonly Write[] {
  if (!writes.some((write) => needsIds(plan, write))) return writes;
  let index = 0;
  const assignId = (message: MessageWrite): MessageWrite => {
    if (!hasEmptyId(message)) return message;
    const content = JSON.stringify([message.role, message.content]);
    const id = `msg_${fingerprint(`${place}\n${index++}\n${content}`)}`;
    return deepFreeze({ ...message, id });
  };
  return writes.map((write) => {
    if (!needsIds(plan, write)) return write;
    const value = write.value as MessageWrite | readonly MessageWrite[];
    return { ...write, value: isList(value) ? Object.freeze(value.map(assignId)) : assignId(value) };
  });
}

/** Returns true for a message without an id of its own. */
export function hasEmptyId(message: MessageWrite): message is Message {
  return "id" in message && message.id === "";
}

function needsIds({ graph }: Plan, { channel, value }: Write): boolean {
  if (graph.state.channels[channel]?.kind !== "messages") return false;
  const written = value as MessageWrite | readonly MessageWrite[];
  return isList(written) ? written.some(hasEmptyId) : hasEmptyId(written);
}

function isList(value: MessageWrite | readonly MessageWrite[]): value is readonly MessageWrite[] {
  return Array.isArray(value);
}
