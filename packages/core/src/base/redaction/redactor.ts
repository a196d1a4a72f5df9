/**
 * Redaction: replaces the secrets of a run in all saved values and emitted events. A secret that could be an ordinary
 * word is redacted in strings only, not in keys and format keywords, because a redacted keyword would corrupt the
 * result.
 */

import { dedupeKeys } from "../dedupe-keys.ts";
import { errorCodes } from "../errors.ts";
import type { SecretSource } from "../injection.ts";
import { isPlainObject, maxSavedDepth } from "../json.ts";
import { redactSplitSecrets } from "./redact-chunks.ts";
import {
  createRedactedStream,
  minSecretCharacters,
  redactChunk,
  redactionMark,
  redactText,
  type TextStream,
} from "./redact-text.ts";

/** Redactor of a run, with the secrets requested so far. */
export interface Redactor {
  /** Adds a secret. */
  readonly addSecret: (secret: string) => void;
  /** Returns the value with all secrets redacted; the same value without a match. */
  readonly redact: <Value>(value: Value) => Value;
  /** Like `redact`, but skips secrets that may occur by chance. For data that code acts upon. */
  readonly redactUncommon: <Value>(value: Value) => Value;
  /** Like `redact`, and also removes string suffixes that may be the beginning of a secret. For partial values. */
  readonly redactPartial: <Value>(value: Value) => Value;
  /** Like `redactUncommon`, for streamed text. */
  readonly createUncommonStream: () => TextStream;
  /** Lists the strings that `redact` replaces; empty without secrets. */
  readonly listSecrets: () => readonly string[];
  /** Lists the strings that `redactUncommon` replaces. */
  readonly listUncommonSecrets: () => readonly string[];
}

/**
 * Secrets that are shorter, or that consist of a few words of letters, may equal a key, a kind or a part of base64
 * data by chance.
 */
const minUncommonCharacters = 8;
const maxWordCharacters = 16;
const wordPattern = /^[a-z]+(?:[_-][a-z]+)*$/i;

/** Strings to redact. */
interface Secrets {
  readonly all: readonly string[];
  /** Strings that do not occur by chance. */
  readonly uncommon: readonly string[];
  /** True when a string may end with the beginning of a secret. */
  readonly isPartial?: boolean;
}

/** Creates a redactor without secrets. */
export function createRedactor(): Redactor {
  const known = new Set<string>();
  let secrets: Secrets = emptySecrets;
  const getUncommon = (): Secrets => ({ ...secrets, all: secrets.uncommon });
  return {
    addSecret: (secret) => {
      if (secret.length < minSecretCharacters) return;
      const sizeBefore = known.size;
      // Add the secret verbatim, JSON-escaped, JSON-escaped twice (JSON in a JSON string), URL-encoded and
      // form-encoded.
      const quoted = escapeJson(secret);
      const form = new URLSearchParams([["", secret]]).toString().slice(1);
      for (const text of [secret, quoted, escapeJson(quoted), encodeForUrl(secret), form]) known.add(text);
      if (known.size > sizeBefore) secrets = groupSecrets(known);
    },
    redact: (value) => (known.size === 0 ? value : (redactValue(value, secrets, new Map(), 0) as typeof value)),
    redactUncommon: (value) =>
      secrets.uncommon.length === 0 ? value : (redactValue(value, getUncommon(), new Map(), 0) as typeof value),
    redactPartial: (value) =>
      known.size === 0 ? value : (redactValue(value, { ...secrets, isPartial: true }, new Map(), 0) as typeof value),
    createUncommonStream: () => createRedactedStream(() => secrets.uncommon),
    listSecrets: () => secrets.all,
    listUncommonSecrets: () => secrets.uncommon,
  };
}

const emptySecrets: Secrets = Object.freeze({ all: [], uncommon: [] });

function groupSecrets(known: ReadonlySet<string>): Secrets {
  const all = [...known];
  const uncommon = all.filter((secret) => !isCommon(secret));
  return { all: keepMarks(all), uncommon: keepMarks(uncommon) };
}

/**
 * Adds the redaction mark as a secret when a secret is a substring of the mark, so that existing marks stay
 * unchanged.
 */
function keepMarks(secrets: readonly string[]): readonly string[] {
  return secrets.some((secret) => redactionMark.includes(secret)) ? [...secrets, redactionMark] : secrets;
}

function isCommon(secret: string): boolean {
  return secret.length < minUncommonCharacters || (secret.length <= maxWordCharacters && wordPattern.test(secret));
}

