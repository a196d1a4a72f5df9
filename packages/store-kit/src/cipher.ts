/**
 * Encryption of values: AES-256-GCM over the content of a thread, with keys from the caller.
 *
 * An encrypted value is a blob: a version byte, the length and the id of its key, a nonce of 12 random bytes, the
 * ciphertext, a tag of 16 bytes. The authenticated data is the context of the value: thread, namespace, row, column
 * and the plain columns of the row. So decryption fails for a modified value and for a value moved to another
 * location; a value other than a blob is refused as unencrypted.
 *
 * Each thread has its own secret, encrypted like any value, for the hashes of its checkpoints: a plain hash would
 * reveal equal states to a reader of the file. The secret, and so the hashes, survive a key rotation.
 */
import { Buffer } from "node:buffer";
import { createCipheriv, createDecipheriv, createHmac, randomBytes, randomFillSync } from "node:crypto";
import { type ErrorPlace, StatewrightError } from "@statewright/core";
import { checkId, invalidOption } from "@statewright/core/adapter";
import { longTermRules } from "@statewright/core/store";
import { createCorruptError } from "./corrupt-error.ts";

/** Key of 32 bytes, and the id stored in encrypted values. */
export interface EncryptionKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/** Key provider: returns the keys of a thread, the encryption key first, then older keys for decryption. */
export interface Encryption {
  /** Returns the keys of a thread: the encryption key first, then older keys. */
  readonly keys: (thread: string) => readonly EncryptionKey[];
  /**
   * Returns the keys of a namespace of the long-term store, in the same order. Without it, an encrypted store has no
   * long-term store.
   */
  readonly longTerm?: (namespace: readonly string[]) => readonly EncryptionKey[];
  /** Returns the keys of a schedule, in the same order. Without it, an encrypted store has no schedules. */
  readonly schedules?: (schedule: string) => readonly EncryptionKey[];
}

/** Value of a payload column: plain text, or an encrypted blob. */
export type Payload = string | Uint8Array;

/** Context of a value: column name, identity of the row, and its plain columns. */
export type ValueContext = readonly (string | number | boolean | null | undefined)[];

/** Encrypts and decrypts the values of a thread. */
export interface ThreadCipher {
  /** Encrypts a text with the newest key. */
  encrypt(text: string, context: ValueContext): Uint8Array;
  /** Throws `store_corrupt` for a value of another context or a modified value, `missing_key`. */
  decrypt(value: Payload, context: ValueContext): string;
  /** Encrypts bytes instead of text. */
  encryptBytes(bytes: Uint8Array, context: ValueContext): Uint8Array;
  /** Decrypts bytes. Throws as `decrypt`. */
  decryptBytes(value: Payload, context: ValueContext): Uint8Array;
  /** Returns true if the encryption key is still the newest: keys can change while a thread is claimed. */
  hasNewestKey(): boolean;
  /** Returns true if a value is not encrypted with the newest key. */
  isOutdated(value: Payload): boolean;
  /** Hashes a text with the secret of the thread (HMAC). */
  hash(text: string): string;
}

/** Creates the ciphers of threads; undefined for a store without encryption. */
export interface StoreCipher {
  /** Creates an encrypted random secret for a new thread. */
  createSecret(thread: string): Uint8Array;
  /** Returns the cipher of a thread, from its encrypted secret. */
  getThreadCipher(thread: string, secret: Payload | null): ThreadCipher;
  /** Re-encrypts a secret with the newest key; undefined if up to date. */
  reencryptSecret(thread: string, secret: Payload | null): Uint8Array | undefined;
  /** Returns the cipher of a namespace of the long-term store. */
  getItemCipher(namespace: string): ItemCipher;
  /** Returns the cipher of a schedule. */
  getScheduleCipher(schedule: string): ItemCipher;
}

/** Encrypts and decrypts the items of a long-term namespace, or a schedule. */
export type ItemCipher = Pick<ThreadCipher, "encrypt" | "decrypt" | "isOutdated">;

const format = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;
/** Bytes of an encrypted value beside its text and the id of its key, whose length is the second byte. */
export const encryptionBytes: number = 2 + nonceBytes + tagBytes;

