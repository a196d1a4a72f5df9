/** Runs at work in this process, by their engines: whoever awaits one of them needs no read until it rests. */
import type { Engine, RunHandle } from "@statewright/core";

const runsOfEngines: WeakMap<Engine, Map<string, Promise<void>>> = new WeakMap();

/** Keeps the end of a run until the run rests here. The failure of a run is in its row. */
export function keepOwnRun(engine: Engine, run: string, { result }: Pick<RunHandle<unknown>, "result">): void {
  const runs = runsOfEngines.get(engine) ?? new Map<string, Promise<void>>();
  runsOfEngines.set(engine, runs);
  const forget = (): void => {
    if (runs.get(run) === rested) runs.delete(run);
  };
  const rested = result.then(forget, forget);
  runs.set(run, rested);
}

/** Returns a promise that resolves when the run rests here; undefined for a run that is not at work here. */
export function findOwnRun(engine: Engine, run: string): Promise<void> | undefined {
  return runsOfEngines.get(engine)?.get(run);
}
