/** Shared state of the tool calls of a message while the tool node runs: call limit and locks. */
import { describeThrown } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { subscribeToAbort } from "../session/abort.ts";
import { acquireLocks } from "./locks.ts";

/** Batch of the pending tool calls of a message. */
export interface ToolCallBatch {
  readonly calls: readonly PendingCall[];
  /** Limit on executed calls; undefined when all calls may run. */
  readonly limit: CallLimit | undefined;
  /** Commands of concluded and replayed calls, as return values of the node: applied together with later commands. */
  readonly commands: (readonly unknown[])[];
  /** Notifies the batch that the answer of a call is durable and its end was emitted. */
  readonly notifyFinished: () => void;
  /** Waits until `count` calls have finished, or the signal aborts. */
  readonly waitForFinished: (count: number, signal: AbortSignal) => Promise<void>;
}

/** Creates the batch of these calls of a tool node. */
export function createToolCallBatch(
  { maxCalls }: ToolNode<never, never>,
  calls: readonly PendingCall[],
): ToolCallBatch {
  let finishedCount = 0;
  let waiter: { readonly count: number; readonly wake: () => void } | undefined;
  return {
    calls,
    commands: [],
    limit: calls.length > maxCalls ? createCallLimit(maxCalls) : undefined,
    notifyFinished: () => {
      finishedCount += 1;
      if (waiter !== undefined && finishedCount >= waiter.count) waiter.wake();
    },
    waitForFinished: async (count, signal) => {
      if (finishedCount >= count || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const unsubscribe = subscribeToAbort(signal, resolve);
        waiter = {
          count,
          wake: () => {
            unsubscribe();
            resolve();
          },
        };
      });
      waiter = undefined;
    },
  };
}

/**
 * Call slots of a message. Calls are admitted one after another, in call order, and a refused call releases its slot
 * before the next call is checked. The set of executed calls therefore does not depend on timing.
 */
interface CallLimit {
  readonly max: number;
  /** Runs the decision about a call after the decisions about all earlier calls. */
  readonly runInOrder: <Value>(work: () => Promise<Value>) => Promise<Value>;
  /** Acquires a slot. Returns false when no slot is free, unless the call had a slot before a crash. */
  readonly acquire: (hadSlot: boolean) => boolean;
  readonly release: () => void;
}

/** Creates a limit with a fixed number of slots. */
function createCallLimit(max: number): CallLimit {
  let used = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    max,
    runInOrder: (work) => {
      const current = last.then(work, work);
      last = current;
      return current;
    },
    acquire: (hadSlot) => {
      if (!hadSlot && used >= max) return false;
      used += 1;
      return true;
    },
    release: () => {
      used -= 1;
    },
  };
}

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