const secretContext: ValueContext = ["threads.secret"];

/** Creates the cipher of a store from its key provider. Throws `missing_key` when a thread has no key, on use. */
export function createStoreCipher({ keys, longTerm, schedules }: Encryption): StoreCipher {
  const toThreadOwner = (thread: string): KeyOwner => ({
    id: thread,
    name: `thread "${thread}"`,
    place: { thread },
    option: "keys",
    keys: () => keys(thread),
  });
  // The slash prevents a collision with a thread id.
  const toNamespaceOwner = (namespace: string): KeyOwner => ({
    id: `/${namespace}`,
    name: `namespace "${namespace}" of the long-term store`,
    place: {},
    option: "longTerm",
    keys: () => longTerm?.(longTermRules.parseNamespaceText(namespace)) ?? [],
  });
  const toScheduleOwner = (schedule: string): KeyOwner => ({
    id: `schedule/${schedule}`,
    name: `schedule "${schedule}"`,
    place: {},
    option: "schedules",
    keys: () => schedules?.(schedule) ?? [],
  });
  return {
    createSecret: (thread) => {
      const owner = toThreadOwner(thread);
      return createValueCipher(owner, loadKeyRing(owner)).encrypt(randomBytes(32).toString("base64"), secretContext);
    },
    getThreadCipher: (thread, secret) => {
      const owner = toThreadOwner(thread);
      const ring = loadKeyRing(owner);
      if (secret === null) throw createPlainThreadError(thread);
      const valueCipher = createValueCipher(owner, ring);
      const hasNewestKey = (): boolean => loadKeys(owner)[0]?.id === ring.newest.id;
      const threadSecret = Buffer.from(valueCipher.decrypt(secret, secretContext), "base64");
      return {
        ...valueCipher,
        hasNewestKey,
        hash: (text) => createHmac("sha256", threadSecret).update(text).digest("base64"),
      };
    },
    reencryptSecret: (thread, secret) => {
      if (secret === null) throw createPlainThreadError(thread);
      const owner = toThreadOwner(thread);
      const cipher = createValueCipher(owner, loadKeyRing(owner));
      return cipher.isOutdated(secret)
        ? cipher.encrypt(cipher.decrypt(secret, secretContext), secretContext)
        : undefined;
    },
    getItemCipher: (namespace) => {
      const whose = toNamespaceOwner(namespace);
      return createValueCipher(whose, loadKeyRing(whose));
    },
    getScheduleCipher: (schedule) => {
      const whose = toScheduleOwner(schedule);
      return createValueCipher(whose, loadKeyRing(whose));
    },
  };
}

/** Owner of encrypted values: a thread or a long-term namespace. */
interface KeyOwner {
  /** Part of the authenticated data: a value of an owner cannot be decrypted for another. */
  readonly id: string;
  readonly name: string;
  readonly place: ErrorPlace;
  /** Option that provides the keys. */
  readonly option: keyof Encryption;
  readonly keys: () => readonly EncryptionKey[];
}

/** Keys of a thread or namespace, newest first. */
interface KeyRing {
  readonly newest: EncryptionKey;
  readonly byId: ReadonlyMap<string, Uint8Array>;
  /** First bytes of blobs encrypted with the newest key. */
  readonly head: Buffer;
}

function loadKeyRing(owner: KeyOwner): KeyRing {
  const keys = loadKeys(owner);
  const [newest] = keys;
  if (newest === undefined) throw createMissingKeyError(owner, undefined);
  for (const { id, key } of keys) {
    checkId("id of a key", id);
    if (key instanceof Uint8Array && key.byteLength === keyBytes) continue;
    throw invalidOption({
      where: owner.name,
      option: "keys",
      expected: `a Uint8Array of ${keyBytes} random bytes for each id`,
      found: key instanceof Uint8Array ? `${key.byteLength} bytes for "${id}"` : `another value for "${id}"`,
      place: owner.place,
    });
  }
  return { newest, byId: new Map(keys.map(({ id, key }) => [id, key])), head: createHeader(newest.id) };
}

function loadKeys({ keys, name, place }: KeyOwner): readonly EncryptionKey[] {
  try {
    return keys();
  } catch (cause) {
    throw new StatewrightError("missing_key", {
      what: `the key provider failed for ${name}`,
      next: "Check the cause; nothing was written",
      place,
      cause,
    });
  }
}

