/**
 * Masking: the texts of secrets that a run has asked for are blotted out of whatever it saves and tells. A secret that could
 * be a word is blotted out of texts only: in keys and in the words of our formats it stands by chance, and they keep results whole.
 */
import { errorCodes } from "./errors.ts";
import type { SecretSource } from "./injection.ts";
import { deepestLevel, isPlainObject } from "./json.ts";

/** What a run knows of its secrets. */
export interface Mask {
  /** Remember the text of a secret. */
  readonly see: (secret: string) => void;
  /** The value with every secret in its texts blotted out; the value itself where there is none. */
  readonly hide: <Value>(value: Value) => Value;
}

/** What stands in the place of a secret. */
const blot = "[secret]";

/** A shorter text stands in too many words by chance. */
const shortestSecret = 4;

/** A text as short as this, or one word or a few of letters alone, may be a key, a kind, or a part of an image by chance. */
const shortestUncommon = 8;
const longestWord = 16;
const words = /^[a-z]+(?:[_-][a-z]+)*$/i;

/** The secrets to look for, longer ones first. */
interface Secrets {
  readonly inTexts: readonly string[];
  /** Those that stand nowhere by chance. */
  readonly anywhere: readonly string[];
}

/** A mask that knows no secret yet. */
export function createMask(): Mask {
  const known = new Set<string>();
  return {
    see: (secret) => {
      if (secret.length < shortestSecret) return;
      // As it is, as JSON has it within quotes, also in a text of other JSON, and as addresses and forms have it.
      const quoted = inQuotes(secret);
      const form = new URLSearchParams([["", secret]]).toString().slice(1);
      for (const text of [secret, quoted, inQuotes(quoted), inAddress(secret), form]) known.add(text);
    },
    hide: (value) => (known.size === 0 ? value : (hideFrom(value, secretsIn(known), new Map(), 0) as typeof value)),
  };
}

/** One secret may be a part of another. */
function secretsIn(known: ReadonlySet<string>): Secrets {
  const inTexts = [...known].sort((one, other) => other.length - one.length);
  return { inTexts, anywhere: inTexts.filter((secret) => !isCommon(secret)) };
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
  if (typeof value === "string") return hideIn(value, secrets.inTexts);
  if (typeof value !== "object" || value === null || level > deepestLevel) return value;
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
    hideFrom(item, { ...secrets, inTexts: secrets.anywhere }, new Map(), level + 1);
  if (Array.isArray(value)) {
    const items = value.map(within);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (value instanceof Map || value instanceof Set) {
    const items = [...value];
    const hidden = within(items);
    if (hidden === items) return value;
    return value instanceof Map ? new Map(hidden as [unknown, unknown][]) : new Set(hidden as unknown[]);
  }
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(
    ([key, item]) => [hideIn(key, secrets.anywhere), isOfFormat(value, key, item) ? bare(item) : within(item)] as const,
  );
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

/** What is blotted out stays as it is, also where a secret is a part of those words. */
function hideIn(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const secret of secrets)
    if (hidden.includes(secret))
      hidden = hidden
        .split(blot)
        .map((part) => part.replaceAll(secret, blot))
        .join(blot);
  return hidden;
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
