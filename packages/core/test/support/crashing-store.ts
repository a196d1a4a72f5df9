/**
 * A memory store whose process dies at the n-th commit, as by SIGKILL: before the commit is durable, or after it and
 * before any report.
 */
import type { MemoryStore, Store } from "../../src/index.ts";

export interface CrashingStore {
  readonly store: Store;
  readonly dead: Promise<"dead">;
  readonly isDead: () => boolean;
}

export function createCrashingStore(owner: MemoryStore, nth: number, when: "before" | "after"): CrashingStore {
  let commits = 0;
  let isDead = false;
  let die: (how: "dead") => void = () => undefined;
  const dead = new Promise<"dead">((resolve) => {
    die = resolve;
  });
  const end = (): void => {
    isDead = true;
    owner.crash();
    die("dead");
  };
  const commit: Store["commit"] = (write, onCommitted) => {
    if (isDead) return;
    commits++;
    if (commits === nth && when === "before") end();
    else if (commits === nth) owner.commit(write, end);
    else
      owner.commit(write, (failure) => {
        if (!isDead) onCommitted(failure);
      });
  };
  return { store: { ...owner, commit }, dead, isDead: () => isDead };
}
