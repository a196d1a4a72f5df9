/** Secrets that begin in one block of text and end in another: whoever reads the blocks together would read them. */

import { isPlainObject } from "../json.ts";
import { blot, openFrom, type Place, placesIn, shortestSecret } from "./redact-text.ts";

/** What the words of a block are: texts are read together, and so are thoughts. */
type Kind = "text" | "reasoning";

/**
 * The blocks without secrets that lie over several of one kind: the blot stands where the secret begins, and a block that held
 * nothing else goes. The blocks themselves where there is none.
 */
export function withoutSplit<Block>(
  blocks: readonly Block[],
  secrets: readonly string[],
  kind: Kind = "text",
): readonly Block[] {
  if (secrets.length === 0 || blocks.length < 2) return blocks;
  const ends: number[] = [];
  let whole = "";
  for (const block of blocks) {
    if (!isOf(kind, block)) continue;
    whole += block.text;
    ends.push(whole.length);
  }
  if (ends.length < 2) return blocks;
  const split = splitPlaces(whole, ends, secrets);
  if (split.length === 0) return blocks;
  let nth = 0;
  let first = 0;
  return blocks.flatMap((block): readonly Block[] => {
    if (!isOf(kind, block)) return [block];
    const from = ends[nth - 1] ?? 0;
    const until = ends[nth] ?? from;
    nth += 1;
    while ((split[first]?.end ?? Number.POSITIVE_INFINITY) <= from) first += 1;
    let text = "";
    let at = from;
    let place = split[first];
    for (let next = first + 1; place !== undefined && place.start < until; next++) {
      text += whole.slice(at, Math.max(at, place.start)) + (place.start >= from ? blot : "");
      at = Math.min(place.end, until);
      place = split[next];
    }
    text += whole.slice(at, until);
    if (text === block.text) return [block];
    return text === "" ? [] : [{ ...block, text }];
  });
}

/** The place of the first text that only goes on with what could be the beginning of a secret; their number where none does. */
export function goesOnFrom(blocks: readonly unknown[], secrets: readonly string[]): number {
  const starts: { readonly place: number; readonly start: number }[] = [];
  let whole = "";
  for (const [place, block] of blocks.entries()) {
    if (!isOf("text", block)) continue;
    starts.push({ place, start: whole.length });
    whole += block.text;
  }
  if (starts.length < 2) return blocks.length;
  const open = openFrom(whole, secrets);
  if (whole.length - open < shortestSecret) return blocks.length;
  return starts.find(({ start }) => start > open)?.place ?? blocks.length;
}

/** Those with an end of a block within them. */
function splitPlaces(whole: string, ends: readonly number[], secrets: readonly string[]): readonly Place[] {
  let nth = 0;
  return placesIn(whole, secrets).filter(({ start, end }) => {
    while ((ends[nth] ?? whole.length) <= start) nth += 1;
    return (ends[nth] ?? whole.length) < end;
  });
}

function isOf(kind: Kind, block: unknown): block is { readonly type: Kind; readonly text: string } {
  return isPlainObject(block) && block["type"] === kind && typeof block["text"] === "string";
}
