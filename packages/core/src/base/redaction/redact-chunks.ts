/** Redacts secrets that span several text blocks, since readers join the blocks. */

import { isPlainObject } from "../json.ts";
import { findOpenStart, findSecretRanges, minSecretCharacters, redactionMark, type TextRange } from "./redact-text.ts";

/** Kind of a block. Blocks of the same kind are read as a single text. */
type BlockKind = "text" | "reasoning";

/**
 * Redacts secrets that span several blocks of a kind. The redaction mark is in the block where the secret begins; a
 * block that becomes empty is removed. Returns the same blocks without a match.
 */
export function redactSplitSecrets<Block>(
  blocks: readonly Block[],
  secrets: readonly string[],
  kind: BlockKind = "text",
): readonly Block[] {
  if (secrets.length === 0 || blocks.length < 2) return blocks;
  const ends: number[] = [];
  let joined = "";
  for (const block of blocks) {
    if (!hasBlockKind(kind, block)) continue;
    joined += block.text;
    ends.push(joined.length);
  }
  if (ends.length < 2) return blocks;
  const splitRanges = findSplitRanges(joined, ends, secrets);
  if (splitRanges.length === 0) return blocks;
  let blockIndex = 0;
  let rangeIndex = 0;
  return blocks.flatMap((block): readonly Block[] => {
    if (!hasBlockKind(kind, block)) return [block];
    const from = ends[blockIndex - 1] ?? 0;
    const until = ends[blockIndex] ?? from;
    blockIndex += 1;
    while ((splitRanges[rangeIndex]?.end ?? Number.POSITIVE_INFINITY) <= from) rangeIndex += 1;
    let text = "";
    let position = from;
    let range = splitRanges[rangeIndex];
    for (let next = rangeIndex + 1; range !== undefined && range.start < until; next++) {
      text += joined.slice(position, Math.max(position, range.start)) + (range.start >= from ? redactionMark : "");
      position = Math.min(range.end, until);
      range = splitRanges[next];
    }
    text += joined.slice(position, until);
    if (text === block.text) return [block];
    return text === "" ? [] : [{ ...block, text }];
  });
}

/**
 * Returns the index of the first text block that only continues a possible beginning of a secret; the number of
 * blocks otherwise.
 */
export function findContinuationIndex(blocks: readonly unknown[], secrets: readonly string[]): number {
  const starts: { readonly index: number; readonly start: number }[] = [];
  let joined = "";
  for (const [place, block] of blocks.entries()) {
    if (!hasBlockKind("text", block)) continue;
    starts.push({ index: place, start: joined.length });
    joined += block.text;
  }
  if (starts.length < 2) return blocks.length;
  const openStart = findOpenStart(joined, secrets);
  if (joined.length - openStart < minSecretCharacters) return blocks.length;
  return starts.find(({ start }) => start > openStart)?.index ?? blocks.length;
}

/** Finds the secret ranges that contain the end of a block. */
function findSplitRanges(joined: string, ends: readonly number[], secrets: readonly string[]): readonly TextRange[] {
  let blockIndex = 0;
  return findSecretRanges(joined, secrets).filter(({ start, end }) => {
    while ((ends[blockIndex] ?? joined.length) <= start) blockIndex += 1;
    return (ends[blockIndex] ?? joined.length) < end;
  });
}

function hasBlockKind(kind: BlockKind, block: unknown): block is { readonly type: BlockKind; readonly text: string } {
  return isPlainObject(block) && block["type"] === kind && typeof block["text"] === "string";
}
