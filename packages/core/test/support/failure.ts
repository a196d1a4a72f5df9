/** Helpers for errors and events of runs. */
import { expect } from "vitest";
import { type ErrorCode, isStatewrightError, type RunEvent, type StatewrightError } from "../../src/index.ts";

/** Returns the StatewrightError that `work` throws or rejects with; any other end fails the test. */
export async function getFailure(
  work: Promise<unknown> | (() => unknown),
  code?: ErrorCode,
): Promise<StatewrightError> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    if (code !== undefined) expect(error.code, error.message).toBe(code);
    return error;
  }
  throw new Error(`nothing failed${code === undefined ? "" : `, expected ${code}`}`);
}

/** Collects the events of a run in order. */
export function collectEvents(run: { on(listener: (event: RunEvent) => void): () => void }): RunEvent[] {
  const events: RunEvent[] = [];
  run.on((event) => events.push(event));
  return events;
}

/** Filters events by type. */
export function getOnlyEvent<Type extends RunEvent["type"]>(
  events: readonly RunEvent[],
  type: Type,
): readonly Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
}

/** Creates a promise with its resolve and reject functions. */
export function createDeferred<Value = void>(): {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
} {
  let resolve: (value: Value) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<Value>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}

/** Ignores the result of a run whose process is killed on purpose. */
export function ignoreResult(result: Promise<unknown>): void {
  result.then(doNothing, doNothing);
}

function doNothing(): void {}
