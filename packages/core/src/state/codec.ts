/**
 * Codec of saved values: lossless for a closed set of types; all other types are refused.
 *
 * The format is JSON, in which `{ "$": tag, "v": … }` represents a value without a JSON form. Decoding never
 * constructs a class named in the data: only the tags below and the codecs registered in code are known (rules E48,
 * R1).
 */
import { fromBase64, toBase64 } from "../base/base64.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { ignoreRejections } from "../base/ignore-rejections.ts";
import {
  describeValue,
  isJson,
  isPlainObject,
  isRegExpMatch,
  maxDepth,
  maxSavedDepth,
  maxValueCharacters,
} from "../base/json.ts";
import { checkOptions } from "../base/options.ts";

/**
 * Codec of a class. `tag` is written into the file and must never change. When the output of `encode` changes,
 * increment `version`; `upgrade` converts the data of an earlier version to the input of the current `decode`.
 */
export interface ClassCodec<Instance = unknown> {
  readonly tag: string;
  /** Integer from 1. Default 1. */
  readonly version?: number;
  /** Converts data that `encode` of version `from` wrote. */
  readonly upgrade?: (data: unknown, from: number) => unknown;
  readonly matches: (value: unknown) => value is Instance;
  encode(value: Instance): unknown;
  readonly decode: (data: unknown) => Instance;
}

/** Converts values to text and back. */
export interface Codec {
  /**
   * Encodes `value`. Throws `unencodable_value` with the path of the unsupported part. `what` names the value in the
   * message.
   */
  encode(value: unknown, what: string): string;
  /** Decodes the output of `encode`. Throws `store_corrupt` for other text. */
  decode(text: string): unknown;
}

const errorClasses = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/** Tags of the format; forbidden for class codecs. */
const builtInTags: ReadonlySet<string> = new Set(
  "undefined number bigint date url regexp set map bytes error object bare hole".split(" "),
);

const views = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
  ...listHalfFloats(),
};

/** Returns Float16Array where the platform has this type. */
function listHalfFloats(): Record<string, new (buffer: ArrayBufferLike) => unknown> {
  const { Float16Array } = globalThis as { Float16Array?: new (buffer: ArrayBufferLike) => unknown };
  return Float16Array === undefined ? {} : { Float16Array };
}

/** State of a traversal, shared by all levels of a value. Paths are built only for errors. */
interface Traversal {
  /** Remaining bytes of the value. */
  bytesLeft: number;
  /** Maximum nesting levels. */
  readonly maxLevels: number;
  /** Enclosing objects, to detect cycles. */
  readonly ancestors: object[];
  readonly encodeChild: (child: unknown, key: string | number) => unknown;
  /** Creates the error for an unsupported value at the current path. */
  readonly refuse: (found: string, cause?: unknown) => StatewrightError;
}

/** Encoders for engine-made values that wrap user values, with a larger level limit. */
const wrapperEncoders: WeakMap<Codec, Codec["encode"]> = new WeakMap();

/** Options of a codec. */
export interface CodecOptions {
  /** Maximum bytes and characters of a value; larger values are refused before encoding. Default 64 Mi. */
  readonly maxValueBytes?: number;
}

