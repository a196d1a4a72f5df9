/**
 * A memory store whose process dies at its n-th write of any kind, as by SIGKILL: before the write, or when the write
 * is durable and not reported yet.
 */
import type { MemoryStore, Store } from "../../src/index.ts";

export interface DyingStore {
  readonly store: Store;
  /** Resolves when the process has died. */
  readonly dead: Promise<"dead">;
  /** Number of writes so far. */
  readonly count: () => number;
}

export function createDyingStore(owner: MemoryStore, nth: number, when: "before" | "after"): DyingStore {
  let writes = 0;
  let isDead = false;
  let die: (how: "dead") => void = () => undefined;
  const dead = new Promise<"dead">((resolve) => {
    die = resolve;
  });
  const never = new Promise<never>(() => undefined);
  const end = (): void => {
    isDead = true;
    owner.crash();
    die("dead");
  };
  const diesAt = (moment: "before" | "after"): boolean => writes === nth && when === moment;

  async function write<Value>(work: () => Promise<Value>): Promise<Value> {
    if (isDead) return await never;
    writes += 1;
    const isLast = diesAt("after");
    if (diesAt("before")) {
      end();
      return await never;
    }
    const value = await work();
    if (isLast) end();
    return isDead ? await never : value;
  }

  const commit: Store["commit"] = (written, onCommitted) => {
    if (isDead) return;
    writes += 1;
    if (diesAt("before")) end();
    else if (diesAt("after")) owner.commit(written, end);
    else
      owner.commit(written, (...outcome) => {
        if (!isDead) onCommitted(...outcome);
      });
  };
  const store = {
    ...owner,
    commit,
    claim: (request: Parameters<Store["claim"]>[0]) => write(() => owner.claim(request)),
    enqueue: (request: Parameters<Store["enqueue"]>[0]) => write(() => owner.enqueue(request)),
    enqueueDue: (page: Parameters<Store["enqueueDue"]>[0]) => write(() => owner.enqueueDue(page)),
    request: (request: Parameters<Store["request"]>[0]) => write(() => owner.request(request)),
    post: (message: Parameters<Store["post"]>[0]) => write(() => owner.post(message)),
  };
  return { store, dead, count: () => writes };
}
