/** Redaction of texts that look like secrets, for recordings and readers. */
import { invalidOption } from "../invalid-option.ts";
import { isPlainObject, maxSavedDepth } from "../json.ts";

/** Replacement of a secret. */
const replacement = "[redacted]";

/** Pattern of keys issued by providers and services. */
const secretPattern =
  /\b(?:sk|pk|rk|xai|gsk|ghp|gho|ghs|npm|glpat|xox[bp])[-_][A-Za-z0-9_-]{12,}|\bgithub_pat_[A-Za-z0-9_]{12,}|\bAKIA[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}|\bBearer\s+[A-Za-z0-9._~+/=-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g;
/** Property names of secrets, in arguments, results and options. */
const secretName = /^(?:.*[-_])?(?:api[-_]?key|authorization|cookie|password|passwd|secret|token|access[-_]?key)$/i;

/** Returns a value with its secrets replaced; the same value without a match. */
export type Redact = <Value>(value: Value) => Value;

/**
 * Creates a function that replaces by `[redacted]` the texts that look like a secret, values under the name of a
 * secret, and the given texts and patterns; in plain data, maps and sets. Throws `invalid_option`.
 */
export function createPatternRedactor(where: string, secrets: readonly (string | RegExp)[]): Redact {
  if (!Array.isArray(secrets))
    throw invalidOption({ where, option: "redact", expected: "a list of texts and regular expressions", got: secrets });
  const patterns = secrets.map((secret: unknown) => toPattern(where, secret));
  const redactText = (text: string): string => {
    let redacted = text.replace(secretPattern, replacement);
    for (const pattern of patterns) redacted = redacted.replaceAll(pattern, replacement);
    return redacted;
  };
  return (value) => redactValue(redactText, value, 0) as typeof value;
}

function toPattern(where: string, secret: unknown): string | RegExp {
  if (secret instanceof RegExp)
    return new RegExp(secret.source, secret.flags.includes("g") ? secret.flags : `${secret.flags}g`);
  if (typeof secret === "string" && secret.length >= 4) return secret;
  throw invalidOption({
    where,
    option: "redact",
    expected: "texts of at least 4 characters, or regular expressions",
    found: typeof secret === "string" ? "a shorter text" : `a value of the type ${typeof secret}`,
  });
}

type RedactText = (text: string) => string;

function redactValue(redactText: RedactText, value: unknown, level: number): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null || level > maxSavedDepth) return value;
  if (Array.isArray(value)) return redactItems(redactText, value, level);
  if (value instanceof Map) {
    const parts = [...value.keys(), ...value.values()];
    const redacted = redactItems(redactText, parts, level);
    if (redacted === parts) return value;
    return new Map(redacted.slice(0, value.size).map((key, index) => [key, redacted[value.size + index]]));
  }
  if (value instanceof Set) {
    const items = [...value];
    const redacted = redactItems(redactText, items, level);
    return redacted === items ? value : new Set(redacted);
  }
  return isPlainObject(value) ? redactObject(redactText, value, level) : value;
}

function redactItems(redactText: RedactText, items: readonly unknown[], level: number): readonly unknown[] {
  const redacted = items.map((item) => redactValue(redactText, item, level + 1));
  return redacted.every((item, index) => item === items[index]) ? items : redacted;
}

function redactObject(
  redactText: RedactText,
  value: Readonly<Record<string, unknown>>,
  level: number,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(value).map(
    ([key, item]) =>
      [
        key,
        typeof item === "string" && secretName.test(key) ? replacement : redactValue(redactText, item, level + 1),
      ] as const,
  );
  return entries.every(([key, item]) => item === value[key]) ? value : Object.fromEntries(entries);
}
