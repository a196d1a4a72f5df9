/**
 * What the platform does for real while a virtual clock stands still: files being read, connections, children, timers.
 * Time must not skip ahead of such work: a tool that reads a file would be timed out by a clock that thought it idle.
 */
import { type AsyncHook, createHook } from "node:async_hooks";

/** Requests of the platform and real timers. What is open without an end, such as a server, is not waited for. */
const kinds = /^(?:FSREQ\w*|\w*REQWRAP|\w*CONNECTWRAP|PROCESSWRAP|Timeout)$/;

const underWay = new Map<number, object>();
let hook: AsyncHook | undefined;

/** Begin to watch. The hook looks at no promises and stays for the life of the test process. */
export function watchRealWork(): void {
  if (hook !== undefined) return;
  const ended = (id: number): void => {
    underWay.delete(id);
  };
  const callbacks = {
    init: (id: number, kind: string, _trigger: number, resource: object) => {
      if (kinds.test(kind)) underWay.set(id, resource);
    },
    after: ended,
    destroy: ended,
    trackPromises: false,
  };
  hook = createHook(callbacks).enable();
}

/** From so many milliseconds on a timer does not count: vitest sets one of this length again and again while tests run. */
const longTimerMs = 100;

/** Tell whether something is under way that will end by itself. Timers that let the process end do not count, nor long ones. */
export function realWorkUnderWay(): boolean {
  for (const resource of underWay.values()) if (holdsProcess(resource) && !isLongTimer(resource)) return true;
  return false;
}

function isLongTimer(resource: object): boolean {
  const timeout: unknown = Reflect.get(resource, "_idleTimeout");
  return typeof timeout === "number" && timeout >= longTimerMs;
}

function holdsProcess(resource: object): boolean {
  return !("hasRef" in resource) || typeof resource.hasRef !== "function" || resource.hasRef() === true;
}
