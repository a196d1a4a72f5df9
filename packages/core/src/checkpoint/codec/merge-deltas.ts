/** Compacts consecutive deltas of a channel into fewer deltas with the same result, for retention. */
import { isStatewrightError } from "../../base/errors.ts";
import type { Codec } from "../../state/codec.ts";
import { applyDelta, type Delta } from "../../state/delta.ts";
import type { PrunedDelta } from "../export/thread-export.ts";
import { joinDeltas, parseDelta, toDeltaRow } from "./saved-state.ts";

/**
 * Drops rows before the last base and merges compatible neighbours; a merged row takes the checkpoint of its last
 * row. A large row stays unmerged until the following rows are as large in total, so that the cost stays proportional
 * to the removed rows. Rows that the codec cannot decode are kept unchanged: a missing class loses no data.
 */
export function mergeDeltas(codec: Codec, rows: readonly PrunedDelta[]): readonly PrunedDelta[] {
  const lastBase = rows.findLastIndex(({ base }) => base);
  const needed = rows.slice(Math.max(0, lastBase));
  const first = findFirstToMerge(needed);
  const [large, small] = [needed.slice(0, first), needed.slice(first)];
  if (small.length < 2) return needed;
  try {
    return [...large, ...groupDeltas(codec, small).map((group) => mergeGroup(codec, group))];
  } catch (thrown) {
    if (isStatewrightError(thrown)) return needed;
    throw thrown;
  }
}

/** Rows up to this length are always merged. */
const smallRowLength = 4_096;

function findFirstToMerge(rows: readonly PrunedDelta[]): number {
  let after = smallRowLength;
  for (const [index, { text }] of [...rows.entries()].reverse()) {
    if (text.length > after) return index + 1;
    after += text.length;
  }
  return 0;
}

/** Rows that merge into a single row. */
interface Group {
  readonly base: boolean;
  last: PrunedDelta;
  readonly deltas: Delta[];
}

function groupDeltas(codec: Codec, rows: readonly PrunedDelta[]): readonly Group[] {
  const groups: Group[] = [];
  for (const row of rows) {
    const delta = parseDelta(codec, row);
    const group = groups[groups.length - 1];
    const kind = group?.deltas[0]?.kind;
    if (group !== undefined && (kind === "replace" || kind === delta.kind)) {
      group.deltas.push(delta);
      group.last = row;
    } else groups.push({ base: row.base, last: row, deltas: [delta] });
  }
  return groups;
}

function mergeGroup(codec: Codec, { base, last, deltas }: Group): PrunedDelta {
  if (deltas.length === 1) return last;
  const [first, ...rest] = joinDeltas(deltas);
  if (first === undefined) return last;
  const delta: Delta =
    first.kind === "replace" ? { kind: "replace", value: rest.reduce(applyDelta, first.value) } : first;
  const { channel, checkpoint } = last;
  const row = toDeltaRow(codec, channel, delta);
  return { ...row, base: base || row.base, checkpoint };
}
