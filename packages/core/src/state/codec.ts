/**
 * The codec of saved values: lossless for a closed set of types, closed for everything else.
 *
 * Text is JSON in which an object `{ "$": tag, "v": … }` stands for a value that JSON has no form for. What a text
 * names is never constructed: only the tags below and codecs registered in code are known (rules E48, R1).
 */
import { fromBase64, toBase64 } from "../base/base64.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { disregardPromises } from "../base/ignore-rejections.ts";
import {
  deepestLevel,
  deepestSaved,
  describeValue,
  isJson,
  isMatch,
  isPlainObject,
  largestValue,
} from "../base/json.ts";
import { checkOptions } from "../base/options.ts";

/**
 * How values of one class are saved and made again. `tag` is written into the file and must never change; when what `encode`
 * gives changes, `version` counts up, and `upgrade` makes what an earlier version gave into what `decode` takes now.
 */
export interface ClassCodec<Instance = unknown> {
  readonly tag: string;
  /** A whole number from 1, which is the default. */
  readonly version?: number;
  /** Data of the version `from`, as that version's `encode` gave it. */
  readonly upgrade?: (data: unknown, from: number) => unknown;
  readonly matches: (value: unknown) => value is Instance;
  encode(value: Instance): unknown;
  readonly decode: (data: unknown) => Instance;
}

/** Turns values into text and back. */
export interface Codec {
  /** The text of `value`; throws `unencodable_value` with the path of what cannot be saved. `what` names the value in the message. */
  encode(value: unknown, what: string): string;
  /** The value of a text that `encode` made; throws `store_corrupt` for anything else. */
  decode(text: string): unknown;
}

const errorClasses = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

/** Tags of the format itself: no class may take one. */
const builtIn: ReadonlySet<string> = new Set(
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
  ...halfFloats(),
};

/** The newest typed array, where the platform has it. */
function halfFloats(): Record<string, new (buffer: ArrayBufferLike) => unknown> {
  const { Float16Array } = globalThis as { Float16Array?: new (buffer: ArrayBufferLike) => unknown };
  return Float16Array === undefined ? {} : { Float16Array };
}

/** Where the walk through a value stands. One walk serves a whole value: a path is put together only to name what is refused. */
interface Walk {
  /** How much more text the value may hold. */
  left: number;
  /** How many levels it may have. */
  readonly levels: number;
  /** The objects that hold the one being lowered, to notice a cycle. */
  readonly above: object[];
  readonly down: (child: unknown, key: string | number) => unknown;
  /** The error for what is found here. */
  readonly refuse: (found: string, cause?: unknown) => StatewrightError;
}

/** How codecs encode what holds values that they have taken already. */
const around: WeakMap<Codec, Codec["encode"]> = new WeakMap();

/** What a codec takes besides its classes. */
export interface CodecOptions {
  /** How much text and how many bytes one value may hold; a larger one is refused before it is encoded. Default 64 Mi. */
  readonly maxValueBytes?: number;
}

