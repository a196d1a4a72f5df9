/**
 * The rules of a .gitignore, as git judges them (gitignore(5), wildmatch.c). A workspace is not trusted, so matching never
 * goes through a regular expression: it takes time in proportion to pattern times name, whatever the pattern.
 *
 * Everything here is a string of bytes (latin1), because git compares bytes: its `?` is one byte of a longer character.
 */

/** What a file of rules says of a path; undefined when none of its rules speaks of it. */
export type Verdict = "ignored" | "kept" | undefined;

/** One line of a .gitignore. */
export interface IgnoreRule {
  readonly verdict: "ignored" | "kept";
  readonly folderOnly: boolean;
  /** Compared with the name alone, at any depth; else with the path from the folder of the rules. */
  readonly nameOnly: boolean;
  readonly segments: readonly Segment[];
}

/** A part of a pattern between slashes; `deep` is `**`, any number of folders. */
type Segment = "deep" | readonly Token[];
type Token = "star" | "any" | CharacterSet;

interface CharacterSet {
  readonly negated: boolean;
  readonly ranges: readonly (readonly [from: number, to: number])[];
}

/** Read the rules of a .gitignore, given as bytes. Lines that git does not understand match nothing, as with git. */
export function ignoreRules(bytes: string): readonly IgnoreRule[] {
  const text = bytes.startsWith("\xef\xbb\xbf") ? bytes.slice(3) : bytes;
  return text.split("\n").flatMap((line) => ruleOf(line.endsWith("\r") ? line.slice(0, -1) : line) ?? []);
}

/** What the rules say of a path below their folder; the last rule that matches decides. */
export function judge(rules: readonly IgnoreRule[], path: readonly string[], isFolder: boolean): Verdict {
  const name = path.slice(-1);
  return rules.findLast(
    (rule) => (isFolder || !rule.folderOnly) && matchesPath(rule.segments, rule.nameOnly ? name : path),
  )?.verdict;
}

function ruleOf(line: string): IgnoreRule | undefined {
  if (line.startsWith("#")) return undefined;
  let pattern = withoutTrailingSpaces(line);
  const kept = pattern.startsWith("!");
  if (kept) pattern = pattern.slice(1);
  const folderOnly = pattern.endsWith("/");
  if (folderOnly) pattern = pattern.slice(0, -1);
  const nameOnly = !pattern.includes("/");
  if (pattern.startsWith("/")) pattern = pattern.slice(1);
  const segments = pattern === "" ? undefined : segmentsOf(pattern, nameOnly);
  return segments && { verdict: kept ? "kept" : "ignored", folderOnly, nameOnly, segments };
}

/** Spaces at the end do not count, unless a backslash stands before the space. */
function withoutTrailingSpaces(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === "\\") at++;
    else if (line[at] === " ") continue;
    end = at + 1;
  }
  return line.slice(0, end);
}

/** Cut a pattern at its slashes; undefined when a bracket or a backslash is left open. */
function segmentsOf(pattern: string, nameOnly: boolean): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let tokens: Token[] = [];
  let start = 0;
  const cut = (end: number) => {
    const deep = !nameOnly && /^\*\*+$/.test(pattern.slice(start, end));
    segments.push(deep ? "deep" : tokens);
    tokens = [];
  };
  for (let at = 0; at < pattern.length; ) {
    const char = pattern[at] ?? "";
    // An escaped slash is one, too; that git lets no folder at all stand for the `**` before it is not followed.
    if (char === "/" || pattern.startsWith("\\/", at)) {
      cut(at);
      at += char === "/" ? 1 : 2;
      start = at;
    } else if (char === "[") {
      const bracket = bracketAt(pattern, at);
      if (bracket === undefined) return undefined;
      tokens.push(bracket.set);
      at = bracket.end;
    } else if (char === "\\") {
      if (at + 1 === pattern.length) return undefined;
      tokens.push(literal(pattern.charCodeAt(at + 1)));
      at += 2;
    } else {
      if (char === "?") tokens.push("any");
      else if (char !== "*") tokens.push(literal(char.charCodeAt(0)));
      else if (tokens.at(-1) !== "star") tokens.push("star");
      at++;
    }
  }
  cut(pattern.length);
  return segments;
}

function literal(code: number): CharacterSet {
  return { negated: false, ranges: [[code, code]] };
}

