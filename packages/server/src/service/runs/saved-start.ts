/** Waits until the start or the continuation of a run is saved. */
import type { RunEvent, RunHandle } from "@statewright/core";

/** Saved start or continuation of a run. */
export interface SavedStart {
  /** Id of the run. */
  readonly run: string;
  /** Number of the durable event that reports the start; undefined when no event was seen here. */
  readonly seq: number | undefined;
}

const startTypes: ReadonlySet<RunEvent["type"]> = new Set(["run.started", "step.committed"]);

/**
 * Resolves when the start of the run is saved: with its first durable event, which follows the commit, or when
 * `isSaved` finds the row of the run. Rejects with the error of a run that could not start. A failure after the start
 * is in the row of the run, and not reported here.
 */
export async function awaitSavedStart(
  handle: RunHandle<unknown>,
  isSaved: (run: string) => Promise<boolean>,
): Promise<SavedStart> {
  let seq: number | undefined;
  let resolve: () => void;
  const started = new Promise<void>((done) => {
    resolve = done;
  });
  const unsubscribe = handle.on((event) => {
    if (seq !== undefined || !startTypes.has(event.type)) return;
    seq = event.seq;
    resolve();
  });
  try {
    const run = await handle.run;
    if (seq === undefined && !(await isSaved(run))) await Promise.race([started, handle.result]);
    return { run, seq };
  } finally {
    unsubscribe();
  }
}
