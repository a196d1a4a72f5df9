/** Messages that a superstep has added to the conversation. */
import type { Message, RunEvent } from "@statewright/core";
import * as z from "zod";

type Changes = Extract<RunEvent, { readonly type: "step.committed" }>["changes"];

const block = z.looseObject({ type: z.string() });

/** Fields of messages that the stream reads; core has checked the messages when they were written. */
const message = z.union([
  z.looseObject({ role: z.literal("user"), id: z.string(), content: z.array(block) }),
  z.looseObject({ role: z.literal("assistant"), id: z.string(), content: z.array(block), finish: z.string() }),
  z.looseObject({
    role: z.literal("tool"),
    id: z.string(),
    callId: z.string(),
    content: z.array(block),
    isError: z.boolean(),
  }),
  z.looseObject({ role: z.literal("system"), id: z.string(), content: z.string() }),
]);

/** True for a value of the conversation channel that is a message. */
export function isMessage(value: unknown): value is Message {
  return message.safeParse(value).success;
}

/**
 * Lists the messages of a change of the conversation. Of a conversation that was replaced as a whole, those after its
 * last message of a user: earlier ones belong to earlier runs.
 */
export function listWrittenMessages(changes: Changes): readonly Message[] {
  const delta = changes["messages"];
  if (delta === undefined || delta.kind === "clear") return [];
  if (delta.kind === "append") return delta.items.filter(isMessage);
  if (delta.kind === "patch") return delta.patches.map((patch) => patch.value).filter(isMessage);
  const all = Array.isArray(delta.value) ? delta.value.filter(isMessage) : [];
  return all.slice(
    Math.max(
      0,
      all.findLastIndex((written) => written.role === "user"),
    ),
  );
}
