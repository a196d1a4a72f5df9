/** State of a thread in the format of LangGraph clients. */
import type { WireObject } from "./to-wire-message.ts";
import { isMessage, toWireMessage } from "./to-wire-message.ts";

/** Converts the values of a state by channel: lists of messages to messages of LangChain, other values unchanged. */
export function toWireValues(values: Readonly<Record<string, unknown>>): WireObject {
  return Object.fromEntries(Object.entries(values).map(([channel, value]) => [channel, toWireValue(value)]));
}

/** Converts a value of a channel, or the written part of a channel. */
export function toWireValue(value: unknown): unknown {
  if (isMessage(value)) return toWireMessage(value);
  return Array.isArray(value) && value.length > 0 && value.every(isMessage) ? value.map(toWireMessage) : value;
}
