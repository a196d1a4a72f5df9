/** Finds the lines of a file most similar to a missing text, for a model that mistyped the text to replace. Pure. */

/** Maximum characters of a quoted line. */
const maxShownCharacters = 200;

/** Minimum similarity of lines to count as a match. */
const minSimilarity = 0.6;

/** Minimum share of all characters in equal lines for a match. */
const minSharedRatio = 0.3;

/** Maximum occurrences of equal lines, such as a closing brace, that are considered. */
const maxEqualLines = 20;

/** Maximum characters of a searched text; a longer text would take too long. */
const maxSearchedCharacters = 2 ** 20;

/** Describes the lines of `text` most similar to the missing text `wanted`; undefined without similar lines. */
export function describeNearestLines(text: string, wanted: string): string | undefined {
  if (text.length > maxSearchedCharacters) return undefined;
  const lines = text.split("\n");
  const wantedLines = wanted.split("\n");
  const start = findSharedStart(lines, wantedLines) ?? findSimilarStart(lines, wantedLines);
  if (start === undefined) return undefined;
  const indexes = wantedLines.map((_, index) => index).filter((index) => lines[start + index] !== undefined);
  const mismatch = indexes.find(
    (index) => !isMatchingLine(lines[start + index] ?? "", wantedLines[index] ?? "", index, wantedLines.length),
  );
  const firstLine = start + 1;
  if (mismatch === undefined)
    return `The nearest lines start at line ${firstLine}, and the file ends before the last given line.`;
  const [actual, expected] = [lines[start + mismatch] ?? "", wantedLines[mismatch] ?? ""];
  const isWhitespaceOnly = indexes.every((index) =>
    isMatchingLine(
      removeWhitespace(lines[start + index] ?? ""),
      removeWhitespace(wantedLines[index] ?? ""),
      index,
      wantedLines.length,
    ),
  );
  const note = isWhitespaceOnly ? `, which ${wantedLines.length === 1 ? "differs" : "differ"} in white space only` : "";
  if (wantedLines.length === 1) return `The nearest is line ${firstLine}${note}: ${quoteLine(actual)}.`;
  return `The nearest are lines ${firstLine} to ${Math.min(start + wantedLines.length, lines.length)}${note}: line ${start + mismatch + 1} is ${quoteLine(actual)}, but ${quoteLine(expected)} was given.`;
}

/**
 * Finds the start of lines equal to the wanted lines in the same order, ignoring white space at line ends, if the
 * share is large enough.
 */
function findSharedStart(lines: readonly string[], wantedLines: readonly string[]): number | undefined {
  const indexesByLine = new Map<string, number[]>();
  let totalLength = 0;
  for (const [index, line] of wantedLines.entries()) {
    const known = line.trim();
    totalLength += known.length;
    const indexes = indexesByLine.get(known) ?? [];
    if (known !== "" && indexes.length < maxEqualLines) indexesByLine.set(known, [...indexes, index]);
  }
  const shared = new Map<number, number>();
  let best: number | undefined;
  let bestLength = totalLength * minSharedRatio;
  for (const [index, line] of lines.entries()) {
    const known = line.trim();
    for (const wantedIndex of indexesByLine.get(known) ?? []) {
      const start = index - wantedIndex;
      const length = (shared.get(start) ?? 0) + known.length;
      shared.set(start, length);
      if (start < 0 || length <= bestLength) continue;
      best = start;
      bestLength = length;
    }
  }
  return best;
}

/** Finds the start by the line most similar to the longest wanted line. */
function findSimilarStart(lines: readonly string[], wantedLines: readonly string[]): number | undefined {
  const longest = wantedLines.reduce(
    (long, line, index) => (line.trim().length > (wantedLines[long] ?? "").trim().length ? index : long),
    0,
  );
  const wanted = countPairs((wantedLines[longest] ?? "").trim());
  let best: number | undefined;
  let bestSimilarity = minSimilarity;
  for (const [index, line] of lines.entries()) {
    const similarity = index < longest ? 0 : computeSimilarity(wanted, line.trim());
    if (similarity <= bestSimilarity) continue;
    best = index - longest;
    bestSimilarity = similarity;
  }
  return best;
}

interface CharacterPairs {
  readonly counts: ReadonlyMap<number, number>;
  readonly size: number;
}

function countPairs(line: string): CharacterPairs {
  const counts = new Map<number, number>();
  for (let position = 1; position < line.length; position++) {
    const pair = getPair(line, position);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, size: Math.max(0, line.length - 1) };
}

function getPair(line: string, position: number): number {
  return line.charCodeAt(position - 1) * 65_536 + line.charCodeAt(position);
}

/** Computes the Dice coefficient of the character pairs of two lines, from 0 to 1. */
function computeSimilarity({ counts, size }: CharacterPairs, line: string): number {
  const otherSize = line.length - 1;
  if (otherSize < size / 2 || otherSize > size * 2 || size === 0) return 0;
  const remaining = new Map(counts);
  let shared = 0;
  for (let position = 1; position < line.length; position++) {
    const pair = getPair(line, position);
    const count = remaining.get(pair) ?? 0;
    if (count === 0) continue;
    remaining.set(pair, count - 1);
    shared += 1;
  }
  return (2 * shared) / (size + otherSize);
}

/**
 * Compares a wanted line with a line of the file; the first line may start and the last line may end within a line of
 * the file.
 */
function isMatchingLine(line: string, part: string, index: number, count: number): boolean {
  if (count === 1) return line.includes(part);
  if (index === 0) return line.endsWith(part);
  return index === count - 1 ? line.startsWith(part) : line === part;
}

function removeWhitespace(line: string): string {
  return line.replaceAll(/\s+/g, "");
}

function quoteLine(line: string): string {
  return JSON.stringify(line.length > maxShownCharacters ? `${line.slice(0, maxShownCharacters)}…` : line);
}
