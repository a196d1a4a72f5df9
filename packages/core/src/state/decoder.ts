/** Decoder of the codec: restores values from JSON data with tagged values. */
import { fromBase64 } from "../base/base64.ts";
import { StatewrightError } from "../base/errors.ts";
import { isPlainObject } from "../base/json.ts";
import { builtInTags, type ClassCodec, upgradeData } from "./class-codec.ts";
import { defineEntry, errorClasses, hole, views } from "./value-tags.ts";

/** Converts a tagged value that no codec decodes. */
export type ForeignConverter = (tag: string, data: unknown) => unknown;

/**
 * Creates the decoder of JSON data; lists and objects of the data are changed in place. With `toForeign`, a value of an
 * unknown class is converted, and so is a value that its class codec refuses; both fail otherwise.
 */
export function createDecoder(
  classes: readonly ClassCodec[],
  toForeign?: ForeignConverter,
): (data: unknown) => unknown {
  const byTag = new Map(classes.map((codec) => [codec.tag, codec]));
  return decodeValue;

  function decodeValue(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        if (isHole(value[index])) delete value[index];
        else value[index] = decodeValue(value[index]);
      }
      return value;
    }
    const record = value as Record<string, unknown>;
    if (Object.hasOwn(record, "$")) return decodeTagged(record);
    for (const key of Object.keys(record)) {
      const child = record[key];
      if (typeof child === "object" && child !== null) defineEntry(record, key, decodeValue(child));
    }
    return record;
  }

  function decodeTagged(tagged: Record<string, unknown>): unknown {
    const tag = String(tagged["$"]);
    const codec = byTag.get(tag);
    if (codec !== undefined) return decodeInstance(codec, tagged);
    if (toForeign !== undefined && !builtInTags.has(tag)) return toForeign(tag, decodeValue(tagged["v"]));
    return decodeBuiltIn(tag, tagged["v"], decodeValue);
  }

  function decodeInstance(codec: ClassCodec, tagged: Record<string, unknown>): unknown {
    const data = decodeValue(tagged["v"]);
    try {
      return codec.decode(upgradeData(codec, data, Number(tagged["n"] ?? 1)));
    } catch (thrown) {
      if (toForeign === undefined) throw thrown;
      return toForeign(codec.tag, data);
    }
  }
}

function isHole(item: unknown): boolean {
  return typeof item === "object" && item !== null && "$" in item && item.$ === hole.$;
}

function decodeBuiltIn(tag: string, data: unknown, decodeValue: (value: unknown) => unknown): unknown {
  switch (tag) {
    case "undefined":
      return undefined;
    case "number":
      return Number(data);
    case "bigint":
      return BigInt(String(data));
    case "date":
      return new Date(data === null ? Number.NaN : Number(data));
    case "url":
      return new URL(String(data));
    case "regexp":
      return decodeRegExp(expectList(data));
    case "set":
      return new Set(expectList(data).map(decodeValue));
    case "map":
      return new Map(
        expectList(data).map((entry) => [decodeValue(expectList(entry)[0]), decodeValue(expectList(entry)[1])]),
      );
    case "bytes":
      return decodeBytes(String(expectList(data)[0]), fromBase64(String(expectList(data)[1])));
    case "error":
      return decodeError(data, decodeValue);
    case "bare":
    case "object": {
      const object: Record<string, unknown> = tag === "bare" ? Object.create(null) : {};
      for (const entry of expectList(data))
        defineEntry(object, String(expectList(entry)[0]), decodeValue(expectList(entry)[1]));
      return object;
    }
    default:
      throw createCorruptError(
        `a saved value has the unknown tag "${tag}"`,
        undefined,
        `If "${tag}" is a class of the application, pass its codec here too: codec: createCodec([…])`,
      );
  }
}

function decodeRegExp([source, flags, lastIndex]: readonly unknown[]): RegExp {
  const expression = new RegExp(String(source), String(flags));
  expression.lastIndex = Number(lastIndex ?? 0);
  return expression;
}

function decodeBytes(kind: string, bytes: Uint8Array): unknown {
  if (kind === "ArrayBuffer") return bytes.buffer;
  if (kind === "Buffer") {
    const buffer = (globalThis as { Buffer?: { from(data: ArrayBufferLike): Uint8Array } }).Buffer;
    return buffer === undefined ? bytes : buffer.from(bytes.buffer);
  }
  const View = views.get(kind);
  if (View === undefined) throw createCorruptError(`a saved value has the unknown byte type "${kind}"`, undefined);
  return new View(bytes.buffer);
}

function decodeError(data: unknown, decodeValue: (value: unknown) => unknown): Error {
  if (!isPlainObject(data)) throw createCorruptError("a saved error is not an object", undefined);
  const kind = String(data["class"]);
  const Class = errorClasses.get(kind) ?? Error;
  const options = "cause" in data ? { cause: decodeValue(data["cause"]) } : undefined;
  const error =
    kind === "AggregateError"
      ? new AggregateError([], String(data["message"]), options)
      : new Class(String(data["message"]), options);
  if (error.name !== data["name"])
    Object.defineProperty(error, "name", { value: data["name"], configurable: true, writable: true });
  Object.defineProperty(error, "stack", { value: data["stack"], configurable: true, writable: true });
  for (const entry of expectList(data["own"])) {
    const [key, value] = expectList(entry);
    if (key === "errors" && error instanceof AggregateError) error.errors = decodeValue(value) as unknown[];
    else if (key !== "name") defineEntry(error, String(key), decodeValue(value));
  }
  return error;
}

function expectList(data: unknown): unknown[] {
  if (Array.isArray(data)) return data;
  throw createCorruptError("a saved value is malformed: expected a list", undefined);
}

export function createCorruptError(what: string, cause: unknown, hint?: string): StatewrightError {
  const restore = "Restore the file from a backup, or fork from the last good checkpoint";
  const next = hint === undefined ? restore : `${hint}. Otherwise restore the file from a backup`;
  return new StatewrightError("store_corrupt", { what, next, cause });
}