/** Creates a codec for plain data, the built-in types of rule E48, and the given classes. */
export function createCodec(classes: readonly ClassCodec[] = [], options: CodecOptions = {}): Codec {
  checkOptions("createCodec", options, ["maxValueBytes"]);
  const { maxValueBytes = maxValueCharacters } = options;
  checkLimit(maxValueBytes);
  const byTag = new Map(classes.map((codec) => [codec.tag, codec]));
  checkTags(classes);

  function encodeValue(value: unknown, traversal: Traversal): unknown {
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
    if (traversal.bytesLeft < 0) throw traversal.refuse(`more than ${maxValueBytes} bytes`);
  }

  function encodeContents(value: object, traversal: Traversal): unknown {
    const { encodeChild } = traversal;
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

  function createTraversal(what: string, levels: number): Traversal {
    const keys: (string | number)[] = [];
    const traversal: Traversal = {
      ancestors: [],
      bytesLeft: maxValueBytes,
      maxLevels: levels,
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

  /** Returns the JSON text of a plain value, the common case; undefined for other values. */
  function toPlainText(value: unknown): string | undefined {
    try {
      return classes.length === 0 && isJson(value, maxValueBytes) ? JSON.stringify(value) : undefined;
    } catch {
      // Unreadable value: the traversal throws an error with the path.
      return undefined;
    }
  }

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
    if (codec !== undefined)
      return codec.decode(upgradeData(codec, decodeValue(tagged["v"]), Number(tagged["n"] ?? 1)));
    return decodeBuiltIn(tag, tagged["v"], decodeValue);
  }

  function toText(value: unknown, what: string, levels: number): string {
    const plain = toPlainText(value);
    if (plain !== undefined) return plain;
    const traversal = createTraversal(what, levels);
    try {
      return JSON.stringify(encodeValue(value, traversal));
    } catch (thrown) {
      ignoreRejections(value);
      if (isStatewrightError(thrown)) throw thrown;
      throw traversal.refuse(`an unreadable value (${describeThrown(thrown)})`, thrown);
    }
  }

  const codec: Codec = {
    encode: (value, what) => toText(value, what, maxDepth),
    decode: (text) => {
      try {
        const data: unknown = JSON.parse(text);
        return isPlainText(text) ? data : decodeValue(data);
      } catch (cause) {
        throw isStatewrightError(cause) ? cause : createCorruptError("a saved value cannot be read", cause);
      }
    },
  };
  wrapperEncoders.set(codec, (value, what) => toText(value, what, maxSavedDepth));
  return codec;
}

/**
 * Encodes an engine-made value that wraps accepted user values; the added levels do not count against the level
 * limit.
 */
export function encodeWrapper(codec: Codec, value: unknown, what: string): string {
  const encode = wrapperEncoders.get(codec);
  return encode === undefined ? codec.encode(value, what) : encode(value, what);
}

/** Returns true if the text is plain JSON, without tagged values. */
export function isPlainText(text: string): boolean {
  return !text.includes('"$":');
}

/** Codec of plain data and built-in types, without class codecs. */
export const plainCodec: Codec = createCodec();

/** Formats a path for messages; truncates a long path in the middle. */
function formatPath(keys: readonly (string | number)[]): string {
  return keys.length <= 20 ? keys.join(".") : [...keys.slice(0, 8), "…", ...keys.slice(-2)].join(".");
}

/** Cache of guarded codecs. */
const guardedCodecs: WeakMap<Codec, Codec> = new WeakMap();

/** Wraps a user-written codec: its failures become Statewright errors with the original error as cause. */
export function createGuardedCodec(codec: Codec): Codec {
  if (codec === plainCodec) return codec;
  const known = guardedCodecs.get(codec);
  if (known !== undefined) return known;
  const guard: Codec = {
    encode: (value, what) => {
      let text: unknown;
      try {
        text = codec.encode(value, what);
      } catch (cause) {
        ignoreRejections(value);
        if (isStatewrightError(cause)) throw cause;
        throw createUnencodableError(what, "", `a value on which the codec failed (${describeThrown(cause)})`, cause);
      }
      if (typeof text === "string") return text;
      throw createUnencodableError(what, "", "a value that the codec did not encode as a string");
    },
    decode: (text) => {
      try {
        return codec.decode(text);
      } catch (cause) {
        throw isStatewrightError(cause)
          ? cause
          : createCorruptError(`the codec could not read a saved value (${describeThrown(cause)})`, cause);
      }
    },
  };
  guardedCodecs.set(codec, guard);
  const encode = wrapperEncoders.get(codec);
  if (encode !== undefined) wrapperEncoders.set(guard, encode);
  return guard;
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

/** Marker of an array hole: `map` and `forEach` skip a hole, but not `undefined`. */
const hole = { $: "hole" };

function isHole(item: unknown): boolean {
  return typeof item === "object" && item !== null && "$" in item && item.$ === hole.$;
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
    if (kind !== "Buffer" && !Object.hasOwn(views, kind)) return undefined;
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
  return Object.hasOwn(errorClasses, getClassName(error)) ? getClassName(error) : "Error";
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
  if (!Object.hasOwn(views, kind))
    throw createCorruptError(`a saved value has the unknown byte type "${kind}"`, undefined);
  const View: new (buffer: ArrayBufferLike) => unknown = views[kind as keyof typeof views];
  return new View(bytes.buffer);
}

function decodeError(data: unknown, decodeValue: (value: unknown) => unknown): Error {
  if (!isPlainObject(data)) throw createCorruptError("a saved error is not an object", undefined);
  const kind = String(data["class"]);
  const Class = Object.hasOwn(errorClasses, kind) ? errorClasses[kind as keyof typeof errorClasses] : Error;
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

function getVersion({ version = 1 }: ClassCodec): number {
  return version;
}

/** Upgrades data of an earlier version of a class codec. */
function upgradeData(codec: ClassCodec, data: unknown, from: number): unknown {
  const version = getVersion(codec);
  if (from === version) return data;
  if (from < version && codec.upgrade !== undefined) return codec.upgrade(data, from);
  throw new StatewrightError("store_newer", {
    what: `a saved value of "${codec.tag}" was written by version ${from} of its codec, but the current version is ${version}`,
    next: "Use the code that wrote the value, or a newer version",
  });
}

function checkVersion({ tag, version = 1, upgrade }: ClassCodec): void {
  const isVersion = Number.isInteger(version) && version >= 1;
  if (isVersion && (version === 1 || upgrade !== undefined)) return;
  throw new StatewrightError("invalid_option", {
    what: isVersion
      ? `the codec "${tag}" has version ${version}, but no upgrade from earlier versions`
      : `the codec "${tag}": expected an integer ≥ 1 as version, got ${describeValue(version)}`,
    next: isVersion ? "Give upgrade: (data, from) => …" : "Use an integer from 1",
  });
}

function checkLimit(maxValueBytes: number): void {
  if (Number.isInteger(maxValueBytes) && maxValueBytes >= 1) return;
  throw new StatewrightError("invalid_option", {
    what: `createCodec: expected an integer ≥ 1 as maxValueBytes, got ${String(maxValueBytes)}`,
    next: "Use an integer number of bytes from 1",
  });
}

function checkTags(classes: readonly ClassCodec[]): void {
  const seen = new Set(builtInTags);
  for (const codec of classes) {
    const { tag } = codec;
    checkVersion(codec);
    if (seen.has(tag)) {
      throw new StatewrightError("invalid_option", {
        what: `the tag "${tag}" of a class codec is already in use`,
        next: "Use a unique tag for each class, different from the built-in types",
      });
    }
    seen.add(tag);
  }
}

function defineEntry(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

function copyObject(object: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) defineEntry(copy, key, object[key]);
  return copy;
}

function expectList(data: unknown): unknown[] {
  if (Array.isArray(data)) return data;
  throw createCorruptError("a saved value is malformed: expected a list", undefined);
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

function createUnencodableError(what: string, path: string, found: string, cause?: unknown): StatewrightError {
  return new StatewrightError("unencodable_value", {
    what: `${what} contains ${found}${path === "" ? "" : ` at "${path}"`}, which cannot be saved`,
    next: found.endsWith(" bytes")
      ? "Store large values in files or artifacts and save their names, or raise maxValueBytes of createCodec"
      : "Use plain data in state and results: await promises, remove functions, and register a codec for each class",
    place: path === "" ? {} : { path },
    cause,
  });
}

function createCorruptError(what: string, cause: unknown, hint?: string): StatewrightError {
  const restore = "Restore the file from a backup, or fork from the last good checkpoint";
  const next = hint === undefined ? restore : `${hint}. Otherwise restore the file from a backup`;
  return new StatewrightError("store_corrupt", { what, next, cause });
}
