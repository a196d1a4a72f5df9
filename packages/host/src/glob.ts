/**
 * Globs with the syntax of .gitignore and ripgrep. A model writes the globs, so the matching time is at most pattern
 * length × path length.
 */
import { matchIgnoreRules, parseIgnoreRules } from "./gitignore.ts";
import { HostError } from "./host-error.ts";

/** Maximum characters of a glob: those of a path. */
const maxLength = 4_096;

/** Maximum number of patterns after brace expansion of a glob. */
const maxAlternatives = 256;

/**
 * Creates a matcher for paths relative to the root, with `/`: `*` and `?` match within a name, `**` matches any
 * number of folders, `[a-z]` a character, `{ts,tsx}` one of several. A glob without a slash matches names at any
 * depth. Throws `too_large` for a glob of more than 4,096 characters or 256 patterns, and `io` for a glob that can match nothing: empty, or with an unclosed bracket or a trailing backslash.
 */
export function createGlobMatcher(glob: string): (path: string) => boolean {
  if (glob.length > maxLength) {
    const fact = `The glob has ${glob.length} characters, more than ${maxLength}.`;
    throw new HostError("too_large", `${fact} Use a shorter glob.`);
  }
  const rules = expandBraces(glob.startsWith("./") ? glob.slice(2) : glob).flatMap((pattern) => {
    // Escapes a leading `#` or `!` and trailing spaces, which are literal in a glob but not in a .gitignore.
    const literal = pattern.replace(/^[#!]/, "\\$&").replace(/ +$/, (spaces) => "\\ ".repeat(spaces.length));
    return parseIgnoreRules(Buffer.from(literal).toString("latin1"));
  });
  if (rules.length === 0 || glob.includes("\n")) {
    throw new HostError("io", `The glob ${JSON.stringify(glob)} matches nothing. Fix the glob, for example **/*.ts.`);
  }
  return (path) => {
    const parts = Buffer.from(path).toString("latin1").split("/");
    return matchIgnoreRules(rules, parts, "file") === "ignored";
  };
}

/** Expands the braces of a glob into patterns; unclosed braces, or braces without a comma, are literal. */
function expandBraces(glob: string): readonly string[] {
  const expanded: string[] = [];
  const pending = [glob];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const braces = findFirstBraces(next);
    if (braces === undefined) expanded.push(next);
    else {
      const { before, choices, after } = braces;
      for (const choice of choices.toReversed()) pending.push(`${before}${choice}${after}`);
    }
    if (expanded.length + pending.length > maxAlternatives) {
      const fact = `The glob ${JSON.stringify(glob.slice(0, 100))} expands to more than ${maxAlternatives} patterns.`;
      throw new HostError("too_large", `${fact} Use fewer braces.`);
    }
  }
  return expanded;
}

interface Braces {
  readonly before: string;
  readonly choices: readonly string[];
  readonly after: string;
}

/** Finds the first braces with a comma at their own level, split at these commas. */
function findFirstBraces(glob: string): Braces | undefined {
  const starts: { readonly at: number; readonly commas: number[] }[] = [];
  let found: (Braces & { readonly at: number }) | undefined;
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at];
    if (char === "\\") at++;
    else if (char === "{") starts.push({ at, commas: [] });
    else if (char === ",") starts.at(-1)?.commas.push(at);
    else if (char === "}") {
      const start = starts.pop();
      if (start === undefined || start.commas.length === 0) continue;
      const separators = [start.at, ...start.commas, at];
      const choices = separators.slice(1).map((end, index) => glob.slice((separators[index] ?? 0) + 1, end));
      found = { at: start.at, before: glob.slice(0, start.at), choices, after: glob.slice(at + 1) };
      if (starts.length === 0) return found;
    }
  }
  return found;
}
