/**
 * Locks of one tool call.
 *
 * Locks are acquired right before the tool runs, so that no lock is held while an interrupt waits for a person. Locks
 * stay held during the waits between attempts: other calls see one critical section. Locks are released after the
 * last attempt, including an abandoned attempt: by then the aborted tool has settled or its grace period is over.
 */
import { describeThrown } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { acquireLocks } from "./locks.ts";

/** Locks of an active tool call. */
export interface CallLocks {
  /**
   * Acquires the locks for these arguments and releases locks held for other arguments. Returns false when the signal
   * aborted first. Throws a tool error when the tool's `lock` function fails.
   */
  readonly acquire: (args: unknown, signal: AbortSignal) => Promise<boolean>;
  /** Marks the start of attempts; the returned function marks their end. */
  readonly startAttempts: () => () => void;
  /** Releases the locks after the last active attempt; no further attempts start. */
  readonly release: () => void;
}

/** Creates the locks of a tool call; undefined for a tool without `lock`. */
export function createCallLocks({ name, execution }: ToolSpec, world: World): CallLocks | undefined {
  const { lock } = execution;
  if (lock === undefined) return undefined;
  let releaseLocks: (() => void) | undefined;
  let lockedFor: { readonly args: unknown } | undefined;
  let activeCount = 0;
  let isReleased = false;
  const releaseAll = (): void => {
    releaseLocks?.();
    releaseLocks = undefined;
    lockedFor = undefined;
  };
  return {
    startAttempts: () => {
      activeCount += 1;
      return () => {
        activeCount -= 1;
        if (isReleased && activeCount === 0) releaseAll();
      };
    },
    release: () => {
      isReleased = true;
      if (activeCount === 0) releaseAll();
    },
    acquire: async (args, signal) => {
      if (lockedFor?.args === args) return true;
      const names = await resolveLockNames(name, lock, args);
      // Lock names are acquired in sorted order: release held locks before the wait for others, to avoid deadlocks.
      releaseAll();
      releaseLocks = await acquireLocks(world, names, signal);
      if (releaseLocks === undefined) return false;
      lockedFor = { args };
      return true;
    },
  };
}

async function resolveLockNames(
  tool: string,
  lock: NonNullable<ToolSpec["execution"]["lock"]>,
  args: unknown,
): Promise<readonly string[]> {
  const createLockError = (reason: string, cause?: unknown): ToolError =>
    ToolError.failed(`The tool "${tool}" was not run: ${reason}.`, { cause });
  let names: unknown;
  try {
    names = await lock(args as never);
  } catch (cause) {
    throw createLockError(`its lock function failed: ${describeThrown(cause)}`, cause);
  }
  if (Array.isArray(names) && names.every((name) => typeof name === "string")) return names;
  throw createLockError(`its lock function must return a list of names, got ${describeValue(names)}`);
}
