/** Idempotency keys of a thread: of the runs that they started, and of the answers that they gave. */
import { StatewrightError } from "@statewright/core";
import type { InterruptRow } from "@statewright/core/store";
import type { CallerScope, OwnThread } from "../caller-scope.ts";

/** Lists the interrupts of a thread that were answered under a key. */
export async function findAnswered(
  { store }: CallerScope,
  stored: string,
  key: string,
): Promise<readonly InterruptRow[]> {
  const branches = await store.branches(stored);
  const rows = await Promise.all(branches.map(({ name }) => store.interrupts(stored, name)));
  return rows.flat().filter(({ answerKey }) => answerKey === key);
}

/** Throws `key_reused` for the key of a start. */
export async function checkKeyStartedNoRun(
  { store }: CallerScope,
  { stored, wire }: OwnThread,
  key: string,
): Promise<void> {
  const [started] = await store.runs({ thread: stored, key, limit: 1 });
  if (started !== undefined) throw createReusedKeyError(wire, key);
}

/** Creates the error for another request under a known key. */
export function createReusedKeyError(thread: string, key: string): StatewrightError {
  return new StatewrightError("key_reused", {
    what: `the key "${key}" belongs to another request of the thread "${thread}"`,
    next: "Use another key for other work, or repeat the request unchanged",
    place: { thread },
  });
}
