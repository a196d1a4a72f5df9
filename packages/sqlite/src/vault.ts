/**
 * Sealed values: AES-256-GCM over what a thread holds, under keys that its owner gives.
 *
 * A sealed value is a blob: a version byte, the id of its key after its length, a nonce of 12 random bytes, the encrypted
 * text, a tag of 16 bytes. What is authenticated with it is its place: thread, line, row, column, and the plain columns
 * beside it. So a value that was changed, or stands in another place than it was written for, does not open; a value that
 * is not a blob was never sealed.
 *
 * Each thread has a secret of its own, sealed like any value, under which the hashes of its checkpoints are made: a plain
 * hash would tell who has the file that two states are equal, and the hashes outlive a change of keys.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHmac, randomBytes, randomFillSync } from "node:crypto";
import { checkId, StatewrightError } from "@statewright/core";
import { corrupt } from "./errors.ts";

/** A key of 32 bytes and the name by which values remember it. */
export interface EncryptionKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** Where the keys come from: those of a thread, the one that writes first, then older ones that still read. */
export interface Encryption {
  readonly keys: (thread: string) => readonly EncryptionKey[];
}

/** What a payload column holds: text as it is, or sealed. */
export type Payload = string | Uint8Array;

/** Where a value stands: the name of its column, and what tells its row from all others, with the plain columns beside it. */
export type Place = readonly (string | number | boolean | null | undefined)[];

/** What seals and opens the values of one thread. */
export interface Seals {
  seal(text: string, place: Place): Uint8Array;
  /** Throws `store_corrupt` for what was not sealed for this place, `missing_key`. */
  open(value: Payload, place: Place): string;
  /** Whether the key that they write with is still the newest: keys may change while a thread is held. */
  isNewest(): boolean;
  /** Whether a value is sealed with another key than the newest. */
  isOld(value: Payload): boolean;
  /** The hash of a text under the thread's own secret. */
  hash(text: string): string;
}

/** Seals of threads; for a store without encryption there is no vault. */
export interface Vault {
  /** A fresh secret for a new thread, sealed. */
  secret(thread: string): Uint8Array;
  /** The seals of a thread, by its sealed secret. */
  of(thread: string, secret: Payload | null): Seals;
  /** A secret sealed with the newest key; nothing where it is already. */
  again(thread: string, secret: Payload | null): Uint8Array | undefined;
}

const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
const secretPlace: Place = ["threads.secret"];

export function createVault({ keys }: Encryption): Vault {
  return {
    secret: (thread) => sealsOf(thread, ringOf(keys, thread)).seal(randomBytes(32).toString("base64"), secretPlace),
    of: (thread, secret) => {
      const ring = ringOf(keys, thread);
      if (secret === null) throw neverSealed(thread);
      const bare = sealsOf(thread, ring);
      const isNewest = (): boolean => keysFrom(keys, thread)[0]?.id === ring.newest.id;
      const own = Buffer.from(bare.open(secret, secretPlace), "base64");
      return { ...bare, isNewest, hash: (text) => createHmac("sha256", own).update(text).digest("base64") };
    },
    again: (thread, secret) => {
      if (secret === null) throw neverSealed(thread);
      const seals = sealsOf(thread, ringOf(keys, thread));
      return seals.isOld(secret) ? seals.seal(seals.open(secret, secretPlace), secretPlace) : undefined;
    },
  };
}

/** The keys of a thread, the newest first. */
interface Ring {
  readonly newest: EncryptionKey;
  readonly byId: ReadonlyMap<string, Uint8Array>;
  /** What the blobs of the newest key begin with. */
  readonly head: Buffer;
}

function ringOf(keys: Encryption["keys"], thread: string): Ring {
  const given = keysFrom(keys, thread);
  const [newest] = given;
  if (newest === undefined) throw missingKey(thread, undefined);
  for (const { id, key } of given) {
    checkId("id of a key", id);
    if (key instanceof Uint8Array && key.byteLength === keyBytes) continue;
    throw new StatewrightError("invalid_option", {
      what: `the key "${id}" of the thread "${thread}" is not ${keyBytes} bytes`,
      next: "Give a Uint8Array of 32 random bytes",
      place: { thread },
    });
  }
  return { newest, byId: new Map(given.map(({ id, key }) => [id, key])), head: headOf(newest.id) };
}