/** Wraps a source of secrets: each requested secret is added to the redactor. */
export function captureSecrets(source: SecretSource, redactor: Redactor): SecretSource {
  return {
    get: (name) => {
      const found = source.get(name);
      return found instanceof Promise
        ? found.then((secret) => captureSecret(secret, redactor))
        : captureSecret(found, redactor);
    },
  };
}

/** Ignores values that are not strings (possible in untyped JavaScript). */
function captureSecret<Found>(found: Found, redactor: Redactor): Found {
  if (typeof found === "string") redactor.addSecret(found);
  return found;
}

/** Redacts a value recursively. `seen` maps visited objects to results, for shared references and cycles. */
function redactValue(value: unknown, secrets: Secrets, seen: Map<unknown, unknown>, level: number): unknown {
  if (typeof value === "string")
    return secrets.isPartial === true ? redactChunk(value, secrets.all).text : redactText(value, secrets.all);
  if (typeof value !== "object" || value === null || level > maxSavedDepth) return value;
  if (seen.has(value)) return seen.get(value);
  seen.set(value, value);
  const redacted = redactContents(value, secrets, seen, level);
  if (redacted === value) return value;
  const result = Object.isFrozen(value) ? Object.freeze(redacted) : redacted;
  seen.set(value, result);
  return result;
}

function redactContents(value: object, secrets: Secrets, seen: Map<unknown, unknown>, level: number): object {
  const redactInner = (inner: unknown): unknown => redactValue(inner, secrets, seen, level + 1);
  const redactKeyword = (item: unknown): unknown =>
    redactValue(item, { all: secrets.uncommon, uncommon: secrets.uncommon }, new Map(), level + 1);
  if (Array.isArray(value)) {
    const joined = redactSplitSecrets(value, secrets.all);
    const items = joined.map(redactInner);
    return joined !== value || items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (value instanceof Map) {
    const keys = redactMembers([...value.keys()], redactInner);
    const entries = [...value].map(([key, item], index) => [keys[index], redactInner(item), key, item] as const);
    const isSame = entries.every(([key, item, keyBefore, before]) => key === keyBefore && item === before);
    return isSame ? value : new Map(entries.map(([key, item]) => [key, item]));
  }
  if (value instanceof Set) {
    const items = [...value];
    const hidden = redactMembers(items, redactInner);
    return items.every((item, index) => item === hidden[index]) ? value : new Set(hidden);
  }
  if (!isPlainObject(value)) return value;
  const hidden = Object.entries(value).map(
    ([key, item]) => [key, isFormatKeyword(value, key, item) ? redactKeyword(item) : redactInner(item)] as const,
  );
  const entries = dedupeKeys(hidden, (key) => redactText(key, secrets.uncommon));
  const isSame = entries.every(([key, item]) => Object.hasOwn(value, key) && value[key] === item);
  return isSame ? value : Object.fromEntries(entries);
}

/** Keywords of the formats of blocks, messages, tool errors and error records, by key. */
const formatKeywords: Readonly<Record<string, ReadonlySet<string>>> = {
  type: new Set(["text", "image", "file", "json", "artifact", "reasoning", "call"]),
  role: new Set(["system", "user", "assistant", "tool"]),
  kind: new Set([
    ...["failed", "not_found", "invalid_args", "cancelled", "timeout", "denied", "skipped", "limit", "crashed"],
    ...["invalid_output", "unknown_outcome", "unavailable"],
  ]),
  disposition: new Set(["retry", "repair", "fail", "control"]),
  code: new Set(errorCodes),
};

/**
 * Returns true if an entry is a format keyword and not text: redacting the keyword would make the value unreadable.
 */
function isFormatKeyword(owner: Readonly<Record<string, unknown>>, key: string, item: unknown): boolean {
  const hasType = (type: string): boolean => owner["type"] === type;
  if (key === "mimeType" || key === "goto") return typeof item === "string";
  if (key === "data") return hasType("image") || hasType("file");
  if (key === "ref") return hasType("artifact");
  if (typeof item !== "string") return false;
  if (key === "name") return item.endsWith("Error");
  return Object.hasOwn(formatKeywords, key) && formatKeywords[key]?.has(item) === true;
}

/**
 * Redacts the members of a map or set. Strings that become equal are numbered like keys, so that no member is lost.
 */
function redactMembers(items: readonly unknown[], redactInner: (item: unknown) => unknown): readonly unknown[] {
  const texts = items.flatMap((item, index) => (typeof item === "string" ? [[item, index] as const] : []));
  const names = new Map(dedupeKeys(texts, (text) => String(redactInner(text))).map(([name, index]) => [index, name]));
  return items.map((item, index) => names.get(index) ?? redactInner(item));
}

function escapeJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function encodeForUrl(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    // The string has a lone surrogate, which cannot occur in a URL.
    return text;
  }
}