/**
 * Pool of random bytes for nonces: a call for twelve bytes takes half the time of an encryption. No byte is used
 * twice.
 */
const nonces: Buffer = Buffer.alloc(nonceBytes * 512);
let usedBytes: number = nonces.length;

function createNonce(): Buffer {
  if (usedBytes === nonces.length) {
    randomFillSync(nonces);
    usedBytes = 0;
  }
  usedBytes += nonceBytes;
  return nonces.subarray(usedBytes - nonceBytes, usedBytes);
}

function createHeader(id: string): Buffer {
  return Buffer.concat([Buffer.from([format, id.length]), Buffer.from(id, "latin1")]);
}

function createValueCipher(
  owner: KeyOwner,
  { newest, byId, head }: KeyRing,
): Omit<ThreadCipher, "hash" | "hasNewestKey"> {
  const toAuthenticatedData = (context: ValueContext): Buffer => Buffer.from(JSON.stringify([owner.id, ...context]));

  function encrypt(value: string | Uint8Array, context: ValueContext): Uint8Array {
    const nonce = createNonce();
    const cipher = createCipheriv("aes-256-gcm", newest.key, nonce);
    cipher.setAAD(toAuthenticatedData(context));
    const encrypted = typeof value === "string" ? cipher.update(value, "utf8") : cipher.update(value);
    // GCM has no final block.
    cipher.final();
    return Buffer.concat([head, nonce, encrypted, cipher.getAuthTag()]);
  }

  function decryptBytes(value: Payload, context: ValueContext): Buffer {
    if (typeof value === "string") throw createAuthenticationError(owner, context);
    const blob = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const id = blob[0] === format ? blob.toString("latin1", 2, 2 + (blob[1] ?? 0)) : undefined;
    const start = 2 + (blob[1] ?? 0);
    if (id === undefined || blob.length < start + nonceBytes + tagBytes)
      throw createAuthenticationError(owner, context);
    const key = byId.get(id);
    if (key === undefined) throw createMissingKeyError(owner, id);
    const nonce = blob.subarray(start, start + nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(toAuthenticatedData(context));
    decipher.setAuthTag(blob.subarray(blob.length - tagBytes));
    try {
      const text = decipher.update(blob.subarray(start + nonceBytes, blob.length - tagBytes));
      return Buffer.concat([text, decipher.final()]);
    } catch (cause) {
      throw createAuthenticationError(owner, context, cause);
    }
  }

  return {
    encrypt,
    decrypt: (value, context) => decryptBytes(value, context).toString("utf8"),
    encryptBytes: encrypt,
    decryptBytes,
    isOutdated: (value) => typeof value === "string" || Buffer.compare(value.subarray(0, head.length), head) !== 0,
  };
}

/** Returns the text of a value. Throws `store_corrupt` for an encrypted value in a store without encryption. */
export function decryptPayload(
  cipher: ThreadCipher | undefined,
  thread: string,
  value: Payload,
  createContext: () => ValueContext,
): string {
  if (cipher !== undefined) return cipher.decrypt(value, createContext());
  if (typeof value === "string") return value;
  throw createCorruptError("a value is encrypted, but the store has no encryption", { thread });
}

function createAuthenticationError({ place }: KeyOwner, [column]: ValueContext, cause?: unknown): StatewrightError {
  return createCorruptError(`a value in "${String(column)}" could not be authenticated`, place, cause);
}

function createPlainThreadError(thread: string): StatewrightError {
  return createCorruptError(`thread "${thread}" is not encrypted, but the store has encryption`, { thread });
}

/** Creates the error for a missing key, with the key id but never the key. */
function createMissingKeyError({ name, place, option }: KeyOwner, id: string | undefined): StatewrightError {
  return new StatewrightError("missing_key", {
    what:
      id === undefined
        ? `${name} has no key`
        : `${name} contains a value encrypted with the key "${id}", which was not provided`,
    next: `Return the key from \`${option}\` of the store's encryption, also after newer keys`,
    place,
    details: { ...place, key: id },
  });
}
