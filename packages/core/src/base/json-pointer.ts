/** JSON Pointer (RFC 6901): the path of a part in a value. */
import { invalidOption } from "./invalid-option.ts";
import { isPlainObject } from "./json.ts";

/** Parses a pointer: `""` for the whole value, `/a/0` for a part. Throws `invalid_option`. */
export function parseJsonPointer(where: string, pointer: unknown): readonly string[] {
  const isPointer =
    typeof pointer === "string" && (pointer === "" || pointer.startsWith("/")) && !/~(?![01])/.test(pointer);
  if (!isPointer)
    throw invalidOption({
      where,
      option: "path",
      expected: "a JSON Pointer",
      got: pointer,
      fix: 'Use "" for the whole state, or a path such as "/messages/0/content"',
    });
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Formats the pointer of a path. */
export function toJsonPointer(path: readonly (string | number)[]): string {
  return path.map((token) => `/${String(token).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Part of a value; `exists` is false when the value has no such part. */
export interface FoundPart {
  readonly exists: boolean;
  readonly value: unknown;
}

/** Finds the part of a value at a path of own keys and list indices. */
export function findPart(value: unknown, path: readonly string[]): FoundPart {
  let part = value;
  for (const token of path) {
    if (Array.isArray(part)) {
      if (!isIndex(token) || Number(token) >= part.length) return missing;
      part = part[Number(token)];
    } else {
      if (!isPlainObject(part) || !Object.hasOwn(part, token)) return missing;
      part = part[token];
    }
  }
  return { exists: true, value: part };
}

/** Returns true for the token of a list index. */
export function isIndex(token: string): boolean {
  return /^(?:0|[1-9]\d*)$/.test(token);
}

const missing: FoundPart = Object.freeze({ exists: false, value: undefined });
