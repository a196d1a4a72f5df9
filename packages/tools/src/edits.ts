/** Applies edits to a text: each replaces a unique occurrence; line ends and all other text stay unchanged. Pure. */
import { ToolError } from "@statewright/core";
import { describeNearestLines } from "./nearest-lines.ts";

/** Edit that replaces `old`, which occurs exactly once in the text, by `new`. */
export interface Edit {
  readonly old: string;
  readonly new: string;
}

interface Replacement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Applies all edits to the original text; `isDone` is true when the text already is the result of the edits. Throws a
 * `failed` ToolError, and changes nothing, when an old text does not occur exactly once or two edits overlap.
 */
export function applyEdits(text: string, edits: readonly Edit[]): { readonly text: string; readonly isDone: boolean } {
  const normalized = edits.map((edit) => ({ old: removeReturns(edit.old), new: removeReturns(edit.new) }));
  if (isApplied(removeReturns(text), normalized)) return { text, isDone: true };
  const replacements = locateEdits(removeReturns(text), normalized);
  if (!Array.isArray(replacements)) throw ToolError.failed(`${replacements()} Nothing was changed.`);
  return { text: replaceInOriginal(text, replacements), isDone: false };
}

/** Describes a problem; lazy, because the description searches the whole file. */
type DescribeProblem = () => string;

/** Locates each edit in a text without carriage returns, in text order; or returns the description of a problem. */
function locateEdits(text: string, edits: readonly Edit[]): Replacement[] | DescribeProblem {
  const replacements: Replacement[] = [];
  for (const [index, edit] of edits.entries()) {
    const label = edits.length === 1 ? "The old text" : `The old text of edit ${index + 1}`;
    if (edit.old === "") return () => `${label} is empty. Pass the text to replace, or write the whole file.`;
    if (edit.old === edit.new) return () => `${label} equals the new text.`;
    const start = text.indexOf(edit.old);
    if (start === -1) return () => describeAbsent(label, text, edit.old);
    if (text.indexOf(edit.old, start + 1) !== -1) return () => describeAmbiguous(label, text, edit.old);
    replacements.push({ start, end: start + edit.old.length, text: edit.new });
  }
  replacements.sort((left, right) => left.start - right.start);
  const hasOverlap = replacements.some(({ start }, index) => start < (replacements[index - 1]?.end ?? 0));
  return hasOverlap ? () => "Two edits overlap. Combine them into one." : replacements;
}

function describeAbsent(label: string, text: string, old: string): string {
  const nearest = describeNearestLines(text, old);
  const next = "Read the file, and copy the text exactly.";
  return `${label} does not occur in the file. ${nearest === undefined ? "" : `${nearest} `}${next}`;
}

/** Maximum line numbers in a message. */
const maxNamedLines = 5;

function describeAmbiguous(label: string, text: string, old: string): string {
  const lines: number[] = [];
  let [count, line, from] = [0, 1, 0];
  for (let position = text.indexOf(old); position !== -1; position = text.indexOf(old, position + 1)) {
    count += 1;
    if (lines.length === maxNamedLines) continue;
    for (; from < position; from++) if (text[from] === "\n") line += 1;
    if (lines.at(-1) !== line) lines.push(line);
  }
  const more = lines.length === maxNamedLines ? ", …" : "";
  const where = lines.length === 1 ? `line ${line}` : `lines ${lines.join(", ")}${more}`;
  return `${label} occurs in the file ${count} times, in ${where}. Include more of the surrounding text.`;
}

/**
 * True when the text can be the result of these edits: each new text occurs once, and reverting and reapplying the
 * edits gives the same text.
 */
function isApplied(text: string, edits: readonly Edit[]): boolean {
  if (edits.some((edit) => edit.new === "" || edit.old === edit.new)) return false;
  const reverted = locateEdits(
    text,
    edits.map((edit) => ({ old: edit.new, new: edit.old })),
  );
  if (!Array.isArray(reverted)) return false;
  const original = replaceRanges(text, reverted);
  const reapplied = locateEdits(original, edits);
  return Array.isArray(reapplied) && replaceRanges(original, reapplied) === text;
}

function replaceRanges(text: string, replacements: readonly Replacement[]): string {
  let result = "";
  let position = 0;
  for (const { start, end, text: replacement } of replacements) {
    result += text.slice(position, start) + replacement;
    position = end;
  }
  return result + text.slice(position);
}

/** Applies replacements to the original text; their indices do not count carriage returns before line feeds. */
function replaceInOriginal(text: string, replacements: readonly Replacement[]): string {
  const returns = [...text.matchAll(/\r\n/g)].map(({ index }, count) => index - count);
  const hasReturns = returns.length > 0;
  /** Converts an index without carriage returns to an index of the original text. */
  const toOriginalIndex = (index: number): number => index + countBelow(returns, index);
  const ranges = replacements.map((each) => {
    const start = toOriginalIndex(each.start);
    const end = toOriginalIndex(each.end);
    const lineEnd = /\r?\n/.exec(text.slice(start, end))?.[0] ?? (hasReturns ? findNearestLineEnd(text, start) : "\n");
    return { start, end, text: lineEnd === "\n" ? each.text : each.text.replaceAll("\n", lineEnd) };
  });
  return replaceRanges(text, ranges);
}

/** Returns the next line end after an index, else the previous line end. */
function findNearestLineEnd(text: string, position: number): string {
  const after = text.indexOf("\n", position);
  const end = after === -1 ? text.lastIndexOf("\n", position) : after;
  return text[end - 1] === "\r" ? "\r\n" : "\n";
}

/** Counts the ascending numbers below a limit (binary search). */
function countBelow(numbers: readonly number[], limit: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function removeReturns(text: string): string {
  return text.replaceAll("\r\n", "\n");
}
