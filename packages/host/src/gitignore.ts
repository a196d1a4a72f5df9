/**
 * Rules of a .gitignore, matched like git (gitignore(5), wildmatch.c). The content of a workspace is untrusted, so
 * matching uses no regular expression: the time is at most pattern length × name length for every pattern.
 *
 * All strings are byte strings (latin1), because git compares bytes: `?` matches a byte of a longer character.
 */

import type { FileKind } from "./file-kind.ts";

/** Verdict of an ignore file for a path; undefined when no rule matches. */
export type Verdict = "ignored" | "included" | undefined;

/** Rule of a .gitignore. */
export interface IgnoreRule {
  readonly verdict: "ignored" | "included";
  readonly folderOnly: boolean;
  /** Matched text: the name, at any depth, or the path from the folder of the .gitignore. */
  readonly matched: "name" | "path";
  readonly segments: readonly Segment[];
}

/** Part of a pattern between slashes; `deep` is `**`, any number of folders. */
type Segment = "deep" | readonly Token[];
type Token = "star" | "any" | CharacterSet;

interface CharacterSet {
  readonly negated: boolean;
  readonly ranges: readonly (readonly [from: number, to: number])[];
}

/** Parses the rules of a .gitignore, given as a byte string. Lines that are invalid for git match nothing. */
export function parseIgnoreRules(bytes: string): readonly IgnoreRule[] {
  const text = bytes.startsWith("\xef\xbb\xbf") ? bytes.slice(3) : bytes;
  return text.split("\n").flatMap((line) => parseRule(line.endsWith("\r") ? line.slice(0, -1) : line) ?? []);
}

/** Returns the verdict for a path below the folder of the rules; the last matching rule decides. */
export function matchIgnoreRules(
  rules: readonly IgnoreRule[],
  path: readonly string[],
  kind: FileKind | "link",
): Verdict {
  const name = path.slice(-1);
  return rules.findLast(
    ({ folderOnly, matched, segments }) =>
      (kind === "folder" || !folderOnly) && matchPath(segments, matched === "name" ? name : path),
  )?.verdict;
}

function parseRule(line: string): IgnoreRule | undefined {
  if (line.startsWith("#")) return undefined;
  let pattern = trimTrailingSpaces(line);
  const isNegated = pattern.startsWith("!");
  if (isNegated) pattern = pattern.slice(1);
  const folderOnly = pattern.endsWith("/");
  if (folderOnly) pattern = pattern.slice(0, -1);
  const matched = pattern.includes("/") ? "path" : "name";
  if (pattern.startsWith("/")) pattern = pattern.slice(1);
  const segments = pattern === "" ? undefined : parseSegments(pattern, matched);
  return segments && { verdict: isNegated ? "included" : "ignored", folderOnly, matched, segments };
}

/** Trailing spaces are ignored, except a space after a backslash. */
function trimTrailingSpaces(line: string): string {
  let end = 0;
  for (let at = 0; at < line.length; at++) {
    if (line[at] === "\\") at++;
    else if (line[at] === " ") continue;
    end = at + 1;
  }
  return line.slice(0, end);
}

/** Splits a pattern at its slashes; undefined for an unclosed bracket or a trailing backslash. */
function parseSegments(pattern: string, matched: IgnoreRule["matched"]): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let tokens: Token[] = [];
  let start = 0;
  const endSegment = (end: number) => {
    const deep = matched === "path" && /^\*\*+$/.test(pattern.slice(start, end));
    segments.push(deep ? "deep" : tokens);
    tokens = [];
  };
  for (let at = 0; at < pattern.length; ) {
    const char = pattern[at] ?? "";
    // An escaped slash is a separator too. In git, `**` before an escaped slash does not match zero folders; this
    // parser deliberately differs.
    if (char === "/" || pattern.startsWith("\\/", at)) {
      endSegment(at);
      at += char === "/" ? 1 : 2;
      start = at;
    } else if (char === "[") {
      const bracket = parseBracket(pattern, at);
      if (bracket === undefined) return undefined;
      tokens.push(bracket.set);
      at = bracket.end;
    } else if (char === "\\") {
      if (at + 1 === pattern.length) return undefined;
      tokens.push(createLiteral(pattern.charCodeAt(at + 1)));
      at += 2;
    } else {
      if (char === "?") tokens.push("any");
      else if (char !== "*") tokens.push(createLiteral(char.charCodeAt(0)));
      else if (tokens.at(-1) !== "star") tokens.push("star");
      at++;
    }
  }
  endSegment(pattern.length);
  return segments;
}

