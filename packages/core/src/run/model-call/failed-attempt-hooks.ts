/** Tells hooks of each request of a model call that gave no message, as soon as that is known. */
import type { LostAttempt } from "../../model/failed-attempt.ts";
import { hookRuntime } from "../session/scope.ts";
import { callHook } from "./call-hook.ts";
import type { HooksAtWork } from "./hook-runtime.ts";

/** Tell `onLostAttempt` of all middleware, last to first. */
export async function tellLost(at: HooksAtWork, attempt: LostAttempt, key: string): Promise<void> {
  const { session, scope, effect, held } = at;
  for (const hooks of at.middleware.toReversed()) {
    const { onLostAttempt } = hooks;
    if (onLostAttempt === undefined) continue;
    const runtime = hookRuntime(session, scope, effect, hooks, held);
    await callHook(hooks, "onLostAttempt", () => onLostAttempt({ attempt, key }, runtime));
  }
}

/** Tell of those that an earlier pass has made and could not tell of. */
export async function tellLostBefore(
  at: HooksAtWork,
  attempts: readonly LostAttempt[],
  keyOf: (nth: number) => string,
): Promise<void> {
  for (const [nth, attempt] of attempts.entries())
    if (attempt.kind === "unrecorded" || attempt.kind === "cancelled") await tellLost(at, attempt, keyOf(nth));
}

/** The key of the nth request of a call that was lost. */
export function lostKey(nth: number): string {
  return `lost ${nth + 1}`;
}
