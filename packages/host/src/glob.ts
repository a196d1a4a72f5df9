/** Globs as .gitignore and ripgrep read them. A model writes them, so matching takes time in proportion to pattern times path. */
import { ignoreRules, judge } from "./gitignore.ts";
import { HostError } from "./host-error.ts";

/** How many patterns the braces of one glob may stand for. */
const mostAlternatives = 256;

/**
 * A test for paths with `/` from the root: `*` and `?` stay inside a name, `**` is any number of folders, `[a-z]` one
 * character, `{ts,tsx}` one of several. A glob without a slash is about names, at any depth. Throws `io` when it can match
 * nothing: empty, or with a bracket or a backslash left open.
 */
export function globMatcher(glob: string): (path: string) => boolean {
  const rules = alternatives(glob.startsWith("./") ? glob.slice(2) : glob).flatMap((pattern) => {
    // What a .gitignore reads as a comment, as "not" or as white space at the end is here a part of the name.
    const literal = pattern.replace(/^[#!]/, "\\$&").replace(/ +$/, (spaces) => "\\ ".repeat(spaces.length));
    return ignoreRules(Buffer.from(literal).toString("latin1"));
  });
  if (rules.length === 0 || glob.includes("\n")) {
    throw new HostError("io", `The glob ${JSON.stringify(glob)} matches nothing. Mend it, for example **/*.ts.`);
  }
  return (path) => {
    const parts = Buffer.from(path).toString("latin1").split("/");
    return judge(rules, parts, false) === "ignored";
  };
}

/** The patterns that the braces of a glob stand for; one that is left open, or holds no comma, stands for itself. */
function alternatives(glob: string): readonly string[] {
  const done: string[] = [];
  const open = [glob];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const braces = firstBraces(next);
    if (braces === undefined) done.push(next);
    else {
      const { before, choices, after } = braces;
      for (const choice of choices.toReversed()) open.push(`${before}${choice}${after}`);
    }
    if (done.length + open.length > mostAlternatives) {
      const what = `The glob ${JSON.stringify(glob.slice(0, 100))} stands for more than ${mostAlternatives} patterns.`;
      throw new HostError("too_large", `${what} Use fewer braces.`);
    }
  }
  return done;
}

interface Braces {
  readonly before: string;
  readonly choices: readonly string[];
  readonly after: string;
}

/** The first braces that hold a comma at their own level, cut at these commas. */
function firstBraces(glob: string): Braces | undefined {
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
      const cuts = [start.at, ...start.commas, at];
      const choices = cuts.slice(1).map((end, index) => glob.slice((cuts[index] ?? 0) + 1, end));
      found = { at: start.at, before: glob.slice(0, start.at), choices, after: glob.slice(at + 1) };
      if (starts.length === 0) return found;
    }
  }
  return found;
}