/** The set of a bracket expression and where it ends; undefined when it never does. */
function bracketAt(pattern: string, open: number): { readonly set: CharacterSet; readonly end: number } | undefined {
  let at = open + 1;
  const negated = pattern[at] === "!" || pattern[at] === "^";
  if (negated) at++;
  const ranges: (readonly [number, number])[] = [];
  for (const first = at; at < pattern.length; ) {
    if (pattern[at] === "]" && at > first) return { set: { negated, ranges }, end: at + 1 };
    const close = pattern.startsWith("[:", at) ? pattern.indexOf("]", at + 2) : -1;
    if (close > at + 2 && pattern[close - 1] === ":") {
      const named = classes.get(pattern.slice(at + 2, close - 1));
      if (named === undefined) return undefined;
      ranges.push(...named);
      at = close + 1;
      continue;
    }
    const from = memberAt(pattern, at);
    at = from.end;
    if (pattern[at] === "-" && at + 1 < pattern.length && pattern[at + 1] !== "]") {
      const to = memberAt(pattern, at + 1);
      ranges.push([from.code, to.code]);
      at = to.end;
    } else {
      ranges.push([from.code, from.code]);
    }
  }
  return undefined;
}

function memberAt(pattern: string, at: number): { readonly code: number; readonly end: number } {
  const escaped = pattern[at] === "\\" ? 1 : 0;
  return { code: pattern.charCodeAt(at + escaped), end: at + escaped + 1 };
}

const digits = [0x30, 0x39] as const;
const upper = [0x41, 0x5a] as const;
const lower = [0x61, 0x7a] as const;
const blank = [0x20, 0x20] as const;
const classes: ReadonlyMap<string, readonly (readonly [number, number])[]> = new Map([
  ["alnum", [digits, upper, lower]],
  ["alpha", [upper, lower]],
  ["blank", [[0x09, 0x09], blank]],
  [
    "cntrl",
    [
      [0x00, 0x1f],
      [0x7f, 0x7f],
    ],
  ],
  ["digit", [digits]],
  ["graph", [[0x21, 0x7e]]],
  ["lower", [lower]],
  ["print", [[0x20, 0x7e]]],
  [
    "punct",
    [
      [0x21, 0x2f],
      [0x3a, 0x40],
      [0x5b, 0x60],
      [0x7b, 0x7e],
    ],
  ],
  ["space", [[0x09, 0x0d], blank]],
  ["upper", [upper]],
  ["xdigit", [digits, [0x41, 0x46], [0x61, 0x66]]],
]);

/** Segments against the parts of a path. On a mismatch it suffices to let the last `deep` take one part more. */
function matchesPath(segments: readonly Segment[], path: readonly string[]): boolean {
  return matchesWithGaps(segments, path.length, {
    isGap: (segment) => segment === "deep",
    fits: (segment, at) => segment !== "deep" && matchesName(segment, path[at] ?? ""),
    // `a/**` is what lies below a, not a itself.
    lastGapNeedsOne: true,
  });
}

function matchesName(tokens: readonly Token[], name: string): boolean {
  return matchesWithGaps(tokens, name.length, {
    isGap: (token) => token === "star",
    fits: (token, at) => token === "any" || (token !== "star" && contains(token, name.charCodeAt(at))),
    lastGapNeedsOne: false,
  });
}

/** Match a pattern that holds gaps of any length, in time of pattern × text: only the last gap is ever tried again. */
function matchesWithGaps<Part>(
  pattern: readonly Part[],
  length: number,
  how: {
    readonly isGap: (part: Part) => boolean;
    readonly fits: (part: Part, at: number) => boolean;
    readonly lastGapNeedsOne: boolean;
  },
): boolean {
  let gap = -1;
  let gapEnd = 0;
  let part = 0;
  let at = 0;
  while (at < length) {
    const current = pattern[part];
    if (current !== undefined && how.isGap(current)) {
      gap = part++;
      gapEnd = at;
      if (part === pattern.length) return true;
    } else if (current !== undefined && how.fits(current, at)) {
      part++;
      at++;
    } else if (gap >= 0) {
      part = gap + 1;
      at = ++gapEnd;
    } else {
      return false;
    }
  }
  if (how.lastGapNeedsOne) return part === pattern.length;
  return pattern.slice(part).every(how.isGap);
}

function contains(set: CharacterSet, code: number): boolean {
  return set.ranges.some(([from, to]) => code >= from && code <= to) !== set.negated;
}
