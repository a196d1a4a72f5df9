/** Channels that hold the latest thing of a kind, for what middleware has found out and need not find out again. */
import { type Channel, reduce, schemaWhere } from "@statewright/core";

/** A channel that holds what was written last: nothing yet is null. */
export type LatestChannel<Value> = Channel<Value | null, Value | null, Value | null | undefined>;

/** Such a channel, of values that pass the check; `expected` says which those are. */
export function latest<Value>(
  expected: string,
  fits: (value: object) => value is Value & object,
): LatestChannel<Value> {
  const isOne = (value: unknown): value is Value | null => value === null || (typeof value === "object" && fits(value));
  const schema = schemaWhere<Value | null>(expected, isOne, null);
  return reduce(schema, (_before, value: Value | null) => value as never) as LatestChannel<Value>;
}
