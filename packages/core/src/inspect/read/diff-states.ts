/** `diffStates`: the difference between two checkpoints of a thread as a JSON Patch. */
import { deepFreeze } from "../../base/json.ts";
import { checkCount } from "../../base/options.ts";
import type { Store } from "../../checkpoint/store.ts";
import { diffValues, type JsonPatchOp } from "../../state/json-patch.ts";
import { findCheckpoint, loadState } from "./find-checkpoint.ts";
import { type ReadOptions, readThread } from "./thread-reader.ts";

/** Options of `diffStates`. */
export interface DiffStatesOptions extends ReadOptions {
  /** Checkpoint id, of any branch or inner graph. */
  readonly from: number;
  /** Checkpoint id, of any branch or inner graph. */
  readonly to: number;
}

/**
 * Returns the operations that turn the state at `from` into the state at `to`. A difference inside redacted text is not
 * shown.
 *
 * @throws `unknown_thread`, `unknown_checkpoint`, `invalid_option`, and errors of the store.
 * @example
 * const patch = await diffStates(store, { thread: "support-7", from: 2, to: 9 });
 */
export async function diffStates(store: Store, options: DiffStatesOptions): Promise<readonly JsonPatchOp[]> {
  checkCount("diffStates", { from: options?.from ?? null, to: options?.to ?? null }, 0);
  return await readThread({ call: "diffStates", store, options, optionNames: ["from", "to"] }, async (reader) => {
    const [from, to] = [
      await findCheckpoint("diffStates", reader, { at: options.from }),
      await findCheckpoint("diffStates", reader, { at: options.to }),
    ];
    const [before, after] = [await loadState(reader, from.id), await loadState(reader, to.id)];
    return deepFreeze(diffValues(before, after).map(({ op }) => op));
  });
}
