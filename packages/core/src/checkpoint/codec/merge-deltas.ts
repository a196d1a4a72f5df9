/** Changes of one channel, one after the other, as fewer that lead to the same value: what retention leaves of them. */
import { isStatewrightError } from "../../base/errors.ts";
import type { Codec } from "../../state/codec.ts";
import { applyDelta, type Delta } from "../../state/delta.ts";
import type { CutDelta } from "../export/thread-export.ts";
import { deltaOf, joined, textOf } from "./saved-state.ts";

/**
 * The rows from the last base on; where neighbours can be one change, it stands at the last of them. A large row is left as
 * it is until what follows has grown as large, so that the work stays in proportion to what goes. Rows that the codec
 * cannot read stay as they are too: nothing that was saved is lost for want of a class.
 */
export function mergedDeltas(codec: Codec, rows: readonly CutDelta[]): readonly CutDelta[] {
  const lastBase = rows.findLastIndex(({ base }) => base);
  const needed = rows.slice(Math.max(0, lastBase));
  const first = firstToMerge(needed);
  const [large, small] = [needed.slice(0, first), needed.slice(first)];
  if (small.length < 2) return needed;
  try {
    return [...large, ...groupsOf(codec, small).map((group) => mergedRow(codec, group))];
  } catch (thrown) {
    if (isStatewrightError(thrown)) return needed;
    throw thrown;
  }
}

/** Rows of this size are merged whatever comes after them. */
const alwaysSmall = 4_096;

function firstToMerge(rows: readonly CutDelta[]): number {
  let after = alwaysSmall;
  for (const [index, { text }] of [...rows.entries()].reverse()) {
    if (text.length > after) return index + 1;
    after += text.length;
  }
  return 0;
}

/** Rows that one can stand for. */
interface Group {
  readonly base: boolean;
  last: CutDelta;
  readonly deltas: Delta[];
}

function groupsOf(codec: Codec, rows: readonly CutDelta[]): readonly Group[] {
  const groups: Group[] = [];
  for (const row of rows) {
    const delta = deltaOf(codec, row);
    const group = groups[groups.length - 1];
    const kind = group?.deltas[0]?.kind;
    if (group !== undefined && (kind === "replace" || kind === delta.kind)) {
      group.deltas.push(delta);
      group.last = row;
    } else groups.push({ base: row.base, last: row, deltas: [delta] });
  }
  return groups;
}

function mergedRow(codec: Codec, { base, last, deltas }: Group): CutDelta {
  if (deltas.length === 1) return last;
  const [first, ...rest] = joined(deltas);
  if (first === undefined) return last;
  const delta: Delta =
    first.kind === "replace" ? { kind: "replace", value: rest.reduce(applyDelta, first.value) } : first;
  return { ...last, kind: delta.kind, base, text: textOf(codec, last.channel, delta) };
}
