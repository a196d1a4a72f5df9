/** Plain data: the JSON type and deep freezing. */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** `Value` with every property, item, entry and member read-only, to any depth. */
export type DeepReadonly<Value> = Value extends
  | Primitive
  | ((...args: never[]) => unknown)
  | Date
  | RegExp
  | URL
  | Error
  ? Value
  : Value extends ReadonlyMap<infer Key, infer Item>
    ? ReadonlyMap<DeepReadonly<Key>, DeepReadonly<Item>>
    : Value extends ReadonlySet<infer Item>
      ? ReadonlySet<DeepReadonly<Item>>
      : Value extends ArrayBufferView
        ? Value
        : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** Freeze a value and all that it holds; what is frozen already is not walked again, so that the cost is that of the new parts. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value;
  Object.freeze(value);
  for (const key of Object.keys(value)) deepFreeze(value[key as keyof Value]);
  return value;
}

/** Tell whether a value is an object made by a literal or by JSON.parse. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
