/**
 * Codec of saved values: lossless for a closed set of types; all other types are refused.
 *
 * The format is JSON, in which `{ "$": tag, "v": … }` represents a value without a JSON form. Decoding never
 * constructs a class named in the data: only the tags below and the codecs registered in code are known (rules E48,
 * R1).
 */
import { describeThrown, isStatewrightError } from "../base/errors.ts";
import { ignoreRejections } from "../base/ignore-rejections.ts";
import { isJson, maxDepth, maxSavedDepth, maxValueCharacters } from "../base/json.ts";
import { checkCount, checkOptions } from "../base/options.ts";
import { type ClassCodec, checkClassCodecs } from "./class-codec.ts";
import { createCorruptError, createDecoder } from "./decoder.ts";
import { createTraversal, createUnencodableError, encodeValue } from "./encoder.ts";

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
  checkCount("createCodec", { maxValueBytes });
  checkClassCodecs(classes);
  const decodeValue = createDecoder(classes);

  /** Returns the JSON text of a plain value, the common case; undefined for other values. */
  function toPlainText(value: unknown): string | undefined {
    try {
      return classes.length === 0 && isJson(value, maxValueBytes) ? JSON.stringify(value) : undefined;
    } catch {
      // Unreadable value: the traversal throws an error with the path.
      return undefined;
    }
  }

  function toText(value: unknown, what: string, levels: number): string {
    const plain = toPlainText(value);
    if (plain !== undefined) return plain;
    const traversal = createTraversal({ what, classes, maxBytes: maxValueBytes, maxLevels: levels });
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
    decode: (text) => decodeWith(decodeValue, text),
  };
  wrapperEncoders.set(codec, (value, what) => toText(value, what, maxSavedDepth));
  return codec;
}

/** Decodes a text with a decoder of its tagged values. Throws `store_corrupt`. */
export function decodeWith(decodeValue: (data: unknown) => unknown, text: string): unknown {
  try {
    const data: unknown = JSON.parse(text);
    return isPlainText(text) ? data : decodeValue(data);
  } catch (cause) {
    throw isStatewrightError(cause) ? cause : createCorruptError("a saved value cannot be read", cause);
  }
}

/**
 * Encodes an engine-made value that wraps accepted user values; the added levels do not count against the level
 * limit.
 */
export function encodeWrapper(codec: Codec, value: unknown, what: string): string {
  const encode = wrapperEncoders.get(codec);
  return encode === undefined ? codec.encode(value, what) : encode(value, what);
}

/**
 * Returns true if a decoding failed because the text is no JSON, so that no process can decode it. A class that this
 * process has not registered fails otherwise.
 */
export function isMalformedText(error: unknown): boolean {
  return isStatewrightError(error, "store_corrupt") && error.cause instanceof SyntaxError;
}

/** Returns true if the text is plain JSON, without tagged values. */
export function isPlainText(text: string): boolean {
  return !text.includes('"$":');
}

/** Codec of plain data and built-in types, without class codecs. */
export const plainCodec: Codec = createCodec();

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
