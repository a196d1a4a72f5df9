/** Active runs of graphs, by thread id. */
import type { RunHandle, RunResult, World } from "@statewright/core";
import { type CallRequest, forwardProgress, isDisconnected } from "./call-request.ts";
import { getGraphProgressText } from "./progress.ts";

/** Runs that a tool call of this process follows. */
export class ActiveRuns {
  readonly #world: World;
  /** Maximum milliseconds of a tool call, before its run drains. */
  readonly #callMs: number;
  readonly #handles = new Map<string, RunHandle<object>>();

  constructor(world: World, callMs: number) {
    this.#world = world;
    this.#callMs = callMs;
  }

  get(threadId: string): RunHandle<object> | undefined {
    return this.#handles.get(threadId);
  }

  /** Waits for the result of an active run, which another tool call follows. */
  async join(handle: RunHandle<object>, request: CallRequest): Promise<RunResult<object>> {
    const stopProgress = forwardProgress(handle, request, getGraphProgressText);
    return handle.result.finally(stopProgress);
  }

  /**
   * Follows a run until its result, an interrupt or a drain. A cancel ends the run; a disconnect or a timeout of the
   * call drains it.
   */
  async follow(threadId: string, handle: RunHandle<object>, request: CallRequest): Promise<RunResult<object>> {
    const { signal } = request;
    this.#handles.set(threadId, handle);
    const stopProgress = forwardProgress(handle, request, getGraphProgressText);
    const drainRun = (reason: string): void => {
      handle.drain(reason);
      this.#world.log("info", `run drains at its next superstep: ${reason}`, { thread: threadId });
    };
    const stop = (): void => {
      if (isDisconnected(signal)) drainRun("its client disconnected");
      else handle.cancel("the client cancelled the call");
    };
    const stopTimer = this.#world.schedule.after(this.#callMs, () => drainRun("its call timed out"));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    try {
      return await handle.result;
    } finally {
      stopTimer();
      stopProgress();
      signal.removeEventListener("abort", stop);
      if (this.#handles.get(threadId) === handle) this.#handles.delete(threadId);
    }
  }

  /** Drains every run at the end of its superstep. Resolves when all runs are saved. */
  async close(): Promise<void> {
    const running = [...this.#handles.values()];
    for (const handle of running) handle.drain("the server is stopping");
    await Promise.allSettled(running.map(({ result }) => result));
  }
}
