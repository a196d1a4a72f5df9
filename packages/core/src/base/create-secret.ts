/** Secret keys, from the random source of the platform: the random numbers of a world are not secure. */
import { toBase64 } from "./base64.ts";

/** Creates a secret of 256 random bits, as base64. */
export function createSecret(): string {
  return toBase64(crypto.getRandomValues(new Uint8Array(32)));
}
