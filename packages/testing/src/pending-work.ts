/**
 * Pending platform work while a virtual clock stands still: file reads, connections, child processes, timers. A
 * virtual clock must not skip ahead of such work: a tool that reads a file would time out.
 */
import { type AsyncHook, createHook } from "node:async_hooks";

/** Resource types of platform requests, jobs of `crypto`, and real timers. Resources without an end, such as a server, are excluded. */
const resourceTypes =
  /^(?:FSREQ\w*|HASHREQUEST|CIPHERREQUEST|SIGNREQUEST|\w*REQWRAP|\w*CONNECTWRAP|PROCESSWRAP|Timeout)$/;

const pendingResources = new Map<number, object>();

/** Pending timers by id: the number of timers in a row, each set by the timer before. */
const chainLengths = new Map<number, number>();

/** Longest row of timers that counts as work; a longer one is a poll without an end, such as that of a watched file. */
const longestChain = 10;
let hook: AsyncHook | undefined;

/** Installs the async hook, once, for the rest of the test process. The hook tracks no promises. */
export function trackPendingWork(): void {
  if (hook !== undefined) return;
  const removeResource = (id: number): void => {
    pendingResources.delete(id);
    chainLengths.delete(id);
  };
  const callbacks = {
    init: (id: number, kind: string, trigger: number, resource: object) => {
      if (!resourceTypes.test(kind)) return;
      const length = kind === "Timeout" ? (chainLengths.get(trigger) ?? 0) + 1 : 0;
      if (length > 0) chainLengths.set(id, length);
      if (length <= longestChain) pendingResources.set(id, resource);
    },
    after: removeResource,
    destroy: removeResource,
    trackPromises: false,
  };
  hook = createHook(callbacks).enable();
}

/** Minimum length in milliseconds of ignored timers: vitest sets such a timer repeatedly while tests run. */
const longTimerMs = 100;

/** Returns true while work is pending that ends by itself. Unreferenced timers and long timers do not count. */
export function hasPendingWork(): boolean {
  for (const resource of pendingResources.values()) if (isReferenced(resource) && !isLongTimer(resource)) return true;
  return false;
}

function isLongTimer(resource: object): boolean {
  const timeout: unknown = Reflect.get(resource, "_idleTimeout");
  return typeof timeout === "number" && timeout >= longTimerMs;
}

function isReferenced(resource: object): boolean {
  return !("hasRef" in resource) || typeof resource.hasRef !== "function" || resource.hasRef() === true;
}