function createLiteral(code: number): CharacterSet {
  return { negated: false, ranges: [[code, code]] };
}

/** Parses a bracket expression and returns its set and end index; undefined for an unclosed bracket. */
function parseBracket(pattern: string, open: number): { readonly set: CharacterSet; readonly end: number } | undefined {
  let at = open + 1;
  const negated = pattern[at] === "!" || pattern[at] === "^";
  if (negated) at++;
  const ranges: (readonly [number, number])[] = [];
  for (const first = at; at < pattern.length; ) {
    if (pattern[at] === "]" && at > first) return { set: { negated, ranges }, end: at + 1 };
    const close = pattern.startsWith("[:", at) ? pattern.indexOf("]", at + 2) : -1;
    if (close > at + 2 && pattern[close - 1] === ":") {
      const classRanges = classes.get(pattern.slice(at + 2, close - 1));
      if (classRanges === undefined) return undefined;
      ranges.push(...classRanges);
      at = close + 1;
      continue;
    }
    const from = parseMember(pattern, at);
    at = from.end;
    if (pattern[at] === "-" && at + 1 < pattern.length && pattern[at + 1] !== "]") {
      const to = parseMember(pattern, at + 1);
      ranges.push([from.code, to.code]);
      at = to.end;
    } else {
      ranges.push([from.code, from.code]);
    }
  }
  return undefined;
}

function parseMember(pattern: string, at: number): { readonly code: number; readonly end: number } {
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

/**
 * Matches segments against the parts of a path. On a mismatch, only the last `deep` segment needs to consume one more
 * part.
 */
function matchPath(segments: readonly Segment[], path: readonly string[]): boolean {
  return matchWithGaps(segments, path.length, {
    isGap: (segment) => segment === "deep",
    matches: (segment, at) => segment !== "deep" && matchName(segment, path[at] ?? ""),
    // `a/**` matches the content of a, not a itself.
    lastGapNeedsOne: true,
  });
}

function matchName(tokens: readonly Token[], name: string): boolean {
  return matchWithGaps(tokens, name.length, {
    isGap: (token) => token === "star",
    matches: (token, at) => token === "any" || (token !== "star" && isInSet(token, name.charCodeAt(at))),
    lastGapNeedsOne: false,
  });
}

/** Matches a pattern with gaps of any length in O(pattern × text): only the last gap is retried. */
function matchWithGaps<Part>(
  pattern: readonly Part[],
  length: number,
  options: {
    readonly isGap: (part: Part) => boolean;
    readonly matches: (part: Part, at: number) => boolean;
    readonly lastGapNeedsOne: boolean;
  },
): boolean {
  let gap = -1;
  let gapEnd = 0;
  let part = 0;
  let at = 0;
  while (at < length) {
    const current = pattern[part];
    if (current !== undefined && options.isGap(current)) {
      gap = part++;
      gapEnd = at;
      if (part === pattern.length) return true;
    } else if (current !== undefined && options.matches(current, at)) {
      part++;
      at++;
    } else if (gap >= 0) {
      part = gap + 1;
      at = ++gapEnd;
    } else {
      return false;
    }
  }
  if (options.lastGapNeedsOne) return part === pattern.length;
  return pattern.slice(part).every(options.isGap);
}

function isInSet(set: CharacterSet, code: number): boolean {
  return set.ranges.some(([from, to]) => code >= from && code <= to) !== set.negated;
}
