/** Last-value channels, in which middleware caches results across model requests. */
import { type Channel, channel } from "@statewright/core";
import { createGuardSchema } from "@statewright/core/adapter";

/** Channel that holds the last written value; initially null. */
export type LastValueChannel<Value> = Channel<Value | null, Value | null, Value | null | undefined>;

/** Creates a last-value channel; `expected` describes valid values in errors. */
export function createLastValueChannel<Value>(
  expected: string,
  isValid: (value: object) => value is Value & object,
): LastValueChannel<Value> {
  const isValidOrNull = (value: unknown): value is Value | null =>
    value === null || (typeof value === "object" && isValid(value));
  const schema = createGuardSchema<Value | null>(expected, isValidOrNull, null);
  return channel.reduce(schema, (_before, value: Value | null) => value as never) as LastValueChannel<Value>;
}
