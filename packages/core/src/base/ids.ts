/** Identities: one grammar for every name and id that crosses a border, and fresh ids from the world's chance. */
import { StatewrightError } from "./errors.ts";
import { describeValue } from "./json.ts";
import type { Random } from "./world.ts";

const grammar = /^[A-Za-z0-9_.:-]{1,128}$/;
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Whether objects have a name of their own that code looks up in them: no name of ours is one (rule R5). */
export function isReserved(name: string): boolean {
  return reserved.has(name);
}

/** Return `id` when it fits the grammar `[A-Za-z0-9_.:-]{1,128}` (rule R4); throws `invalid_id` otherwise. Nothing is normalised. */
export function checkId(what: string, id: string): string {
  if (typeof id === "string" && grammar.test(id) && !reserved.has(id)) return id;
  throw new StatewrightError("invalid_id", {
    what: `the ${what} ${describeValue(id)} is not an id`,
    next: isReserved(id)
      ? "Use another: objects have this name by themselves"
      : "Use 1 to 128 of the characters A-Z a-z 0-9 _ . : -",
  });
}

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** A fresh id of 20 characters after `prefix`, 100 bits of chance. */
export function freshId(prefix: string, random: Random): string {
  let id = prefix;
  for (let index = 0; index < 20; index++) id += alphabet[Math.floor(random.next() * 32)];
  return id;
}

/** A short fingerprint of a text (FNV-1a, 64 bits, as 16 hex digits): tells versions apart, is no defence against forgery. */
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
