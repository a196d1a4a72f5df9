import { isPlainObject, type JsonObject } from "../../base/json.ts";

/** Resolves a local reference; undefined for an unknown target. */
export function resolveRef(root: JsonObject, ref: string): unknown {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let current: unknown = root;
  for (const step of ref.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!(isPlainObject(current) || Array.isArray(current)) || !Object.hasOwn(current, key)) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}
