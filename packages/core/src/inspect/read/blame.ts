/** `blame`: the supersteps that wrote a value, newest first, through all ancestors of the branch. */
import { isPlainObject } from "../../base/json.ts";
import { findPart, isIndex, parseJsonPointer, toJsonPointer } from "../../base/json-pointer.ts";
import { checkCount } from "../../base/options.ts";
import { isSameValue } from "../../base/same-value.ts";
import type { CheckpointRow, DeltaRow } from "../../checkpoint/checkpoint.ts";
import { applySavedDelta, applySavedDeltas } from "../../checkpoint/codec/saved-state.ts";
import type { CheckpointWithDeltas, Store } from "../../checkpoint/store.ts";
import { findAuthor } from "./find-author.ts";
import { type CheckpointPlace, findCheckpoint } from "./find-checkpoint.ts";
import { getSuperstepRow } from "./list-timeline.ts";
import { type SuperstepSummary, toSuperstepSummary } from "./superstep-summary.ts";
import { type ReadOptions, readThread, type ThreadReader } from "./thread-reader.ts";

/** Options of `blame`. */
export interface BlameOptions extends ReadOptions, CheckpointPlace {
  /** JSON Pointer of the value, such as `/messages/3/content`. The first part is the channel. */
  readonly path: string;
  /** Maximum number of writes. Default 10. */
  readonly limit?: number;
}

/** Write of a value. */
export interface BlameEntry {
  readonly superstep: SuperstepSummary;
  /** `clear` when the whole channel was cleared. */
  readonly op: "add" | "replace" | "remove" | "clear";
  /** Path of the value at that superstep: items of a list may have moved since. */
  readonly path: string;
  /** Task that wrote the value; absent when several tasks of the superstep could have. */
  readonly task?: string;
  /** Tool call that wrote the value; absent when several could have. */
  readonly call?: string;
  /** Person who answered the interrupt of that task, or sent the event, as passed by the caller. */
  readonly by?: string;
}

const optionNames = ["at", "branch", "path", "limit"];

const firstPageSize = 50;

/**
 * Lists the supersteps that wrote the value at a path, newest first. The value of an item that only moved in the list
 * was not written. Ends where a superstep that retention removed may have written the value. Reads the changes of the
 * branch backwards in growing pages until `limit` writes are found.
 *
 * @throws `unknown_thread`, `unknown_checkpoint`, `invalid_option`, and errors of the store.
 * @example
 * const [write] = await blame(store, { thread: "support-7", path: "/verdict" });
 * console.log(write?.superstep.step, write?.task, write?.by);
 */
export async function blame(store: Store, options: BlameOptions): Promise<readonly BlameEntry[]> {
  const [channel, ...path] = parseJsonPointer("blame", options?.path ?? null);
  if (channel === undefined) parseJsonPointer("blame", null);
  checkCount("blame", { limit: options.limit });
  return await readThread({ call: "blame", store, options, optionNames }, async (reader) => {
    const row = await findCheckpoint("blame", reader, options);
    const entries: BlameEntry[] = [];
    for await (const write of streamWrites(reader, row, { channel: channel ?? "", path })) {
      entries.push(await toEntry(reader, channel ?? "", write));
      if (entries.length === (options.limit ?? 10)) break;
    }
    return entries;
  });
}

/** Change of the value in a single superstep. */
interface ValueWrite {
  readonly row: CheckpointRow;
  readonly op: BlameEntry["op"];
  readonly path: readonly string[];
  /** Value of the channel after the superstep, or before a removal. */
  readonly value: unknown;
  /** Saved change of the channel. */
  readonly delta: DeltaRow | undefined;
}

interface ValuePlace {
  readonly channel: string;
  readonly path: readonly string[];
}

/** Streams the writes of a value, newest first. */
async function* streamWrites(
  reader: ThreadReader,
  { id, branch }: CheckpointRow,
  place: ValuePlace,
): AsyncGenerator<ValueWrite, undefined, undefined> {
  const { reads, thread } = reader;
  let { path } = place;
  for (let before = id + 1, limit = firstPageSize; ; limit *= 2) {
    const page = await reads.history(thread, { branch, before, limit });
    const states = await listChannelStates(reader, place.channel, page);
    for (const [index, { row, before: previous, after, isBeforeKept }] of states.entries()) {
      if (previous === unknownValue) continue;
      const step = followBack(previous, after, path);
      // A pruned superstep, or this one, wrote the value.
      if (step.op !== undefined && !isBeforeKept) return undefined;
      if (step.op !== undefined) {
        const delta = page[index]?.deltas.find(({ channel }) => channel === place.channel);
        yield {
          row,
          op: step.op === "remove" && delta?.kind === "clear" ? "clear" : step.op,
          path,
          value: step.op === "remove" ? previous : after,
          delta,
        };
      }
      if (step.path === undefined) return undefined;
      path = step.path;
    }
    const oldest = page.at(-1);
    if (oldest === undefined || page.length < limit) return undefined;
    before = oldest.id + 1;
  }
}

