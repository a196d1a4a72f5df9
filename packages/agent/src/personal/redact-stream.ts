/**
 * Redacts a streaming text with the same result as for the whole text: holds back characters that may still become a
 * match.
 */
import { isSpace, isWordSeparator } from "./characters.ts";
import { createWordShape, type WordShape } from "./find-personal.ts";

/** Takes the next piece of a text; returns the redacted text that is safe to emit. */
export type StreamRedactor = (piece: string) => string;

/** Creates the redactor of a streaming text. Scans and cleans each character once. */
export function createStreamRedactor(clean: (text: string) => string): StreamRedactor {
  let buffer: string[] = [];
  /** Length of the buffer; all indices are relative to its start. */
  let length = 0;
  /** Length of the buffer prefix whose matches no further character can change. */
  let safeLength = 0;
  let word: { readonly start: number; readonly shape: WordShape } | undefined;
  /** End of the last word, when a match may span to the next word. */
  let openChain: { readonly end: number; readonly hasSeparator: boolean } | undefined;

  const finishWord = (start: number, shape: WordShape, code: number): void => {
    const isChain = shape.classify() === "chain";
    const isJoined = isChain && openChain?.hasSeparator === true && start === openChain.end + 1;
    if (!isJoined) safeLength = start;
    if (!isChain) safeLength = length;
    openChain = isChain ? { end: length, hasSeparator: isWordSeparator(code) } : undefined;
  };

  const consume = (code: number): void => {
    if (isSpace(code)) {
      if (word !== undefined) finishWord(word.start, word.shape, code);
      word = undefined;
    } else {
      word ??= { start: length, shape: createWordShape() };
      word.shape.add(code);
    }
    length += 1;
  };

  return (piece) => {
    for (let index = 0; index < piece.length; index++) consume(piece.charCodeAt(index));
    buffer.push(piece);
    if (safeLength === 0) return "";
    const text = buffer.join("");
    const redacted = clean(text.slice(0, safeLength));
    buffer = [text.slice(safeLength)];
    length -= safeLength;
    if (word !== undefined) word = { ...word, start: word.start - safeLength };
    if (openChain !== undefined) openChain = { ...openChain, end: openChain.end - safeLength };
    safeLength = 0;
    return redacted;
  };
}