/** A codec for plain data, the built-in types of rule E48, and the classes given here. */
export function createCodec(classes: readonly ClassCodec[] = [], options: CodecOptions = {}): Codec {
  checkOptions("createCodec", options, ["maxValueBytes"]);
  const { maxValueBytes = largestValue } = options;
  checkLimit(maxValueBytes);
  const byTag = new Map(classes.map((codec) => [codec.tag, codec]));
  checkTags(classes);

  function lower(value: unknown, walk: Walk): unknown {
    switch (typeof value) {
      case "string":
        return counted(value, walk);
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
        throw walk.refuse(`a ${typeof value}`);
    }
    if (value === null) return null;
    if (walk.above.includes(value)) throw walk.refuse("a cycle");
    if (walk.above.length >= walk.levels) throw walk.refuse(`more than ${deepestLevel} levels`);
    walk.above.push(value);
    const lowered = lowerInside(value, walk);
    walk.above.pop();
    return lowered;
  }

  function counted(text: string, walk: Walk): string {
    spend(text.length, walk);
    return text;
  }

  function spend(bytes: number, walk: Walk): void {
    walk.left -= bytes;
    if (walk.left < 0) throw walk.refuse(`more than ${maxValueBytes} bytes`);
  }

  function lowerInside(value: object, walk: Walk): unknown {
    const { down } = walk;
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) spend(value.byteLength, walk);
    const codec = classes.find((each) => each.matches(value));
    if (codec !== undefined) {
      const v = down(encodedBy(codec, value, walk), codec.tag);
      return versionOf(codec) === 1 ? { $: codec.tag, v } : { $: codec.tag, n: codec.version, v };
    }
    if (Array.isArray(value)) {
      if (className(value) !== "Array") throw walk.refuse(`an instance of ${className(value)}`);
      return lowerArray(value, walk);
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null)
      return lowerObject(value as Record<string, unknown>, prototype === null, walk);
    const tagged = lowerBuiltIn(value, down);
    if (tagged === undefined) throw walk.refuse(`an instance of ${className(value)}`);
    return tagged;
  }

  function walkOf(what: string, levels: number): Walk {
    const keys: (string | number)[] = [];
    const walk: Walk = {
      above: [],
      left: maxValueBytes,
      levels,
      down: (child, key) => {
        if (typeof child === "string" && child.length <= walk.left) return counted(child, walk);
        keys.push(key);
        const lowered = lower(child, walk);
        keys.pop();
        return lowered;
      },
      refuse: (found, cause) => unencodable(what, pathOf(keys), found, cause),
    };
    return walk;
  }

  /** The text of what JSON says as it is, which most values are. */
  function plainText(value: unknown): string | undefined {
    try {
      return classes.length === 0 && isJson(value, maxValueBytes) ? JSON.stringify(value) : undefined;
    } catch {
      // What cannot be read is refused by the walk, which knows the way to it.
      return undefined;
    }
  }

  function lift(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        if (isHole(value[index])) delete value[index];
        else value[index] = lift(value[index]);
      }
      return value;
    }
    const record = value as Record<string, unknown>;
    if (Object.hasOwn(record, "$")) return liftTagged(record);
    for (const key of Object.keys(record)) {
      const child = record[key];
      if (typeof child === "object" && child !== null) define(record, key, lift(child));
    }
    return record;
  }

  function liftTagged(tagged: Record<string, unknown>): unknown {
    const tag = String(tagged["$"]);
    const codec = byTag.get(tag);
    if (codec !== undefined) return codec.decode(upgraded(codec, lift(tagged["v"]), Number(tagged["n"] ?? 1)));
    return liftBuiltIn(tag, tagged["v"], lift);
  }

  function encoded(value: unknown, what: string, levels: number): string {
    const plain = plainText(value);
    if (plain !== undefined) return plain;
    const walk = walkOf(what, levels);
    try {
      return JSON.stringify(lower(value, walk));
    } catch (thrown) {
      disregardPromises(value);
      if (isStatewrightError(thrown)) throw thrown;
      throw walk.refuse(`a value that cannot be read (${describeThrown(thrown)})`, thrown);
    }
  }

  const codec: Codec = {
    encode: (value, what) => encoded(value, what, deepestLevel),
    decode: (text) => {
      try {
        const data: unknown = JSON.parse(text);
        return isPlainText(text) ? data : lift(data);
      } catch (cause) {
        throw isStatewrightError(cause) ? cause : corrupt("a saved value cannot be read", cause);
      }
    },
  };
  around.set(codec, (value, what) => encoded(value, what, deepestSaved));
  return codec;
}

/** The text of what the engine makes around values that were admitted: none of them is refused for the levels that this adds. */
export function encodeAround(codec: Codec, value: unknown, what: string): string {
  const encode = around.get(codec);
  return encode === undefined ? codec.encode(value, what) : encode(value, what);
}

/** Whether a text of the format stands for what JSON makes of it, with no value that JSON has no form for. */
export function isPlainText(text: string): boolean {
  return !text.includes('"$":');
}

/** The codec of plain data and built-in types, without registered classes. */
export const plainCodec: Codec = createCodec();

/** A path as a message shows it: a long one is cut in the middle. */
function pathOf(keys: readonly (string | number)[]): string {
  return keys.length <= 20 ? keys.join(".") : [...keys.slice(0, 8), "…", ...keys.slice(-2)].join(".");
}

/** Wrappers of codecs that others wrote, each made once. */
const guarded: WeakMap<Codec, Codec> = new WeakMap();

/** A codec that others wrote, whose failures are errors of ours with the original as their cause. */
export function guardedCodec(codec: Codec): Codec {
  if (codec === plainCodec) return codec;
  const known = guarded.get(codec);
  if (known !== undefined) return known;
  const guard: Codec = {
    encode: (value, what) => {
      let text: unknown;
      try {
        text = codec.encode(value, what);
      } catch (cause) {
        disregardPromises(value);
        if (isStatewrightError(cause)) throw cause;
        throw unencodable(what, "", `a value that the codec failed on (${describeThrown(cause)})`, cause);
      }
      if (typeof text === "string") return text;
      throw unencodable(what, "", "a value of which the codec made no text");
    },
    decode: (text) => {
      try {
        return codec.decode(text);
      } catch (cause) {
        throw isStatewrightError(cause)
          ? cause
          : corrupt(`the codec could not read a saved value (${describeThrown(cause)})`, cause);
      }
    },
  };
  guarded.set(codec, guard);
  const encode = around.get(codec);
  if (encode !== undefined) around.set(guard, encode);
  return guard;
}

