/** Edits of a text: each replaces what stands in it once; line ends and everything else stay as they are. Pure. */
import { ToolError } from "@statewright/core";
import { nearestLines } from "./nearest-lines.ts";

/** Replace `old`, which stands in the text exactly once, by `new`. */
export interface Edit {
  readonly old: string;
  readonly new: string;
}

interface Found {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Make all edits, judged against the text as it was; `isDone` says that the text already is what they lead to. Throws a
 * `failed` ToolError, and changes nothing, when one does not stand there once or two meet.
 */
export function applyEdits(text: string, edits: readonly Edit[]): { readonly text: string; readonly isDone: boolean } {
  const plain = edits.map((edit) => ({ old: withoutReturns(edit.old), new: withoutReturns(edit.new) }));
  if (isApplied(withoutReturns(text), plain)) return { text, isDone: true };
  const found = foundIn(withoutReturns(text), plain);
  if (!Array.isArray(found)) throw ToolError.failed(`${found()} Nothing was changed.`);
  return { text: withReplaced(text, found), isDone: false };
}

/** Says what is wrong; that takes a look at the whole file. */
type Wrong = () => string;

/** Where each edit stands in a text without carriage returns, by place; or what is wrong with one. */
function foundIn(text: string, edits: readonly Edit[]): Found[] | Wrong {
  const found: Found[] = [];
  for (const [index, edit] of edits.entries()) {
    const which = edits.length === 1 ? "The old text" : `The old text of edit ${index + 1}`;
    if (edit.old === "") return () => `${which} is empty. Give the text to replace, or write the whole file.`;
    if (edit.old === edit.new) return () => `${which} equals the new one.`;
    const start = text.indexOf(edit.old);
    if (start === -1) return () => absent(which, text, edit.old);
    if (text.indexOf(edit.old, start + 1) !== -1) return () => ambiguous(which, text, edit.old);
    found.push({ start, end: start + edit.old.length, text: edit.new });
  }
  found.sort((one, other) => one.start - other.start);
  const meets = found.some(({ start }, index) => start < (found[index - 1]?.end ?? 0));
  return meets ? () => "Two edits overlap. Make one of them." : found;
}

function absent(which: string, text: string, old: string): string {
  const nearest = nearestLines(text, old);
  const next = "Read the file, and give it exactly as it stands there.";
  return `${which} does not stand in the file. ${nearest === undefined ? "" : `${nearest} `}${next}`;
}

/** Lines that are named at most. */
const mostNamed = 5;

function ambiguous(which: string, text: string, old: string): string {
  const lines: number[] = [];
  let [count, line, from] = [0, 1, 0];
  for (let at = text.indexOf(old); at !== -1; at = text.indexOf(old, at + 1)) {
    count += 1;
    if (lines.length === mostNamed) continue;
    for (; from < at; from++) if (text[from] === "\n") line += 1;
    if (lines.at(-1) !== line) lines.push(line);
  }
  const more = lines.length === mostNamed ? ", …" : "";
  const where = lines.length === 1 ? `line ${line}` : `lines ${lines.join(", ")}${more}`;
  return `${which} stands in the file ${count} times, in ${where}. Give more of what is around the one that you mean.`;
}

/** Whether the text is what the edits make of some text: each new one stands there once, and taking them back leads to it. */
function isApplied(text: string, edits: readonly Edit[]): boolean {
  if (edits.some((edit) => edit.new === "" || edit.old === edit.new)) return false;
  const back = foundIn(
    text,
    edits.map((edit) => ({ old: edit.new, new: edit.old })),
  );
  if (!Array.isArray(back)) return false;
  const before = replaced(text, back);
  const again = foundIn(before, edits);
  return Array.isArray(again) && replaced(before, again) === text;
}

function replaced(text: string, found: readonly Found[]): string {
  let result = "";
  let at = 0;
  for (const { start, end, text: put } of found) {
    result += text.slice(at, start) + put;
    at = end;
  }
  return result + text.slice(at);
}

/** Replace in the text as it stands: places are counted without the returns that stand before line feeds. */
function withReplaced(text: string, found: readonly Found[]): string {
  const returns = [...text.matchAll(/\r\n/g)].map(({ index }, count) => index - count);
  const usesReturns = returns.length > 0;
  /** Where a place stands in the text, behind the returns before it. */
  const placed = (at: number): number => at + countBefore(returns, at);
  const places = found.map((each) => {
    const start = placed(each.start);
    const end = placed(each.end);
    const lineEnd = /\r?\n/.exec(text.slice(start, end))?.[0] ?? nearestLineEnd(text, start, usesReturns);
    return { start, end, text: lineEnd === "\n" ? each.text : each.text.replaceAll("\n", lineEnd) };
  });
  return replaced(text, places);
}

/** The line end that stands next behind a place, or else next before it; of a text without any, a line feed. */
function nearestLineEnd(text: string, at: number, usesReturns: boolean): string {
  if (!usesReturns) return "\n";
  const after = text.indexOf("\n", at);
  const end = after === -1 ? text.lastIndexOf("\n", at) : after;
  return text[end - 1] === "\r" ? "\r\n" : "\n";
}

/** How many of these ascending numbers are smaller. */
function countBefore(places: readonly number[], at: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function withoutReturns(text: string): string {
  return text.replaceAll("\r\n", "\n");
}
