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
import { checkId, type ErrorPlace, longTermRules, StatewrightError } from "@statewright/core";
import { corrupt } from "../file/store-errors.ts";

/** A key of 32 bytes and the name by which values remember it. */
export interface EncryptionKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** Where the keys come from: those of a thread, the one that writes first, then older ones that still read. */
export interface Encryption {
  readonly keys: (thread: string) => readonly EncryptionKey[];
  /** Those of a namespace of the long-term store, in the same way. Without it an encrypted store keeps no items. */
  readonly longTerm?: (namespace: readonly string[]) => readonly EncryptionKey[];
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
  /** As {@link seal} and {@link open}, for bytes. */
  sealBytes(bytes: Uint8Array, place: Place): Uint8Array;
  openBytes(value: Payload, place: Place): Uint8Array;
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
  /** The seals of a namespace of the long-term store, with the ids that lead to it. */
  namespace(namespace: string): NamespaceSeals;
}

/** What seals and opens the items of a namespace. */
export type NamespaceSeals = Pick<Seals, "seal" | "open" | "isOld">;

const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
const secretPlace: Place = ["threads.secret"];

export function createVault({ keys, longTerm }: Encryption): Vault {
  const ofThread = (thread: string): Whose => ({
    id: thread,
    name: `the thread "${thread}"`,
    place: { thread },
    option: "keys",
    keys: () => keys(thread),
  });
  // No thread has such an id.
  const ofNamespace = (namespace: string): Whose => ({
    id: `/${namespace}`,
    name: `the namespace "${namespace}" of the long-term store`,
    place: {},
    option: "longTerm",
    keys: () => longTerm?.(longTermRules.namespaceIds(namespace)) ?? [],
  });
  return {
    secret: (thread) => {
      const whose = ofThread(thread);
      return sealsOf(whose, ringOf(whose)).seal(randomBytes(32).toString("base64"), secretPlace);
    },
    of: (thread, secret) => {
      const whose = ofThread(thread);
      const ring = ringOf(whose);
      if (secret === null) throw neverSealed(thread);
      const bare = sealsOf(whose, ring);
      const isNewest = (): boolean => keysFrom(whose)[0]?.id === ring.newest.id;
      const own = Buffer.from(bare.open(secret, secretPlace), "base64");
      return { ...bare, isNewest, hash: (text) => createHmac("sha256", own).update(text).digest("base64") };
    },
    again: (thread, secret) => {
      if (secret === null) throw neverSealed(thread);
      const whose = ofThread(thread);
      const seals = sealsOf(whose, ringOf(whose));
      return seals.isOld(secret) ? seals.seal(seals.open(secret, secretPlace), secretPlace) : undefined;
    },
    namespace: (namespace) => {
      const whose = ofNamespace(namespace);
      return sealsOf(whose, ringOf(whose));
    },
  };
}

/** Whose values are sealed. */
interface Whose {
  /** It is part of what is sealed: no value of one is a value of another. */
  readonly id: string;
  readonly name: string;
  readonly place: ErrorPlace;
  /** What gives the keys. */
  readonly option: keyof Encryption;
  readonly keys: () => readonly EncryptionKey[];
}

/** The keys of a thread or a namespace, the newest first. */
interface Ring {
  readonly newest: EncryptionKey;
  readonly byId: ReadonlyMap<string, Uint8Array>;
  /** What the blobs of the newest key begin with. */
  readonly head: Buffer;
}

function ringOf(whose: Whose): Ring {
  const given = keysFrom(whose);
  const [newest] = given;
  if (newest === undefined) throw missingKey(whose, undefined);
  for (const { id, key } of given) {
    checkId("id of a key", id);
    if (key instanceof Uint8Array && key.byteLength === keyBytes) continue;
    throw new StatewrightError("invalid_option", {
      what: `the key "${id}" of ${whose.name} is not ${keyBytes} bytes`,
      next: "Give a Uint8Array of 32 random bytes",
      place: whose.place,
    });
  }
  return { newest, byId: new Map(given.map(({ id, key }) => [id, key])), head: headOf(newest.id) };
}

function keysFrom({ keys, name, place }: Whose): readonly EncryptionKey[] {
  try {
    return keys();
  } catch (cause) {
    throw new StatewrightError("missing_key", {
      what: `the provider of keys failed for ${name}`,
      next: "Look at the cause; nothing was written",
      place,
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

function sealsOf(whose: Whose, { newest, byId, head }: Ring): Omit<Seals, "hash" | "isNewest"> {
  const placed = (place: Place): Buffer => Buffer.from(JSON.stringify([whose.id, ...place]));

  function seal(value: string | Uint8Array, place: Place): Uint8Array {
    const nonce = freshNonce();
    const cipher = createCipheriv("aes-256-gcm", newest.key, nonce);
    cipher.setAAD(placed(place));
    const encrypted = typeof value === "string" ? cipher.update(value, "utf8") : cipher.update(value);
    // In this mode of AES nothing is left for the end.
    cipher.final();
    return Buffer.concat([head, nonce, encrypted, cipher.getAuthTag()]);
  }

  function openBytes(value: Payload, place: Place): Buffer {
    if (typeof value === "string") throw unsealed(whose, place);
    const blob = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const id = blob[0] === format ? blob.toString("latin1", 2, 2 + (blob[1] ?? 0)) : undefined;
    const start = 2 + (blob[1] ?? 0);
    if (id === undefined || blob.length < start + nonceBytes + tagBytes) throw unsealed(whose, place);
    const key = byId.get(id);
    if (key === undefined) throw missingKey(whose, id);
    const nonce = blob.subarray(start, start + nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(placed(place));
    decipher.setAuthTag(blob.subarray(blob.length - tagBytes));
    try {
      const text = decipher.update(blob.subarray(start + nonceBytes, blob.length - tagBytes));
      return Buffer.concat([text, decipher.final()]);
    } catch (cause) {
      throw unsealed(whose, place, cause);
    }
  }

  return {
    seal,
    open: (value, place) => openBytes(value, place).toString("utf8"),
    sealBytes: seal,
    openBytes,
    isOld: (value) => typeof value === "string" || Buffer.compare(value.subarray(0, head.length), head) !== 0,
  };
}

/** The text of a value. A blob in a store without seals was sealed by one that has them. */
export function opened(seals: Seals | undefined, thread: string, value: Payload, place: () => Place): string {
  if (seals !== undefined) return seals.open(value, place());
  if (typeof value === "string") return value;
  throw corrupt("a value is encrypted in a store that is not", { thread });
}

function unsealed({ place }: Whose, [column]: Place, cause?: unknown): StatewrightError {
  return corrupt(`a value in "${String(column)}" is not what was sealed there`, place, cause);
}

function neverSealed(thread: string): StatewrightError {
  return corrupt(`the thread "${thread}" is not encrypted, in a store that is`, { thread });
}

/** The refusal of a value whose key is not there. The key itself is never named, its id is. */
function missingKey({ name, place, option }: Whose, id: string | undefined): StatewrightError {
  return new StatewrightError("missing_key", {
    what:
      id === undefined
        ? `${name} has no key`
        : `${name} holds what was sealed with the key "${id}", which is not given`,
    next: `Let \`${option}\` of the store's encryption give it, also after newer ones`,
    place,
    details: { ...place, key: id },
  });
}
