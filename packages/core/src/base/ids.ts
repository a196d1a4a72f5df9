/** Ids: a single grammar for names and ids from outside, and fresh ids from the world's random source. */
import { StatewrightError } from "./errors.ts";
import { describeValue } from "./json.ts";
import type { Random } from "./world.ts";

const grammar = /^[A-Za-z0-9_.:-]{1,128}$/;
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Returns true if objects inherit a property of this name, such as `constructor` (rule R5). Reserved names are
 * invalid ids.
 */
export function isReserved(name: string): boolean {
  return reserved.has(name);
}

/**
 * Returns `id` when it matches `[A-Za-z0-9_.:-]{1,128}` (rule R4), without normalization. Throws `invalid_id`
 * otherwise.
 */
export function checkId(what: string, id: string): string {
  if (isId(id)) return id;
  throw new StatewrightError("invalid_id", {
    what:
      typeof id === "string"
        ? `the ${what} ${describeValue(id)} is not a valid id`
        : `the ${what} must be an id, got ${describeValue(id)}`,
    next: isReserved(id)
      ? "Use another id: every object has a property of this name"
      : "Use 1 to 128 of the characters A-Z a-z 0-9 _ . : -",
  });
}

/** Returns true for an id that `checkId` accepts. */
export function isId(id: unknown): id is string {
  return typeof id === "string" && grammar.test(id) && !reserved.has(id);
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** Creates an id of `prefix` and 20 characters with 100 random bits. */
export function createId(prefix: string, random: Random): string {
  let id = prefix;
  for (let index = 0; index < 20; index++) id += alphabet[Math.floor(random.next() * 32)];
  return id;
}

/** Hashes a text (FNV-1a, 64 bits, as 16 hex digits) to distinguish versions. Not secure against forgery. */
export function fingerprint(text: string): string {
  let low = 0x84222325;
  let high = 0xcbf29ce4;
  for (let index = 0; index < text.length; index++) {
    low ^= text.charCodeAt(index);
    const product = Math.imul(low, 0x1b3);
    const carry = Math.floor(((low >>> 0) * 0x1b3) / 2 ** 32);
    high = (Math.imul(high, 0x1b3) + carry + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
}
