/** What looks like a secret is blotted out of results, text that is kept of them, partial results, progress, and arguments as events and questions show them. */
import {
  checkOptions,
  defineMiddleware,
  type Json,
  type Middleware,
  optionNames,
  StatewrightError,
} from "@statewright/core";
import { type Clean, cleanData, cleanOutput, cleanResult } from "../output/clean-result.ts";

/** A secret by its looks: what it begins with, and how many letters, digits and `_-.+/=~` follow at least. */
export interface SecretPattern {
  readonly prefix: string;
  readonly atLeast: number;
}

/** What `redactSecrets` takes. */
export interface RedactOptions {
  /** Texts that are secret as they stand, 4 characters or more. */
  readonly texts?: readonly string[];
  /** Secrets by their looks, beside {@link knownSecrets}. */
  readonly patterns?: readonly SecretPattern[];
  /** What stands in their place. Default `[redacted]`. */
  readonly blot?: string;
}

/** Looks of keys that many services give out. */
export const knownSecrets: readonly SecretPattern[] = [
  { prefix: "sk-", atLeast: 16 },
  { prefix: "sk_live_", atLeast: 16 },
  { prefix: "rk_live_", atLeast: 16 },
  { prefix: "ghp_", atLeast: 20 },
  { prefix: "gho_", atLeast: 20 },
  { prefix: "ghs_", atLeast: 20 },
  { prefix: "github_pat_", atLeast: 20 },
  { prefix: "glpat-", atLeast: 16 },
  { prefix: "xoxb-", atLeast: 16 },
  { prefix: "xoxp-", atLeast: 16 },
  { prefix: "AKIA", atLeast: 16 },
  { prefix: "AIza", atLeast: 30 },
  { prefix: "npm_", atLeast: 30 },
  { prefix: "Bearer ", atLeast: 16 },
  { prefix: "eyJ", atLeast: 24 },
];

/**
 * Blot secrets out. Each text is walked once, from its start to its end, so no text takes long to look at. The model's own
 * messages stay as they are: a provider must get back what its model wrote. It stands around sub-agents too.
 */
export function redactSecrets(options: RedactOptions = {}): Middleware {
  checkOptions("redactSecrets", options, optionNames<RedactOptions>({ texts: true, patterns: true, blot: true }));
  const { texts = [], patterns = [], blot = "[redacted]" } = options;
  for (const text of texts)
    if (typeof text !== "string" || text.length < 4) throw unfit("a text of 4 characters or more");
  for (const pattern of patterns)
    if (!(typeof pattern?.prefix === "string" && pattern.prefix.length >= 2 && isLength(pattern.atLeast)))
      throw unfit("{ prefix: 2 characters or more, atLeast: a whole number from 1 to 256 }");
  const clean = cleaner(
    texts.toSorted((one, other) => other.length - one.length),
    [...knownSecrets, ...patterns],
    blot,
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

/** A bound to how often one place is looked at. */
function isLength(atLeast: number): boolean {
  return Number.isInteger(atLeast) && atLeast >= 1 && atLeast <= 256;
}

/** One walk over a text: at each place the longest secret text, or the looks of one, is looked for. */
function cleaner(texts: readonly string[], patterns: readonly SecretPattern[], blot: string): Clean {
  const begins = new Map<string, { readonly texts: string[]; readonly patterns: SecretPattern[] }>();
  const at = (first: string) => {
    const known = begins.get(first) ?? { texts: [], patterns: [] };
    begins.set(first, known);
    return known;
  };
  for (const text of texts) at(text.charAt(0)).texts.push(text);
  for (const pattern of patterns) at(pattern.prefix.charAt(0)).patterns.push(pattern);
  return (text) => {
    let cleaned = "";
    let from = 0;
    for (let index = 0; index < text.length; index++) {
      const known = begins.get(text.charAt(index));
      const end = known === undefined ? index : endOfSecret(text, index, known.texts, known.patterns);
      if (end === index) continue;
      cleaned += text.slice(from, index) + blot;
      from = end;
      index = end - 1;
    }
    return from === 0 ? text : cleaned + text.slice(from);
  };
}

function endOfSecret(
  text: string,
  start: number,
  texts: readonly string[],
  patterns: readonly SecretPattern[],
): number {
  for (const secret of texts) if (text.startsWith(secret, start)) return start + secret.length;
  for (const { prefix, atLeast } of patterns) {
    if (!text.startsWith(prefix, start)) continue;
    const from = start + prefix.length;
    let end = from;
    // A run that is too short is walked again from the next prefix in it: it is shorter than the pattern wants.
    while (end < text.length && isOfSecret(text.charCodeAt(end))) end += 1;
    if (end - from >= atLeast) return end;
  }
  return start;
}

const alsoInSecrets: ReadonlySet<number> = new Set([..."_-.+/=~"].map((character) => character.charCodeAt(0)));

/** Letters, digits and what stands between them in keys, tokens and base64. */
function isOfSecret(code: number): boolean {
  const isDigit = code >= 48 && code <= 57;
  return isDigit || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || alsoInSecrets.has(code);
}

function unfit(wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: "redactSecrets got what is no secret",
    next: `Give ${wanted}`,
  });
}
