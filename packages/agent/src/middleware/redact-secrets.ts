/**
 * Middleware that redacts secrets in tool results, artifact texts, partial results, progress, and in arguments shown
 * by events and interrupts.
 */

import { defineMiddleware, type Json, type Middleware } from "@statewright/core";
import { checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { cleanData, cleanOutput, cleanResult, type TextTransform } from "../output/clean-result.ts";

/** Pattern of a secret: a prefix, followed by at least `minLength` letters, digits or characters of `_-.+/=~`. */
export interface SecretPattern {
  readonly prefix: string;
  readonly minLength: number;
}

/** Secret texts and patterns, and the replacement text. */
export interface RedactOptions {
  /** Literal secrets of at least 4 characters. */
  readonly texts?: readonly string[];
  /** Patterns in addition to {@link knownSecrets}. */
  readonly patterns?: readonly SecretPattern[];
  /** Text that replaces a secret. Default `[redacted]`. */
  readonly replacement?: string;
}

/** Patterns of keys and tokens of well-known services. */
export const knownSecrets: readonly SecretPattern[] = [
  { prefix: "sk-", minLength: 16 },
  { prefix: "sk_live_", minLength: 16 },
  { prefix: "rk_live_", minLength: 16 },
  { prefix: "ghp_", minLength: 20 },
  { prefix: "gho_", minLength: 20 },
  { prefix: "ghs_", minLength: 20 },
  { prefix: "github_pat_", minLength: 20 },
  { prefix: "glpat-", minLength: 16 },
  { prefix: "xoxb-", minLength: 16 },
  { prefix: "xoxp-", minLength: 16 },
  { prefix: "AKIA", minLength: 16 },
  { prefix: "AIza", minLength: 30 },
  { prefix: "npm_", minLength: 30 },
  { prefix: "Bearer ", minLength: 16 },
  { prefix: "eyJ", minLength: 24 },
];

/**
 * Redacts secrets. Scans each text once, in linear time. Messages of the model stay unchanged, because a provider
 * must receive exactly what its model wrote. Applies to sub-agents too.
 */
export function redactSecrets(options: RedactOptions = {}): Middleware {
  checkOptions(
    "redactSecrets",
    options,
    listOptionNames<RedactOptions>({ texts: true, patterns: true, replacement: true }),
  );
  const { texts = [], patterns = [], replacement = "[redacted]" } = options;
  if (!Array.isArray(texts))
    throw invalidOption({ where: "redactSecrets", option: "texts", expected: "a list", found: `a ${typeof texts}` });
  if (!Array.isArray(patterns))
    throw invalidOption({ where: "redactSecrets", option: "patterns", expected: "a list", got: patterns });
  for (const text of texts)
    if (typeof text !== "string" || text.length < 4)
      throw invalidOption({
        where: "redactSecrets",
        option: "texts",
        expected: "a list of strings of at least 4 characters",
        // Without the text itself, which may be a secret.
        found: typeof text === "string" ? `a string of ${text.length} characters` : `a value of type ${typeof text}`,
      });
  for (const pattern of patterns)
    if (!(typeof pattern?.prefix === "string" && pattern.prefix.length >= 2 && isValidMinLength(pattern.minLength)))
      throw invalidOption({
        where: "redactSecrets",
        option: "patterns",
        expected: "a list of { prefix: at least 2 characters, minLength: an integer from 1 to 256 }",
        found: describePattern(pattern),
      });
  const clean = createRedactor(
    texts.toSorted((left, right) => right.length - left.length),
    [...knownSecrets, ...patterns],
    replacement,
  );
  return defineMiddleware({
    name: "redactSecrets",
    required: true,
    inherited: true,
    showArgs: ({ args }) => cleanData(clean, args) as Json,
    onToolUpdate: ({ partial }) => cleanOutput(clean, partial),
    afterTool: ({ result }) => cleanResult(clean, result),
  });
}

/** Bounds the rescans of a position. */
function isValidMinLength(minLength: number): boolean {
  return Number.isInteger(minLength) && minLength >= 1 && minLength <= 256;
}

/** Creates a single-pass redactor: at each position the longest literal secret is tried first, then the patterns. */
function createRedactor(
  texts: readonly string[],
  patterns: readonly SecretPattern[],
  replacement: string,
): TextTransform {
  const secretsByFirstCharacter = new Map<string, { readonly texts: string[]; readonly patterns: SecretPattern[] }>();
  const getEntry = (first: string) => {
    const entry = secretsByFirstCharacter.get(first) ?? { texts: [], patterns: [] };
    secretsByFirstCharacter.set(first, entry);
    return entry;
  };
  for (const text of texts) getEntry(text.charAt(0)).texts.push(text);
  for (const pattern of patterns) getEntry(pattern.prefix.charAt(0)).patterns.push(pattern);
  return (text) => {
    let cleaned = "";
    let from = 0;
    for (let index = 0; index < text.length; index++) {
      const known = secretsByFirstCharacter.get(text.charAt(index));
      const end = known === undefined ? index : findSecretEnd(text, index, known.texts, known.patterns);
      if (end === index) continue;
      cleaned += text.slice(from, index) + replacement;
      from = end;
      index = end - 1;
    }
    return from === 0 ? text : cleaned + text.slice(from);
  };
}

function findSecretEnd(
  text: string,
  start: number,
  texts: readonly string[],
  patterns: readonly SecretPattern[],
): number {
  for (const secret of texts) if (text.startsWith(secret, start)) return start + secret.length;
  for (const { prefix, minLength } of patterns) {
    if (!text.startsWith(prefix, start)) continue;
    const from = start + prefix.length;
    let end = from;
    // Text after a too short match is scanned again from the next prefix; the rescan is bounded by `minLength`.
    while (end < text.length && isSecretCharacter(text.charCodeAt(end))) end += 1;
    if (end - from >= minLength) return end;
  }
  return start;
}

const secretPunctuation: ReadonlySet<number> = new Set([..."_-.+/=~"].map((character) => character.charCodeAt(0)));

/** True for characters of keys, tokens and base64. */
function isSecretCharacter(code: number): boolean {
  const isDigit = code >= 48 && code <= 57;
  return isDigit || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || secretPunctuation.has(code);
}

function describePattern(pattern: unknown): string {
  if (typeof pattern !== "object" || pattern === null) return `a value of type ${typeof pattern}`;
  const { prefix, minLength } = pattern as { readonly prefix?: unknown; readonly minLength?: unknown };
  return `{ prefix: ${typeof prefix === "string" ? JSON.stringify(prefix) : typeof prefix}, minLength: ${String(minLength)} }`;
}