function lowerArray(list: readonly unknown[], { down, refuse }: Walk): unknown {
  if (isMatch(list)) throw refuse("a match of a regular expression");
  let changed: unknown[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const child = list[index];
    const lowered = child === undefined && !(index in list) ? hole : down(child, index);
    if (lowered !== child && changed === undefined) changed = list.slice(0, index);
    changed?.push(lowered);
  }
  return changed ?? list;
}

/** A place of a list at which nothing was ever put: `map` and `forEach` pass it over, as they do not pass over `undefined`. */
const hole = { $: "hole" };

function isHole(item: unknown): boolean {
  return typeof item === "object" && item !== null && "$" in item && item.$ === hole.$;
}

function lowerObject(object: Record<string, unknown>, isBare: boolean, { down, refuse }: Walk): unknown {
  if (Object.getOwnPropertySymbols(object).length > 0) throw refuse("a symbol as a key");
  let changed: Record<string, unknown> | undefined;
  const keys = Object.keys(object);
  for (const key of keys) {
    const child = object[key];
    const lowered = down(child, key);
    if (lowered === child && key !== "toJSON") continue;
    changed ??= copyOf(object);
    define(changed, key, lowered);
  }
  const plain = changed ?? object;
  return isBare || keys.includes("$") || keys.includes("toJSON")
    ? { $: isBare ? "bare" : "object", v: keys.map((key) => [key, plain[key]]) }
    : plain;
}

function lowerBuiltIn(value: object, down: (child: unknown, key: string | number) => unknown): unknown {
  const kind = className(value);
  if (value instanceof Error) return lowerError(value, down);
  if (kind === "Date" && value instanceof Date)
    return { $: "date", v: Number.isNaN(value.getTime()) ? null : value.getTime() };
  if (kind === "Map" && value instanceof Map)
    return { $: "map", v: [...value].map(([key, item], index) => [down(key, index), down(item, index)]) };
  if (kind === "Set" && value instanceof Set)
    return { $: "set", v: [...value].map((item, index) => down(item, index)) };
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

function lowerError(error: Error, down: (child: unknown, key: string) => unknown): unknown {
  const own: [string, unknown][] = [];
  for (const key of Object.keys(error))
    if (key !== "cause" && key !== "stack" && key !== "message") own.push([key, down(error[key as keyof Error], key)]);
  if (error instanceof AggregateError) own.push(["errors", down(error.errors, "errors")]);
  return {
    $: "error",
    v: {
      class: errorClassOf(error),
      name: error.name,
      message: error.message,
      ...(error.stack === undefined ? {} : { stack: error.stack }),
      ...(error.cause === undefined ? {} : { cause: down(error.cause, "cause") }),
      own,
    },
  };
}

function errorClassOf(error: Error): string {
  if (error instanceof AggregateError) return "AggregateError";
  return Object.hasOwn(errorClasses, className(error)) ? className(error) : "Error";
}

function liftBuiltIn(tag: string, data: unknown, lift: (value: unknown) => unknown): unknown {
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
      return liftRegExp(listOf(data));
    case "set":
      return new Set(listOf(data).map(lift));
    case "map":
      return new Map(listOf(data).map((entry) => [lift(listOf(entry)[0]), lift(listOf(entry)[1])]));
    case "bytes":
      return liftBytes(String(listOf(data)[0]), fromBase64(String(listOf(data)[1])));
    case "error":
      return liftError(data, lift);
    case "bare":
    case "object": {
      const object: Record<string, unknown> = tag === "bare" ? Object.create(null) : {};
      for (const entry of listOf(data)) define(object, String(listOf(entry)[0]), lift(listOf(entry)[1]));
      return object;
    }
    default:
      throw corrupt(
        `a saved value has the unknown tag "${tag}"`,
        undefined,
        `If "${tag}" is a class of yours, give the codec that knows it, here too: codec: createCodec([…])`,
      );
  }
}

function liftRegExp([source, flags, lastIndex]: readonly unknown[]): RegExp {
  const expression = new RegExp(String(source), String(flags));
  expression.lastIndex = Number(lastIndex ?? 0);
  return expression;
}

function liftBytes(kind: string, bytes: Uint8Array): unknown {
  if (kind === "ArrayBuffer") return bytes.buffer;
  if (kind === "Buffer") {
    const buffer = (globalThis as { Buffer?: { from(data: ArrayBufferLike): Uint8Array } }).Buffer;
    return buffer === undefined ? bytes : buffer.from(bytes.buffer);
  }
  if (!Object.hasOwn(views, kind)) throw corrupt(`a saved value has the unknown bytes "${kind}"`, undefined);
  const View: new (buffer: ArrayBufferLike) => unknown = views[kind as keyof typeof views];
  return new View(bytes.buffer);
}

