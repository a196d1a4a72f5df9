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

/**
 * Tell whether something is under way that will end by itself within so many milliseconds. Timers that let the process end
 * do not count, nor do those that are set for longer.
 */
export function realWorkUnderWay(withinMs: number): boolean {
  for (const resource of underWay.values()) if (holdsProcess(resource) && !outlasts(resource, withinMs)) return true;
  return false;
}

function outlasts(resource: object, withinMs: number): boolean {
  const timeout: unknown = Reflect.get(resource, "_idleTimeout");
  return typeof timeout === "number" && timeout > withinMs;
}

function holdsProcess(resource: object): boolean {
  return !("hasRef" in resource) || typeof resource.hasRef !== "function" || resource.hasRef() === true;
}
