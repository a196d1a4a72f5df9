/** What tests need of runs that fail or speak. */
import { expect } from "vitest";
import { type ErrorCode, isStatewrightError, type RunEvent, type StatewrightError } from "../../src/index.ts";

/** The error of Statewright that `work` ends with; anything else fails the test. */
export async function failureOf(work: Promise<unknown> | (() => unknown), code?: ErrorCode): Promise<StatewrightError> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    if (!isStatewrightError(error)) throw error;
    if (code !== undefined) expect(error.code, error.message).toBe(code);
    return error;
  }
  throw new Error(`nothing failed${code === undefined ? "" : `, expected ${code}`}`);
}

/** Every event of a run, kept as they come. */
export function eventsOf(run: { on(listener: (event: RunEvent) => void): () => void }): RunEvent[] {
  const events: RunEvent[] = [];
  run.on((event) => events.push(event));
  return events;
}

/** The events of one type. */
export function only<Type extends RunEvent["type"]>(
  events: readonly RunEvent[],
  type: Type,
): readonly Extract<RunEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
}

/** A promise with its handles outside. */
export function deferred<Value = void>(): {
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

/** A run that dies on purpose: what becomes of its result is not what the test looks at. */
export function leftToDie(result: Promise<unknown>): void {
  result.then(nobodyLooks, nobodyLooks);
}

function nobodyLooks(): void {}
