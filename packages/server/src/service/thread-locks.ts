/** Locks of threads in this process: acts that must not overlap run one after the other. */

/** Runs work on a thread after all earlier work on it. */
export type ThreadLocks = <Value>(thread: string, work: () => Promise<Value>) => Promise<Value>;

/** Creates locks. A thread without work leaves nothing behind. */
export function createThreadLocks(): ThreadLocks {
  const last = new Map<string, Promise<unknown>>();
  return async (thread, work) => {
    const before = last.get(thread);
    const own = before === undefined ? work() : before.then(work, work);
    last.set(thread, own);
    try {
      return await own;
    } finally {
      if (last.get(thread) === own) last.delete(thread);
    }
  };
}
