/** Well-formed text: providers and databases refuse or confuse lone UTF-16 surrogates, such as those of a cut emoji. */
import { StatewrightError } from "./errors.ts";
import { isPlainObject, maxDepth } from "./json.ts";

/**
 * Returns the value with each lone surrogate in its texts and keys replaced by U+FFFD. Returns the same value if all
 * texts are well formed. Visits arrays and plain objects only; a value that cannot be traversed is returned unchanged.
 */
export function toWellFormedData<Value>(value: Value): Value {
  if (typeof value === "string") return value.toWellFormed() as Value & string;
  try {
    return hasLoneSurrogate(value, 0) ? (copyWellFormed(value) as Value) : value;
  } catch {
    // A cycle, or a getter that throws: the validation of the value reports it.
    return value;
  }
}

const wellFormedCopies: WeakMap<object, object> = new WeakMap();

/** As {@link toWellFormedData}, memoized for values that do not change, such as saved messages. */
export function toWellFormedSaved<Value extends object>(value: Value): Value {
  const known = wellFormedCopies.get(value);
  if (known !== undefined) return known as Value;
  const copy = toWellFormedData(value);
  if (Object.isFrozen(value)) wellFormedCopies.set(value, copy);
  return copy;
}

/** Remembers a deeply frozen value whose texts are well formed, so that {@link toWellFormedSaved} does not read it. */
export function rememberWellFormed(value: object): void {
  wellFormedCopies.set(value, value);
}

/** Returns the name of a row. Throws `invalid_id` for a name with lone surrogates (rule R4). */
export function checkWellFormed(name: string): string {
  if (name.isWellFormed()) return name;
  throw new StatewrightError("invalid_id", {
    what: `${JSON.stringify(name)} is not well-formed text`,
    next: "Remove lone surrogates from names and keys",
  });
}

function hasLoneSurrogate(value: unknown, level: number): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  if (level > maxDepth) throw new RangeError("too deep");
  if (Array.isArray(value)) {
    // An index allocates no iterator.
    for (let index = 0; index < value.length; index++) if (hasLoneSurrogate(value[index], level + 1)) return true;
    return false;
  }
  if (!isPlainObject(value)) return false;
  // `for in` allocates no list of keys. A plain object inherits no enumerable key.
  for (const key in value) if (!key.isWellFormed() || hasLoneSurrogate(value[key], level + 1)) return true;
  return false;
}

function copyWellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(copyWellFormed);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.keys(value).map((key) => [key.toWellFormed(), copyWellFormed(value[key])]));
}
