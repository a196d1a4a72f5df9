/** Codec of readers without the classes of the application. */
import { StatewrightError } from "../base/errors.ts";
import { type ClassCodec, checkClassCodecs } from "./class-codec.ts";
import { type Codec, decodeWith } from "./codec.ts";
import { createDecoder } from "./decoder.ts";

/** Value of a class without a codec: the tag of the class, and the data that its codec wrote. */
export interface ForeignValue {
  readonly foreign: string;
  readonly data: unknown;
}

/**
 * Creates a codec for reading values whose classes are unknown: each reads as {@link ForeignValue}. Values of the given
 * classes are decoded; a value that its class refuses reads as foreign too.
 *
 * @param classes - Codecs of known classes. Default: none.
 * @throws `invalid_option` for an invalid class codec. `encode` of the codec throws `unencodable_value`: a foreign
 * value would be written as a plain object.
 * @example
 * const codec = createLenientCodec();
 * codec.decode('{"price":{"$":"money","v":{"cents":5}}}'); // { price: { foreign: "money", data: { cents: 5 } } }
 */
export function createLenientCodec(classes: readonly ClassCodec[] = []): Codec {
  checkClassCodecs(classes);
  const decodeValue = createDecoder(classes, (foreign, data): ForeignValue => ({ foreign, data }));
  return {
    encode: (_value, what) => {
      throw new StatewrightError("unencodable_value", {
        what: `${what}: expected a codec that writes, got a lenient codec`,
        next: "Use createCodec([…]) with the codecs of the application's classes to write values",
      });
    },
    decode: (text) => decodeWith(decodeValue, text),
  };
}

/** Codec of readers that get none. */
export const lenientCodec: Codec = createLenientCodec();