function liftError(data: unknown, lift: (value: unknown) => unknown): Error {
  if (!isPlainObject(data)) throw corrupt("a saved error is not an object", undefined);
  const kind = String(data["class"]);
  const Class = Object.hasOwn(errorClasses, kind) ? errorClasses[kind as keyof typeof errorClasses] : Error;
  const options = "cause" in data ? { cause: lift(data["cause"]) } : undefined;
  const error =
    kind === "AggregateError"
      ? new AggregateError([], String(data["message"]), options)
      : new Class(String(data["message"]), options);
  if (error.name !== data["name"])
    Object.defineProperty(error, "name", { value: data["name"], configurable: true, writable: true });
  Object.defineProperty(error, "stack", { value: data["stack"], configurable: true, writable: true });
  for (const entry of listOf(data["own"])) {
    const [key, value] = listOf(entry);
    if (key === "errors" && error instanceof AggregateError) error.errors = lift(value) as unknown[];
    else if (key !== "name") define(error, String(key), lift(value));
  }
  return error;
}

function versionOf({ version = 1 }: ClassCodec): number {
  return version;
}

/** What an earlier version of a class codec has saved, as the one of today takes it. */
function upgraded(codec: ClassCodec, data: unknown, from: number): unknown {
  const version = versionOf(codec);
  if (from === version) return data;
  if (from < version && codec.upgrade !== undefined) return codec.upgrade(data, from);
  throw new StatewrightError("store_newer", {
    what: `a saved value of "${codec.tag}" was written by version ${from} of its codec, and this is version ${version}`,
    next: "Go on with the code that wrote it, or a newer one",
  });
}

function checkVersion({ tag, version = 1, upgrade }: ClassCodec): void {
  const isVersion = Number.isInteger(version) && version >= 1;
  if (isVersion && (version === 1 || upgrade !== undefined)) return;
  throw new StatewrightError("invalid_option", {
    what: isVersion
      ? `the codec "${tag}" is version ${version} and has no upgrade for what earlier ones have saved`
      : `the version of the codec "${tag}" is ${describeValue(version)}`,
    next: isVersion ? "Give upgrade: (data, from) => …" : "Give a whole number from 1",
  });
}

function checkLimit(maxValueBytes: number): void {
  if (Number.isInteger(maxValueBytes) && maxValueBytes >= 1) return;
  throw new StatewrightError("invalid_option", {
    what: `maxValueBytes is ${String(maxValueBytes)}`,
    next: "Give a whole number of bytes from 1",
  });
}

function checkTags(classes: readonly ClassCodec[]): void {
  const seen = new Set(builtIn);
  for (const codec of classes) {
    const { tag } = codec;
    checkVersion(codec);
    if (seen.has(tag)) {
      throw new StatewrightError("invalid_option", {
        what: `the tag "${tag}" of a class codec is taken`,
        next: "Give every class a tag of its own that is no built-in type",
      });
    }
    seen.add(tag);
  }
}

function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}

function copyOf(object: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) define(copy, key, object[key]);
  return copy;
}

function listOf(data: unknown): unknown[] {
  if (Array.isArray(data)) return data;
  throw corrupt("a saved value has a list where none is", undefined);
}

function className(value: object): string {
  return value.constructor?.name ?? "an object without a constructor";
}

function encodedBy(codec: ClassCodec, value: object, { refuse }: Walk): unknown {
  try {
    return codec.encode(value);
  } catch (cause) {
    throw refuse(`a value that the codec "${codec.tag}" failed on`, cause);
  }
}

function unencodable(what: string, path: string, found: string, cause?: unknown): StatewrightError {
  return new StatewrightError("unencodable_value", {
    what: `${what} holds ${found}${path === "" ? "" : ` at "${path}"`}, which cannot be saved`,
    next: found.endsWith(" bytes")
      ? "Keep large things in files or artifacts and save their names, or raise maxValueBytes of createCodec"
      : "Keep plain data in state and results: await promises, leave functions out, and register a codec for a class",
    place: path === "" ? {} : { path },
    cause,
  });
}

function corrupt(what: string, cause: unknown, hint?: string): StatewrightError {
  const restore = "Restore the file from a backup, or fork from the last good checkpoint";
  const next = hint === undefined ? restore : `${hint}. Otherwise restore the file from a backup`;
  return new StatewrightError("store_corrupt", { what, next, cause });
}
