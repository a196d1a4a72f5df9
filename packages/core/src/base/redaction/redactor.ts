/**
 * Masking: the texts of secrets that a run has asked for are blotted out of whatever it saves and tells. A secret that could
 * be a word is blotted out of texts only: in keys and in the words of our formats it stands by chance, and they keep results whole.
 */

import { renamedKeys } from "../dedupe-keys.ts";
import { errorCodes } from "../errors.ts";
import type { SecretSource } from "../injection.ts";
import { deepestSaved, isPlainObject } from "../json.ts";
import { withoutSplit } from "./redact-chunks.ts";
import { blot, blotted, blottedPiece, blottedStream, shortestSecret, type TextStream } from "./redact-text.ts";

/** What a run knows of its secrets. */
export interface Mask {
  /** Remember the text of a secret. */
  readonly see: (secret: string) => void;
  /** The value with every secret in its texts blotted out; the value itself where there is none. */
  readonly hide: <Value>(value: Value) => Value;
  /** As `hide`, save for secrets that could stand there by chance: for data that is acted upon. */
  readonly hideUncommon: <Value>(value: Value) => Value;
  /** As `hide`, also without ends of texts that could be the beginning of a secret: for what is not whole yet. */
  readonly hidePartial: <Value>(value: Value) => Value;
  /** As `hideUncommon`, for a text that comes in pieces. */
  readonly uncommonStream: () => TextStream;
  /** The texts that are looked for; none while no secret is known. */
  readonly texts: () => readonly string[];
  /** Those that `hideUncommon` looks for. */
  readonly uncommonTexts: () => readonly string[];
}

/** A text as short as this, or one word or a few of letters alone, may be a key, a kind, or a part of an image by chance. */
const shortestUncommon = 8;
const longestWord = 16;
const words = /^[a-z]+(?:[_-][a-z]+)*$/i;

/** The secrets to look for. */
interface Secrets {
  readonly inTexts: readonly string[];
  /** Those that stand nowhere by chance. */
  readonly anywhere: readonly string[];
  /** Whether texts may end with the beginning of one. */
  readonly isPartial?: boolean;
}

/** A mask that knows no secret yet. */
export function createMask(): Mask {
  const known = new Set<string>();
  let secrets: Secrets = none;
  const uncommon = (): Secrets => ({ ...secrets, inTexts: secrets.anywhere });
  return {
    see: (secret) => {
      if (secret.length < shortestSecret) return;
      const before = known.size;
      // As it is, as JSON has it within quotes, also in a text of other JSON, and as addresses and forms have it.
      const quoted = inQuotes(secret);
      const form = new URLSearchParams([["", secret]]).toString().slice(1);
      for (const text of [secret, quoted, inQuotes(quoted), inAddress(secret), form]) known.add(text);
      if (known.size > before) secrets = secretsIn(known);
    },
    hide: (value) => (known.size === 0 ? value : (hideFrom(value, secrets, new Map(), 0) as typeof value)),
    hideUncommon: (value) =>
      secrets.anywhere.length === 0 ? value : (hideFrom(value, uncommon(), new Map(), 0) as typeof value),
    hidePartial: (value) =>
      known.size === 0 ? value : (hideFrom(value, { ...secrets, isPartial: true }, new Map(), 0) as typeof value),
    uncommonStream: () => blottedStream(() => secrets.anywhere),
    texts: () => secrets.inTexts,
    uncommonTexts: () => secrets.anywhere,
  };
}

const none: Secrets = Object.freeze({ inTexts: [], anywhere: [] });

function secretsIn(known: ReadonlySet<string>): Secrets {
  const inTexts = [...known];
  const anywhere = inTexts.filter((secret) => !isCommon(secret));
  return { inTexts: keepingBlots(inTexts), anywhere: keepingBlots(anywhere) };
}

/** What was blotted out before stays as it is, also where a secret is a part of those words. */
function keepingBlots(secrets: readonly string[]): readonly string[] {
  return secrets.some((secret) => blot.includes(secret)) ? [...secrets, blot] : secrets;
}

function isCommon(secret: string): boolean {
  return secret.length < shortestUncommon || (secret.length <= longestWord && words.test(secret));
}

/** A source whose secrets are remembered as they are asked for. */
export function watched(source: SecretSource, mask: Mask): SecretSource {
  return {
    get: (name) => {
      const found = source.get(name);
      return found instanceof Promise ? found.then((secret) => seen(secret, mask)) : seen(found, mask);
    },
  };
}

