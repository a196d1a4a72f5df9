/** The runs of one agent that this process has at work, and who listens to all of them. */
import type { RunEvent, RunHandle } from "@statewright/core";

/** Which run an event is of. */
export type EventSource = Pick<RunHandle<unknown>, "id" | "thread">;

/** Called with each event of each run of an agent. */
export type AgentListener = (event: RunEvent, run: EventSource) => void;

/** The runs of one agent. */
export interface RunsAtWork {
  /** A run has begun; it is forgotten when it is over. */
  readonly begun: (run: RunHandle<unknown>) => void;
  /** Those of a thread, or all. */
  readonly on: (thread: string | undefined) => readonly RunHandle<unknown>[];
  /** Listen to the runs at work and to those to come, until the returned function is called. */
  readonly subscribe: (listener: AgentListener) => () => void;
}

/** No runs yet. */
export function runsAtWork(): RunsAtWork {
  type Run = RunHandle<unknown>;
  const runs = new Set<Run>();
  /** For each listener, how it is taken off each run. */
  const listeners = new Map<{ readonly tell: AgentListener }, Map<Run, () => void>>();
  return {
    begun: (run) => {
      runs.add(run);
      for (const [{ tell }, offs] of listeners)
        offs.set(
          run,
          run.on((event) => tell(event, run)),
        );
      const over = (): void => {
        runs.delete(run);
        for (const offs of listeners.values()) offs.delete(run);
      };
      run.result.then(over, over);
    },
    on: (thread) => [...runs].filter((run) => thread === undefined || run.thread === thread),
    subscribe: (tell) => {
      const listener = { tell };
      listeners.set(listener, new Map([...runs].map((run) => [run, run.on((event) => tell(event, run))])));
      return () => {
        for (const off of listeners.get(listener)?.values() ?? []) off();
        listeners.delete(listener);
      };
    },
  };
}
