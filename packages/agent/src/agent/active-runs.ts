/** Registry of the active runs of an agent in this process, with listeners for the events of all runs. */
import type { RunEvent, RunHandle } from "@statewright/core";

/** Id and thread of the run of an event. */
export type EventSource = Pick<RunHandle<unknown>, "id" | "thread">;

/** Listener for the events of all runs of an agent. */
export type AgentListener = (event: RunEvent, run: EventSource) => void;

/** Active runs of an agent. */
export interface ActiveRuns {
  /** Adds a started run; removes the run when the result resolves or rejects. */
  readonly add: (run: RunHandle<unknown>) => void;
  /** Lists the active runs of a thread, or all active runs. */
  readonly list: (thread: string | undefined) => readonly RunHandle<unknown>[];
  /** Subscribes a listener to active and future runs; returns the function that unsubscribes. */
  readonly subscribe: (listener: AgentListener) => () => void;
}

/** Creates an empty registry. */
export function createActiveRuns(): ActiveRuns {
  type Run = RunHandle<unknown>;
  const runs = new Set<Run>();
  /** Unsubscribe functions per listener and run. */
  const listeners = new Map<{ readonly notify: AgentListener }, Map<Run, () => void>>();
  return {
    add: (run) => {
      runs.add(run);
      for (const [{ notify }, unsubscribers] of listeners)
        unsubscribers.set(
          run,
          run.on((event) => notify(event, run)),
        );
      const remove = (): void => {
        runs.delete(run);
        for (const unsubscribers of listeners.values()) unsubscribers.delete(run);
      };
      run.result.then(remove, remove);
    },
    list: (thread) => [...runs].filter((run) => thread === undefined || run.thread === thread),
    subscribe: (notify) => {
      const listener = { notify };
      listeners.set(listener, new Map([...runs].map((run) => [run, run.on((event) => notify(event, run))])));
      return () => {
        for (const unsubscribe of listeners.get(listener)?.values() ?? []) unsubscribe();
        listeners.delete(listener);
      };
    },
  };
}