/** A program without types may give anything. */
function seen<Found>(found: Found, mask: Mask): Found {
  if (typeof found === "string") mask.see(found);
  return found;
}

/** `seen` holds what was walked: a value may stand in many places, also within itself. */
function hideFrom(value: unknown, secrets: Secrets, seen: Map<unknown, unknown>, level: number): unknown {
  if (typeof value === "string")
    return secrets.isPartial === true ? blottedPiece(value, secrets.inTexts).told : blotted(value, secrets.inTexts);
  if (typeof value !== "object" || value === null || level > deepestSaved) return value;
  if (seen.has(value)) return seen.get(value);
  seen.set(value, value);
  const hidden = hideInside(value, secrets, seen, level);
  if (hidden === value) return value;
  const result = Object.isFrozen(value) ? Object.freeze(hidden) : hidden;
  seen.set(value, result);
  return result;
}

function hideInside(value: object, secrets: Secrets, seen: Map<unknown, unknown>, level: number): object {
  const within = (inner: unknown): unknown => hideFrom(inner, secrets, seen, level + 1);
  const bare = (item: unknown): unknown =>
    hideFrom(item, { inTexts: secrets.anywhere, anywhere: secrets.anywhere }, new Map(), level + 1);
  if (Array.isArray(value)) {
    const whole = withoutSplit(value, secrets.inTexts);
    const items = whole.map(within);
    return whole !== value || items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (value instanceof Map) {
    const keys = apart([...value.keys()], within);
    const entries = [...value].map(([key, item], index) => [keys[index], within(item), key, item] as const);
    const isSame = entries.every(([key, item, keyBefore, before]) => key === keyBefore && item === before);
    return isSame ? value : new Map(entries.map(([key, item]) => [key, item]));
  }
  if (value instanceof Set) {
    const items = [...value];
    const hidden = apart(items, within);
    return items.every((item, index) => item === hidden[index]) ? value : new Set(hidden);
  }
  if (!isPlainObject(value)) return value;
  const hidden = Object.entries(value).map(
    ([key, item]) => [key, isOfFormat(value, key, item) ? bare(item) : within(item)] as const,
  );
  const entries = renamedKeys(hidden, (key) => blotted(key, secrets.anywhere));
  const isSame = entries.every(([key, item]) => Object.hasOwn(value, key) && value[key] === item);
  return isSame ? value : Object.fromEntries(entries);
}

/** Words that our formats know, by the key that they stand under: of blocks, messages, tool errors, and error records. */
const formatWords: Readonly<Record<string, ReadonlySet<string>>> = {
  type: new Set(["text", "image", "file", "json", "artifact", "reasoning", "call"]),
  role: new Set(["system", "user", "assistant", "tool"]),
  kind: new Set([
    ...["failed", "not_found", "invalid_args", "cancelled", "timeout", "denied", "skipped", "limit", "crashed"],
    ...["invalid_output", "unknown_outcome", "unavailable"],
  ]),
  disposition: new Set(["retry", "repair", "fail", "control"]),
  code: new Set(errorCodes),
};

/** Whether it is no text but a part of a format: without it nobody could read the rest. */
function isOfFormat(owner: Readonly<Record<string, unknown>>, key: string, item: unknown): boolean {
  const isOf = (type: string): boolean => owner["type"] === type;
  if (key === "mimeType" || key === "goto") return typeof item === "string";
  if (key === "data") return isOf("image") || isOf("file");
  if (key === "ref") return isOf("artifact");
  if (typeof item !== "string") return false;
  if (key === "name") return item.endsWith("Error");
  return Object.hasOwn(formatWords, key) && formatWords[key]?.has(item) === true;
}

/** The members of a map or a set: texts that become the same are numbered like keys, so that none is lost. */
function apart(items: readonly unknown[], within: (item: unknown) => unknown): readonly unknown[] {
  const texts = items.flatMap((item, index) => (typeof item === "string" ? [[item, index] as const] : []));
  const names = new Map(renamedKeys(texts, (text) => String(within(text))).map(([name, index]) => [index, name]));
  return items.map((item, index) => names.get(index) ?? within(item));
}

function inQuotes(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function inAddress(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    // It holds half a pair, and no address can.
    return text;
  }
}