function keysFrom(keys: Encryption["keys"], thread: string): readonly EncryptionKey[] {
  try {
    return keys(thread);
  } catch (cause) {
    throw new StatewrightError("missing_key", {
      what: `the provider of keys failed for the thread "${thread}"`,
      next: "Look at the cause; nothing was written",
      place: { thread },
      cause,
    });
  }
}

/** Random bytes for many nonces at once: asking for twelve costs half of a seal. No byte of it is used twice. */
const nonces: Buffer = Buffer.alloc(nonceBytes * 512);
let used: number = nonces.length;

function freshNonce(): Buffer {
  if (used === nonces.length) {
    randomFillSync(nonces);
    used = 0;
  }
  used += nonceBytes;
  return nonces.subarray(used - nonceBytes, used);
}

function headOf(id: string): Buffer {
  return Buffer.concat([Buffer.from([format, id.length]), Buffer.from(id, "latin1")]);
}

function sealsOf(thread: string, { newest, byId, head }: Ring): Omit<Seals, "hash" | "isNewest"> {
  const placed = (place: Place): Buffer => Buffer.from(JSON.stringify([thread, ...place]));

  function seal(text: string, place: Place): Uint8Array {
    const nonce = freshNonce();
    const cipher = createCipheriv("aes-256-gcm", newest.key, nonce);
    cipher.setAAD(placed(place));
    const encrypted = cipher.update(text, "utf8");
    // In this mode of AES nothing is left for the end.
    cipher.final();
    return Buffer.concat([head, nonce, encrypted, cipher.getAuthTag()]);
  }

  function open(value: Payload, place: Place): string {
    if (typeof value === "string") throw unsealed(thread, place);
    const blob = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const id = blob[0] === format ? blob.toString("latin1", 2, 2 + (blob[1] ?? 0)) : undefined;
    const start = 2 + (blob[1] ?? 0);
    if (id === undefined || blob.length < start + nonceBytes + tagBytes) throw unsealed(thread, place);
    const key = byId.get(id);
    if (key === undefined) throw missingKey(thread, id);
    const nonce = blob.subarray(start, start + nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(placed(place));
    decipher.setAuthTag(blob.subarray(blob.length - tagBytes));
    try {
      const text = decipher.update(blob.subarray(start + nonceBytes, blob.length - tagBytes));
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch (cause) {
      throw unsealed(thread, place, cause);
    }
  }

  return {
    seal,
    open,
    isOld: (value) => typeof value === "string" || Buffer.compare(value.subarray(0, head.length), head) !== 0,
  };
}

/** The text of a value. A blob in a store without seals was sealed by one that has them. */
export function opened(seals: Seals | undefined, thread: string, value: Payload, place: () => Place): string {
  if (seals !== undefined) return seals.open(value, place());
  if (typeof value === "string") return value;
  throw corrupt("a value is encrypted in a store that is not", { thread });
}

function unsealed(thread: string, [column]: Place, cause?: unknown): StatewrightError {
  return corrupt(`a value in "${String(column)}" is not what was sealed there`, { thread }, cause);
}

function neverSealed(thread: string): StatewrightError {
  return corrupt(`the thread "${thread}" is not encrypted, in a store that is`, { thread });
}

/** The refusal of a value whose key is not there. The key itself is never named, its id is. */
function missingKey(thread: string, id: string | undefined): StatewrightError {
  return new StatewrightError("missing_key", {
    what:
      id === undefined
        ? `the thread "${thread}" has no key`
        : `the thread "${thread}" holds what was sealed with the key "${id}", which is not given`,
    next: "Let `keys` of the store's encryption give it, also after newer ones",
    place: { thread },
    details: { thread, key: id },
  });
}
