/** Encoder of the codec: converts a value to JSON data with tagged values. */
import { toBase64 } from "../base/base64.ts";
import { StatewrightError } from "../base/errors.ts";
import { isRegExpMatch, maxDepth } from "../base/json.ts";
import { type ClassCodec, getVersion } from "./class-codec.ts";
import { defineEntry, errorClasses, hole, views } from "./value-tags.ts";

/** State of a traversal, shared by all levels of a value. Paths are built only for errors. */
export interface Traversal {
  readonly classes: readonly ClassCodec[];
  /** Maximum bytes and characters of the value. */
  readonly maxBytes: number;
  /** Maximum nesting levels. */
  readonly maxLevels: number;
  /** Remaining bytes of the value. */
  bytesLeft: number;
  /** Enclosing objects, to detect cycles. */
  readonly ancestors: object[];
  readonly encodeChild: (child: unknown, key: string | number) => unknown;
  /** Creates the error for an unsupported value at the current path. */
  readonly refuse: (found: string, cause?: unknown) => StatewrightError;
}

/** Starts the traversal of a value; `what` names the value in errors. */
export function createTraversal({
  what,
  ...limits
}: Pick<Traversal, "classes" | "maxBytes" | "maxLevels"> & { readonly what: string }): Traversal {
  const keys: (string | number)[] = [];
  const traversal: Traversal = {
    ...limits,
    ancestors: [],
    bytesLeft: limits.maxBytes,
    encodeChild: (child, key) => {
      if (typeof child === "string" && child.length <= traversal.bytesLeft) return countText(child, traversal);
      keys.push(key);
      const encodedChild = encodeValue(child, traversal);
      keys.pop();
      return encodedChild;
    },
    refuse: (found, cause) => createUnencodableError(what, formatPath(keys), found, cause),
  };
  return traversal;
}

/** Encodes a value. Throws `unencodable_value` with the path of the unsupported part. */
export function encodeValue(value: unknown, traversal: Traversal): unknown {
  switch (typeof value) {
    case "string":
      return countText(value, traversal);
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $: "number", v: Object.is(value, -0) ? "-0" : String(value) };
    case "bigint":
      return { $: "bigint", v: String(value) };
    case "undefined":
      return { $: "undefined" };
    case "object":
      break;
    default:
      throw traversal.refuse(`a ${typeof value}`);
  }
  if (value === null) return null;
  if (traversal.ancestors.includes(value)) throw traversal.refuse("a cycle");
  if (traversal.ancestors.length >= traversal.maxLevels) throw traversal.refuse(`more than ${maxDepth} levels`);
  traversal.ancestors.push(value);
  const lowered = encodeContents(value, traversal);
  traversal.ancestors.pop();
  return lowered;
}

function countText(text: string, traversal: Traversal): string {
  countBytes(text.length, traversal);
  return text;
}

function countBytes(bytes: number, traversal: Traversal): void {
  traversal.bytesLeft -= bytes;
  if (traversal.bytesLeft < 0) throw traversal.refuse(`more than ${traversal.maxBytes} bytes`);
}

function encodeContents(value: object, traversal: Traversal): unknown {
  const { classes, encodeChild } = traversal;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) countBytes(value.byteLength, traversal);
  const codec = classes.find((each) => each.matches(value));
  if (codec !== undefined) {
    const v = encodeChild(encodeByClass(codec, value, traversal), codec.tag);
    return getVersion(codec) === 1 ? { $: codec.tag, v } : { $: codec.tag, n: codec.version, v };
  }
  if (Array.isArray(value)) {
    if (getClassName(value) !== "Array") throw traversal.refuse(`an instance of ${getClassName(value)}`);
    return encodeArray(value, traversal);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null)
    return encodeObject(value as Record<string, unknown>, traversal, { isBare: prototype === null });
  const tagged = encodeBuiltIn(value, encodeChild);
  if (tagged === undefined) throw traversal.refuse(`an instance of ${getClassName(value)}`);
  return tagged;
}

function encodeArray(list: readonly unknown[], { encodeChild, refuse }: Traversal): unknown {
  if (isRegExpMatch(list)) throw refuse("a match of a regular expression");
  let changed: unknown[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const child = list[index];
    const encoded = child === undefined && !(index in list) ? hole : encodeChild(child, index);
    if (encoded !== child && changed === undefined) changed = list.slice(0, index);
    changed?.push(encoded);
  }
  return changed ?? list;
}

