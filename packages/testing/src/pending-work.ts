/**
 * Pending platform work while a virtual clock stands still: file reads, connections, child processes, timers. A
 * virtual clock must not skip ahead of such work: a tool that reads a file would time out.
 */
import { type AsyncHook, createHook } from "node:async_hooks";

/** Resource types of platform requests and real timers. Resources without an end, such as a server, are excluded. */
const resourceTypes = /^(?:FSREQ\w*|\w*REQWRAP|\w*CONNECTWRAP|PROCESSWRAP|Timeout)$/;

const pendingResources = new Map<number, object>();
let hook: AsyncHook | undefined;

/** Installs the async hook, once, for the rest of the test process. The hook tracks no promises. */
export function trackPendingWork(): void {
  if (hook !== undefined) return;
  const removeResource = (id: number): void => {
    pendingResources.delete(id);
  };
  const callbacks = {
    init: (id: number, kind: string, _trigger: number, resource: object) => {
      if (resourceTypes.test(kind)) pendingResources.set(id, resource);
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
