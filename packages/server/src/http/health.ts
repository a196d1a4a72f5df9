/** Probes of a process: alive, and ready for requests. They show no details. */
import type { Store } from "@statewright/core";

/** What the probes ask. */
export interface HealthParts {
  readonly store: Store;
  readonly isDraining: () => boolean;
  /** True while the engine serves its threads. */
  readonly isServing: () => boolean;
}

/** Paths of the probes, below the base path. They need no credential. */
export const healthPaths: readonly string[] = Object.freeze(["/livez", "/readyz"]);

/** Id that no schedule has: its deletion takes the write lock of the store and changes nothing. */
const probeId = "statewright.readyz";

/** Answers a probe; undefined for another path. Ready: the engine serves, the store is writable, and nothing drains. */
export async function answerHealth(
  { store, isDraining, isServing }: HealthParts,
  path: string,
  method: string,
): Promise<Response | undefined> {
  if (!healthPaths.includes(path) || (method !== "GET" && method !== "HEAD")) return undefined;
  if (path === "/livez") return createAnswer(method, "ok");
  const isReady = !isDraining() && isServing() && (await isWritable(store));
  return createAnswer(method, isReady ? "ok" : "not ready");
}

async function isWritable(store: Store): Promise<boolean> {
  try {
    await store.schedules.delete(probeId);
    return true;
  } catch {
    // Any failure of the store: the process is not ready, and its runs report the failure.
    return false;
  }
}

function createAnswer(method: string, text: "ok" | "not ready"): Response {
  return new Response(method === "HEAD" ? null : text, {
    status: text === "ok" ? 200 : 503,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
  });
}
