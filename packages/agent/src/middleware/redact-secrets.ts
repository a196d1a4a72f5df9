/** What looks like a secret is blotted out of results, text that is kept of them, partial results, progress, and arguments as events and questions show them. */
import {
  type ArtifactDraft,
  type ContentBlock,
  checkOptions,
  defineMiddleware,
  type Json,
  type Middleware,
  optionNames,
  StatewrightError,
  type ToolOutput,
} from "@statewright/core";

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
 * messages stay as they are: a provider must get back what its model wrote.
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
    showArgs: ({ args }) => cleanData(clean, args) as Json,
    onToolUpdate: ({ partial }) => cleanOutput(clean, partial),
    afterTool: ({ result }) => {
      const { error, drafts } = result;
      return {
        ...result,
        ...cleanOutput(clean, result),
        content: result.content.map((block) => cleanBlock(clean, block)),
        ...(error === undefined ? {} : { error: { ...error, message: clean(error.message) } }),
        ...(drafts === undefined ? {} : { drafts: drafts.map((draft) => cleanDraft(clean, draft)) }),
      };
    },
  });
}

/** A bound to how often one place is looked at. */
function isLength(atLeast: number): boolean {
  return Number.isInteger(atLeast) && atLeast >= 1 && atLeast <= 256;
}

type Clean = (text: string) => string;

function cleanOutput<Output extends Pick<ToolOutput, "content" | "value" | "details">>(
  clean: Clean,
  output: Output,
): Output {
  const { content, value, details } = output;
  return {
    ...output,
    content: typeof content === "string" ? clean(content) : content.map((block) => cleanBlock(clean, block)),
    ...(value === undefined ? {} : { value: cleanData(clean, value) }),
    ...(details === undefined ? {} : { details: cleanData(clean, details) }),
  };
}

function cleanBlock(clean: Clean, block: ContentBlock): ContentBlock {
  switch (block.type) {
    case "text":
      return { ...block, text: clean(block.text) };
    case "json":
      return { ...block, value: cleanData(clean, block.value) as Json };
    case "artifact":
      return { ...block, preview: clean(block.preview) };
    default:
      return block;
  }
}

/** Bytes stay as they are, and text of which the tool says so. */
function cleanDraft(clean: Clean, draft: ArtifactDraft): ArtifactDraft {
  const { name, body, redact } = draft;
  return { ...draft, name: clean(name), body: typeof body === "string" && redact !== false ? clean(body) : body };
}

/** Data with every text in it cleaned, names of keys too. What is no plain data stays as it is. */
function cleanData(clean: Clean, value: unknown): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((item) => cleanData(clean, item));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [clean(key), cleanData(clean, item)]));
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
