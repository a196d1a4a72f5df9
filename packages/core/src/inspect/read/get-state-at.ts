/** `getStateAt`: the state of a thread at a checkpoint, read without the graph. */

import { deepFreeze } from "../../base/json.ts";
import { findPart, parseJsonPointer } from "../../base/json-pointer.ts";
import { checkCount } from "../../base/options.ts";
import type { Store } from "../../checkpoint/store.ts";
import { type CutPart, cutValue } from "./cut-value.ts";
import { type CheckpointPlace, findCheckpoint, loadState } from "./find-checkpoint.ts";
import { type ReadOptions, readThread } from "./thread-reader.ts";

/** Options of `getStateAt`. */
export interface GetStateAtOptions extends ReadOptions, CheckpointPlace {
  /** JSON Pointer of the part to return. Default `""`: the whole state. */
  readonly path?: string;
  /** Maximum levels of objects and lists below `path`; deeper parts are cut. Default: no limit. */
  readonly depth?: number;
  /** Maximum size of the result in bytes of JSON; parts above are cut. Default: no limit. */
  readonly maxBytes?: number;
}

/** State, or a part of it. */
export interface StateAt {
  readonly checkpoint: number;
  /** Undefined for a path that the state does not have; `null` in place of a cut part. */
  readonly value: unknown;
  /** Parts left out by `depth` or `maxBytes`, in order. */
  readonly cut: readonly CutPart[];
}

const optionNames = ["at", "branch", "path", "depth", "maxBytes"];

/**
 * Returns the state of a thread at a checkpoint. A channel that no superstep has written is absent: only the graph
 * knows its initial value.
 *
 * @throws `unknown_thread`, `unknown_checkpoint`, `invalid_option`, and errors of the store.
 * @example
 * const { value } = await getStateAt(store, { thread: "support-7", path: "/messages/0" });
 */
export async function getStateAt(store: Store, options: GetStateAtOptions): Promise<StateAt> {
  const { path = "", depth, maxBytes } = options ?? {};
  const parts = parseJsonPointer("getStateAt", path);
  checkCount("getStateAt", { depth }, 0);
  checkCount("getStateAt", { maxBytes });
  return await readThread({ call: "getStateAt", store, options, optionNames }, async (reader) => {
    const row = await findCheckpoint("getStateAt", reader, options);
    const { value } = findPart(await loadState(reader, row.id), parts);
    return { checkpoint: row.id, ...deepFreeze(cutValue(value, { path: parts, depth, maxBytes })) };
  });
}
