/** Options without the keys that are undefined. */
type Defined<Value> = { [Key in keyof Value]?: Exclude<Value[Key], undefined> };

/** Returns an object without the keys whose value is undefined, for calls that distinguish absent options. */
export function omitUndefined<Value extends object>(value: Value): Defined<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<Value>;
}
