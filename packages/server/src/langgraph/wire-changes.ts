/** Changes of a checkpoint in both protocols: the state after them, and what was written. */
import { isStatewrightError, type Message } from "@statewright/core";
import { applyDelta, type Delta } from "@statewright/core/store";
import { isMessage, type WireObject } from "./to-wire-message.ts";
import { toWireValue } from "./to-wire-values.ts";

type Values = Readonly<Record<string, unknown>>;
type Changes = Readonly<Record<string, Delta>>;

/** Returns values after the changes of a checkpoint. Throws for changes that do not belong to the values. */
export function applyChanges(before: Values, changes: Changes): Values {
  const values = Object.entries(changes).map(
    ([channel, delta]) => [channel, applyDelta(before[channel], delta)] as const,
  );
  return Object.fromEntries([...Object.entries(before), ...values].filter(([, value]) => value !== undefined));
}

/** A state as JSON may lack what a change names, such as the keys of a map: such a state is read anew. */
export function canApply(before: Values, changes: Changes): boolean {
  try {
    applyChanges(before, changes);
    return true;
  } catch (error) {
    if (isStatewrightError(error)) return false;
    throw error;
  }
}

/** Returns the writes of a step by channel: appended items, or the new value of the channel. */
export function toWireChanges(changes: Changes, after: Values | undefined): WireObject {
  return Object.fromEntries(
    Object.entries(changes).map(([channel, delta]) => [channel, toWireValue(getWritten(delta, after?.[channel]))]),
  );
}

function getWritten(delta: Delta, value: unknown): unknown {
  switch (delta.kind) {
    case "append":
      return delta.items;
    case "replace":
      return delta.value;
    default:
      return value ?? null;
  }
}

/** Lists the messages that a checkpoint has appended. */
export function listWrittenMessages(changes: Changes): readonly Message[] {
  return Object.values(changes)
    .flatMap((delta) => (delta.kind === "append" ? delta.items : []))
    .filter(isMessage);
}
