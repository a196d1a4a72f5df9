/**
 * Cuts streamed text into chunks whose ends depend on the text alone. Every process sends the same chunks under the same
 * ids, so a client that reconnects drops those that it has.
 */

/** Maximum characters of a chunk without white space. */
const maxWord = 24;

/** Returns the ends of the whole chunks of a text after `from`: each chunk ends after white space, or is 24 long. */
export function cutWords(text: string, from: number): readonly number[] {
  const ends: number[] = [];
  let start = from;
  for (let index = from; index < text.length; index++) {
    const isLong = index + 1 - start >= maxWord && !isHighSurrogate(text.charCodeAt(index));
    if (!isLong && !/\s/.test(text.charAt(index))) continue;
    ends.push(index + 1);
    start = index + 1;
  }
  return ends;
}

/** Returns the ends of the whole chunks of JSON after `from`. Chunks grow, because each sends the text from the start. */
export function cutGrowing(text: string, from: number): readonly number[] {
  const ends: number[] = [];
  for (let end = nextGrowingEnd(from); end <= text.length; end = nextGrowingEnd(end)) ends.push(end);
  return ends;
}

function nextGrowingEnd(from: number): number {
  return from + Math.max(maxWord, Math.floor(from / 4));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
