/** A channel is declared by a value instead of a schema. */
import { defineState } from "statewright";

export const Till = defineState({
  // @ts-expect-error Type 'number' is not assignable to type 'Channel<unknown, unknown, unknown, ChannelKind> | Schema<unknown, unknown>'.
  total: 0,
});
