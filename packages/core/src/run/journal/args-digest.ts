/** Digests of tool call arguments, for equality checks. */
import { fingerprint } from "../../base/ids.ts";
import { isPlainObject, isSameData } from "../../base/json.ts";
import type { Codec } from "../../state/codec.ts";

/** Returns the digest of tool call arguments, or undefined for arguments that cannot be encoded. */
export function digestArgs(codec: Codec, args: unknown): string | undefined {
  try {
    return fingerprint(codec.encode(sortKeys(args), "the arguments of a tool call"));
  } catch {
    return undefined;
  }
}

/** True for equal arguments. Arguments that cannot be encoded differ from every other parsing. */
export function isSameArgs(codec: Codec, left: unknown, right: unknown): boolean {
  if (isSameData(left, right)) return true;
  const digest = digestArgs(codec, left);
  return digest !== undefined && digest === digestArgs(codec, right);
}

/** Sorts the keys of all objects in a value. */
export function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isPlainObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys(value[key])]));
}
