/** A text that comes in pieces, cleaned as if it had come whole: what may still become a find is held back. */
import { isJoint, isSpace, type WordShape, wordShape } from "./find-personal.ts";

/** Takes the next piece of a text; gives what may be told by now, cleaned. */
export type CleanStream = (piece: string) => string;

/** A stream of one text, cleaned by `clean`. Each character is looked at once, and cleaned once. */
export function cleanStream(clean: (text: string) => string): CleanStream {
  let held: string[] = [];
  /** Places are counted from the start of what is held. */
  let length = 0;
  /** Up to here nothing that comes can change what is found. */
  let safe = 0;
  let word: { readonly start: number; readonly shape: WordShape } | undefined;
  /** The last word, when a find may reach from it into the next one. */
  let open: { readonly end: number; readonly joint: boolean } | undefined;

  const endWord = (start: number, shape: WordShape, code: number): void => {
    const isChain = shape.kind() === "chain";
    const isJoined = isChain && open?.joint === true && start === open.end + 1;
    if (!isJoined) safe = start;
    if (!isChain) safe = length;
    open = isChain ? { end: length, joint: isJoint(code) } : undefined;
  };

  const take = (code: number): void => {
    if (isSpace(code)) {
      if (word !== undefined) endWord(word.start, word.shape, code);
      word = undefined;
    } else {
      word ??= { start: length, shape: wordShape() };
      word.shape.add(code);
    }
    length += 1;
  };

  return (piece) => {
    for (let index = 0; index < piece.length; index++) take(piece.charCodeAt(index));
    held.push(piece);
    if (safe === 0) return "";
    const text = held.join("");
    const told = clean(text.slice(0, safe));
    held = [text.slice(safe)];
    length -= safe;
    if (word !== undefined) word = { ...word, start: word.start - safe };
    if (open !== undefined) open = { ...open, end: open.end - safe };
    safe = 0;
    return told;
  };
}
