/** Notifies hooks of failed requests of a model call, as soon as each failure is known. */
import type { FailedAttempt } from "../../model/message.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { callHook } from "./call-hook.ts";
import type { HookPass } from "./hook-pass.ts";

/** Calls `onFailedAttempt` of all middleware, last to first. */
export async function notifyFailedAttempt(pass: HookPass, attempt: FailedAttempt, key: string): Promise<void> {
  const { scope, effect, reservations } = pass;
  for (const hooks of pass.middleware.toReversed()) {
    const { onFailedAttempt } = hooks;
    if (onFailedAttempt === undefined) continue;
    const runtime = createHookRuntime(pass, scope, effect, { middleware: hooks, reservations });
    await callHook(hooks, "onFailedAttempt", () => onFailedAttempt({ attempt, key }, runtime));
  }
}

/** Notifies hooks of failed attempts of an earlier pass that could not be reported then. */
export async function notifyPreviousAttempts(
  pass: HookPass,
  attempts: readonly FailedAttempt[],
  createKey: (nth: number) => string,
): Promise<void> {
  for (const [nth, attempt] of attempts.entries())
    if (attempt.kind === "unrecorded" || attempt.kind === "cancelled")
      await notifyFailedAttempt(pass, attempt, createKey(nth));
}

/** Returns the key of the failed attempt with this index. */
export function createAttemptKey(index: number): string {
  return `failed ${index + 1}`;
}
