/** Hashes for the ids of frames. */
import { hashText } from "../legacy/open-message.ts";

const otherSeed = 0x9e3779b9;

/** Returns a hash of the parts with 64 bits, of the characters that ids of frames may have. */
export function hashIdentity(...parts: readonly unknown[]): string {
  const text = JSON.stringify(parts);
  return `${hashText(text).toString(36)}${hashText(text, otherSeed).toString(36)}`;
}
