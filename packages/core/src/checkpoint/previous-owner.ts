/** Previous owner of a claimed thread, and claims of threads with a live owner. */

/** Handling of a thread with a live owner by a claim. */
export type ClaimMode = "free" | "force";

/**
 * Previous owner of a claimed thread: `new` for a thread that this claim creates, `released` for a thread without an
 * owner, `dead` for an owner that died without releasing the thread. `displaced` while an owner that lost the thread
 * to a forced claim, by this claim or an earlier one, is still alive: its effects may still be running.
 */
export type PreviousOwner = "new" | "released" | "dead" | "displaced";

/** Returns true if the previous owner of a thread has died or was displaced, without releasing the thread. */
export function isOwnerLost(previousOwner: PreviousOwner): boolean {
  return previousOwner === "dead" || previousOwner === "displaced";
}
