/** The arguments of a call in a few characters, by which they are told from others. */
import { fingerprint } from "../../base/ids.ts";
import { isPlainObject, sameData } from "../../base/json.ts";
import type { Codec } from "../../state/codec.ts";

/** What tells the arguments of a call from others; nothing for those that cannot be saved. */
export function argsDigest(codec: Codec, args: unknown): string | undefined {
  try {
    return fingerprint(codec.encode(inOneOrder(args), "the arguments of a call"));
  } catch {
    return undefined;
  }
}

/** Whether two are the same arguments. Those that hold what cannot be saved are others with each parsing. */
export function sameArgs(codec: Codec, one: unknown, other: unknown): boolean {
  if (sameData(one, other)) return true;
  const digest = argsDigest(codec, one);
  return digest !== undefined && digest === argsDigest(codec, other);
}

/** Objects with their keys in one order, whoever wrote them. */
function inOneOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOneOrder);
  if (!isPlainObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, inOneOrder(value[key])]));
}