/** Value before the oldest checkpoint of a page. */
const unknownValue: unique symbol = Symbol("unknown");

interface ChannelState {
  readonly row: CheckpointRow;
  /** Value of the checkpoint before in the page. */
  readonly before: unknown;
  readonly after: unknown;
  /** False after a pruned range: `before` is then the value before the range. */
  readonly isBeforeKept: boolean;
}

/** Lists the values of a channel before and after the checkpoints of a page, newest first. */
async function listChannelStates(
  { reads, thread, codec }: ThreadReader,
  channel: string,
  page: readonly CheckpointWithDeltas[],
): Promise<readonly ChannelState[]> {
  const states: ChannelState[] = [];
  const [oldest, ...newer] = page.toReversed();
  if (oldest === undefined) return [];
  const loadValue = async (checkpoint: number): Promise<unknown> => {
    const saved = (await reads.state(thread, checkpoint)).find((rows) => rows.channel === channel);
    return applySavedDeltas(codec, saved?.deltas ?? []);
  };
  let value = await loadValue(oldest.id);
  let previous: CheckpointRow = oldest;
  states.push({
    row: oldest,
    before: oldest.parent === undefined ? undefined : unknownValue,
    after: value,
    isBeforeKept: true,
  });
  for (const row of newer) {
    const isBeforeKept = row.parent === previous.id;
    const delta = row.deltas.find((each) => each.channel === channel);
    const change = delta === undefined ? value : applySavedDelta(codec, value, delta);
    const after = isBeforeKept ? change : await loadValue(row.id);
    states.push({ row, before: value, after, isBeforeKept });
    [value, previous] = [after, row];
  }
  return states.reverse();
}

/** Change of a value in a single superstep, and the path of the value before. */
interface BackStep {
  readonly op: "add" | "replace" | "remove" | undefined;
  /** Undefined for an item that its list did not have before. */
  readonly path: readonly string[] | undefined;
}

function followBack(before: unknown, after: unknown, path: readonly string[]): BackStep {
  if (Object.is(before, after)) return { op: undefined, path };
  const earlier = findEarlierPath(before, after, path);
  if (earlier === undefined) return { op: "add", path: undefined };
  const [one, other] = [findPart(before, earlier), findPart(after, path)];
  if (!one.exists && !other.exists) return { op: undefined, path };
  if (!other.exists || (other.value === undefined && path.length === 0)) return { op: "remove", path };
  if (!one.exists || (one.value === undefined && path.length === 0)) return { op: "add", path };
  return { op: isSameValue(one.value, other.value) ? undefined : "replace", path: earlier };
}

/**
 * Returns the path of the same value before: items of lists are recognised by their content, or by their `id`.
 * Undefined for a new item.
 */
function findEarlierPath(before: unknown, after: unknown, path: readonly string[]): readonly string[] | undefined {
  const earlier: string[] = [];
  let [older, newer] = [before, after];
  for (const token of path) {
    let place = token;
    if (Array.isArray(newer) && Array.isArray(older) && isIndex(token) && Number(token) < newer.length) {
      const moved = findItem(older, newer[Number(token)], Number(token));
      if (moved === undefined) return undefined;
      place = String(moved);
    }
    earlier.push(place);
    older = findPart(older, [place]).value;
    newer = findPart(newer, [token]).value;
  }
  return earlier;
}

/** Returns the index of an item in an earlier list; undefined for a new item. */
function findItem(list: readonly unknown[], item: unknown, index: number): number | undefined {
  if (index < list.length && isSameValue(list[index], item)) return index;
  if (isPlainObject(item)) {
    const { id } = item;
    const found = list.findIndex((each) =>
      typeof id === "string" ? isPlainObject(each) && each["id"] === id : isSameValue(each, item),
    );
    if (found !== -1) return found;
    if (typeof id === "string") return undefined;
  }
  return index;
}

async function toEntry(
  reader: ThreadReader,
  channel: string,
  { row, op, path, value, delta }: ValueWrite,
): Promise<BlameEntry> {
  const { reads, thread, codec, redact } = reader;
  const superstep = await getSuperstepRow(reads, thread, row);
  const author = redact(await findAuthor(reader, row, { channel, value, path, delta }));
  return {
    superstep: toSuperstepSummary(codec, superstep ?? { checkpoint: row, changes: [], effects: [] }),
    op,
    path: toJsonPointer([channel, ...path]),
    ...author,
  };
}