function encodeObject(
  object: Record<string, unknown>,
  { encodeChild, refuse }: Traversal,
  { isBare }: { readonly isBare: boolean },
): unknown {
  if (Object.getOwnPropertySymbols(object).length > 0) throw refuse("a symbol as a key");
  let changed: Record<string, unknown> | undefined;
  const keys = Object.keys(object);
  for (const key of keys) {
    const child = object[key];
    const encoded = encodeChild(child, key);
    if (encoded === child && key !== "toJSON") continue;
    changed ??= copyObject(object);
    defineEntry(changed, key, encoded);
  }
  const plain = changed ?? object;
  return isBare || keys.includes("$") || keys.includes("toJSON")
    ? { $: isBare ? "bare" : "object", v: keys.map((key) => [key, plain[key]]) }
    : plain;
}

function encodeBuiltIn(value: object, encodeChild: (child: unknown, key: string | number) => unknown): unknown {
  const kind = getClassName(value);
  if (value instanceof Error) return encodeError(value, encodeChild);
  if (kind === "Date" && value instanceof Date)
    return { $: "date", v: Number.isNaN(value.getTime()) ? null : value.getTime() };
  if (kind === "Map" && value instanceof Map)
    return { $: "map", v: [...value].map(([key, item], index) => [encodeChild(key, index), encodeChild(item, index)]) };
  if (kind === "Set" && value instanceof Set)
    return { $: "set", v: [...value].map((item, index) => encodeChild(item, index)) };
  if (kind === "URL" && value instanceof URL) return { $: "url", v: value.href };
  if (kind === "RegExp" && value instanceof RegExp)
    return { $: "regexp", v: [value.source, value.flags, value.lastIndex] };
  if (kind === "ArrayBuffer" && value instanceof ArrayBuffer)
    return { $: "bytes", v: ["ArrayBuffer", toBase64(new Uint8Array(value))] };
  if (ArrayBuffer.isView(value)) {
    if (kind !== "Buffer" && !views.has(kind)) return undefined;
    return { $: "bytes", v: [kind, toBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))] };
  }
  return undefined;
}

function encodeError(error: Error, encodeChild: (child: unknown, key: string) => unknown): unknown {
  const ownEntries: [string, unknown][] = [];
  for (const key of Object.keys(error))
    if (key !== "cause" && key !== "stack" && key !== "message")
      ownEntries.push([key, encodeChild(error[key as keyof Error], key)]);
  if (error instanceof AggregateError) ownEntries.push(["errors", encodeChild(error.errors, "errors")]);
  return {
    $: "error",
    v: {
      class: getErrorClass(error),
      name: error.name,
      message: error.message,
      ...(error.stack === undefined ? {} : { stack: error.stack }),
      ...(error.cause === undefined ? {} : { cause: encodeChild(error.cause, "cause") }),
      own: ownEntries,
    },
  };
}

function getErrorClass(error: Error): string {
  if (error instanceof AggregateError) return "AggregateError";
  return errorClasses.has(getClassName(error)) ? getClassName(error) : "Error";
}

function copyObject(object: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) defineEntry(copy, key, object[key]);
  return copy;
}

function getClassName(value: object): string {
  return value.constructor?.name ?? "an object without a constructor";
}

function encodeByClass(codec: ClassCodec, value: object, { refuse }: Traversal): unknown {
  try {
    return codec.encode(value);
  } catch (cause) {
    throw refuse(`a value that the codec "${codec.tag}" failed on`, cause);
  }
}

/** Formats a path for messages; truncates a long path in the middle. */
function formatPath(keys: readonly (string | number)[]): string {
  return keys.length <= 20 ? keys.join(".") : [...keys.slice(0, 8), "…", ...keys.slice(-2)].join(".");
}

export function createUnencodableError(what: string, path: string, found: string, cause?: unknown): StatewrightError {
  return new StatewrightError("unencodable_value", {
    what: `${what} contains ${found}${path === "" ? "" : ` at "${path}"`}, which cannot be saved`,
    next: found.endsWith(" bytes")
      ? "Store large values in files or artifacts and save their names, or raise maxValueBytes of createCodec"
      : "Use plain data in state and results: await promises, remove functions, and register a codec for each class",
    place: path === "" ? {} : { path },
    cause,
  });
}
