/** Cursors of pages: sealed for the party and the list, so that they tell nothing and cannot be forged. */
import type { Store, World } from "@statewright/core";
import { createId, createSecret, toBase64 } from "@statewright/core/adapter";
import type { Codec } from "@statewright/core/store";
import { createInvalidRequestProblem } from "./service-problems.ts";

/** Place of a cursor: no other party and no other list accepts it. */
export interface CursorPlace {
  readonly party: string;
  readonly list: string;
}

/** Seals and opens cursors. */
export interface Cursors {
  /** Returns the sealed form of a cursor: the same for the same cursor and place. */
  seal(place: CursorPlace, cursor: string): Promise<string>;
  /** Returns the cursor. Throws the problem `invalid_request` for a text that was not sealed for this place. */
  open(place: CursorPlace, sealed: string): Promise<string>;
}

/** Namespace of the rows that hold the keys of a store. */
const keyNamespace = "statewright.server/cursor-keys/";
const ivBytes = 12;

type PlatformKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

interface CursorKey {
  readonly seal: PlatformKey;
  readonly mac: PlatformKey;
  /** Newest sealed cursors, by place and cursor: whoever polls an unchanged list gets the same cursor each time. */
  readonly sealed: Map<string, string>;
}

/** Maximum number of sealed cursors that a key keeps. */
const maxKeptCursors = 1_000;

/** Creates the cursors of a server. Without a secret their key is kept in the store, for all processes of the store. */
export function createCursors({
  secret,
  store,
  codec,
  world,
}: {
  readonly secret: string | undefined;
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
}): Cursors {
  let loading: Promise<readonly CursorKey[]> | undefined;
  const load = async (): Promise<readonly CursorKey[]> => {
    const secrets = secret === undefined ? await loadSecrets({ store, codec, world }) : [secret];
    return await Promise.all(secrets.map(deriveKey));
  };
  const loadOnce = async (): Promise<readonly CursorKey[]> => {
    loading ??= load();
    try {
      return await loading;
    } catch (error) {
      loading = undefined;
      throw error;
    }
  };
  return {
    seal: async (place, cursor) => {
      const [key] = await loadOnce();
      if (key === undefined) throw createInvalidCursorProblem();
      return await sealOnce(key, place, cursor);
    },
    open: async (place, sealed) => {
      const bytes = fromBase64Url(sealed);
      const opened = bytes === undefined ? undefined : await openWithAny(await loadOnce(), place, bytes);
      if (opened !== undefined) return opened;
      if (bytes === undefined || secret !== undefined) throw createInvalidCursorProblem();
      // Another process may have added its key at the same time as this one.
      loading = load();
      const found = await openWithAny(await loadOnce(), place, bytes);
      if (found === undefined) throw createInvalidCursorProblem();
      return found;
    },
  };
}

function createInvalidCursorProblem(): Error {
  return createInvalidRequestProblem("before: expected the cursor `next` of the previous page of the same list.");
}

/** Loads the secrets of the store, the first one first; adds one to a store without any. */
async function loadSecrets({
  store,
  codec,
  world,
}: {
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
}): Promise<readonly string[]> {
  const list = async (): Promise<readonly string[]> => {
    const rows = await store.longTerm.page({ namespace: keyNamespace, deep: false, at: world.clock.now(), limit: 100 });
    const ordered = [...rows].sort((one, other) => one.createdAt - other.createdAt || (one.key < other.key ? -1 : 1));
    return ordered.map(({ value }) => String(codec.decode(value)));
  };
  const known = await list();
  if (known.length > 0) return known;
  const value = codec.encode(createSecret(), "the key of cursors");
  const at = world.clock.now();
  const key = createId("key_", world.random);
  await store.longTerm.write([{ put: { namespace: keyNamespace, key, value, updatedAt: at } }], at);
  return await list();
}

async function deriveKey(secret: string): Promise<CursorKey> {
  const derive = async (use: string): Promise<Uint8Array<ArrayBuffer>> =>
    new Uint8Array(await crypto.subtle.digest("SHA-256", encodeText(`statewright cursor ${use} ${secret}`)));
  const [seal, mac] = await Promise.all([derive("seal"), derive("mac")]);
  return {
    seal: await crypto.subtle.importKey("raw", seal, "AES-GCM", false, ["encrypt", "decrypt"]),
    mac: await crypto.subtle.importKey("raw", mac, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]),
    sealed: new Map(),
  };
}

/** Seals a cursor, or returns it as it was sealed before: sealing takes longer than reading a short page. */
async function sealOnce(key: CursorKey, place: CursorPlace, cursor: string): Promise<string> {
  const name = JSON.stringify([place.party, place.list, cursor]);
  const known = key.sealed.get(name);
  if (known !== undefined) return known;
  const sealed = toBase64Url(await sealText(key, place, cursor));
  const [oldest] = key.sealed.keys();
  if (key.sealed.size >= maxKeptCursors && oldest !== undefined) key.sealed.delete(oldest);
  key.sealed.set(name, sealed);
  return sealed;
}

/** Seals a text. The initialisation vector is a hash of the place and the text under a key of its own. */
async function sealText(key: CursorKey, place: CursorPlace, text: string): Promise<Uint8Array> {
  const hash = await crypto.subtle.sign("HMAC", key.mac, encodeText(JSON.stringify([place.party, place.list, text])));
  const iv = new Uint8Array(hash.slice(0, ivBytes));
  const sealed = await crypto.subtle.encrypt(toParams(iv, place), key.seal, encodeText(text));
  return new Uint8Array([...iv, ...new Uint8Array(sealed)]);
}

async function openWithAny(
  keys: readonly CursorKey[],
  place: CursorPlace,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<string | undefined> {
  const [iv, sealed] = [bytes.slice(0, ivBytes), bytes.slice(ivBytes)];
  for (const { seal } of keys) {
    try {
      return new TextDecoder().decode(await crypto.subtle.decrypt(toParams(iv, place), seal, sealed));
    } catch (error) {
      // The text was not sealed with this key and for this place.
      if (!(error instanceof DOMException)) throw error;
    }
  }
  return undefined;
}

function toParams(iv: Uint8Array<ArrayBuffer>, { party, list }: CursorPlace) {
  return { name: "AES-GCM", iv, additionalData: encodeText(JSON.stringify([party, list])) };
}

function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new TextEncoder().encode(text));
}

function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Returns the bytes of a text; undefined for a text of other characters, or too short or long for a cursor. */
function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]{24,1024}$/.test(text) || text.length % 4 === 1) return undefined;
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
