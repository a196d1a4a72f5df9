/** Active runs of an engine: each run is tracked until it ends or suspends. */
import { isStatewrightError, toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import { engineStopReason } from "../checkpoint/claimable.ts";
import { suspendRun } from "../run/launch.ts";
import type { RunHandle, RunResult } from "../run/session/options/options.ts";
import { type HaltedRuns, isHalt } from "./halted-runs.ts";

export interface ActiveRuns {
  isEmpty(): boolean;
  /** Tracks a run until it ends or suspends. The run reports its failure itself. */
  track(handle: RunHandle<unknown>): Promise<void>;
  /** Lets every active run finish its superstep. */
  drain(): void;
  /** Aborts the signals of all active runs. */
  abort(): void;
  /** Resolves when no run is active. */
  waitUntilEmpty(): Promise<void>;
}

export function createActiveRuns({
  halted,
  world,
  onRun,
  isStopping,
  onEnd,
}: {
  /** Registry of the runs that their store paused. */
  readonly halted: HaltedRuns;
  readonly world: World;
  readonly onRun: ((run: RunHandle<unknown>) => void) | undefined;
  /** A run tracked while the engine stops is drained immediately. */
  readonly isStopping: () => boolean;
  /** Called when a run ends or suspends; without a result when it rejects. */
  readonly onEnd: (result?: RunResult<unknown>) => void;
}): ActiveRuns {
  const endings = new Map<RunHandle<unknown>, Promise<void>>();

  function recordEnd(result: RunResult<unknown>): RunResult<unknown> {
    const { status, run, thread } = result;
    if (status === "paused" && isHalt(result.cause)) halted.add(thread, run);
    else if (status !== "queued") halted.remove(thread);
    return result;
  }

  /** Calls `onRun`; errors of the callback do not affect the run. */
  function notifyOnRun(handle: RunHandle<unknown>): void {
    const logFailure = (error: unknown): void =>
      world.log("error", "engine: onRun threw", { thread: handle.thread, error: toErrorRecord(error) });
    try {
      const returned: unknown = onRun?.(handle);
      if (returned instanceof Promise) returned.catch(logFailure);
    } catch (error) {
      logFailure(error);
    }
  }

  return {
    isEmpty: () => endings.size === 0,
    track: (handle) => {
      const known = endings.get(handle);
      if (known !== undefined) return known;
      const ended = handle.result
        .then(recordEnd, async (error: unknown) => {
          if (isHalt(error)) halted.delay(handle.thread);
          if (isStatewrightError(error, "thread_busy")) return undefined;
          const run = await handle.run.catch(() => handle.id);
          world.log("warn", "a run failed", { thread: handle.thread, run, error: toErrorRecord(error) });
          return undefined;
        })
        .then((result) => {
          endings.delete(handle);
          onEnd(result);
        });
      endings.set(handle, ended);
      if (isStopping()) handle.drain(engineStopReason);
      notifyOnRun(handle);
      return ended;
    },
    drain: () => {
      for (const handle of endings.keys()) handle.drain(engineStopReason);
    },
    abort: () => {
      for (const handle of endings.keys()) suspendRun(handle, engineStopReason);
    },
    waitUntilEmpty: async () => {
      while (endings.size > 0) await Promise.all(endings.values());
    },
  };
}
