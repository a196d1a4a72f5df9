/** Checkpoint ids on the wire: numbers of 12 digits, because clients compare ids as text. */
import { StatewrightError } from "@statewright/core";
import type { WireObject } from "./to-wire-message.ts";

/** Returns the id of a checkpoint as clients read it. */
export function toCheckpointId(checkpoint: number): string {
  return String(checkpoint).padStart(12, "0");
}

/**
 * Checkpoint before the first input, which clients name to edit the first message of a thread: LangGraph has such a
 * checkpoint, and Statewright shows one.
 */
export const rootCheckpoint = 0;

/** Name of a branch that begins at the root checkpoint. */
export const rootBranchPrefix = "lg-root-";

/** Parses the id of a checkpoint. Throws `unknown_checkpoint` for an id that this server has not made. */
export function parseCheckpointId(thread: string, id: string): number {
  if (/^\d{12,15}$/.test(id)) return Number(id);
  throw new StatewrightError("unknown_checkpoint", {
    what: `the thread "${thread}" has no checkpoint ${JSON.stringify(id)}`,
    next: "Use a checkpoint_id of the history of the thread",
    place: { thread },
  });
}

/** Returns the reference to a checkpoint of the outermost graph. */
export function toWireCheckpoint(thread: string, checkpoint: number): WireObject {
  const id = toCheckpointId(checkpoint);
  return { thread_id: thread, checkpoint_ns: "", checkpoint_id: id, checkpoint_map: null };
}
