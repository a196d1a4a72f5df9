/** Store wrapper: forwards every function except the overridden functions. */
import type { Store } from "@statewright/core";

/** Returns `inner` with some functions overridden; works for every store, including classes with private fields. */
export function wrapStore(inner: Store, overrides: Partial<Store>): Store {
  return {
    name: inner.name,
    local: inner.local,
    longTerm: inner.longTerm,
    claim: (request) => inner.claim(request),
    commit: (commit, onCommitted) => inner.commit(commit, onCommitted),
    enqueue: (write) => inner.enqueue(write),
    dequeue: (thread, run, ended) => inner.dequeue(thread, run, ended),
    post: (write) => inner.post(write),
    branch: (write) => inner.branch(write),
    thread: (thread) => inner.thread(thread),
    threads: (filter) => inner.threads(filter),
    branches: (thread) => inner.branches(thread),
    runs: (filter) => inner.runs(filter),
    checkpoint: (thread, id) => inner.checkpoint(thread, id),
    writtenBy: (thread, checkpoint) => inner.writtenBy(thread, checkpoint),
    outline: (version) => inner.outline(version),
    head: (thread, branch) => inner.head(thread, branch),
    history: (thread, page) => inner.history(thread, page),
    state: (thread, checkpoint) => inner.state(thread, checkpoint),
    effects: (thread, branch, step) => inner.effects(thread, branch, step),
    interrupts: (thread, branch) => inner.interrupts(thread, branch),
    openInterrupts: (filter) => inner.openInterrupts(filter),
    claimable: (page) => inner.claimable(page),
    inbox: (thread, branch) => inner.inbox(thread, branch),
    timers: (filter) => inner.timers(filter),
    events: (thread, page) => inner.events(thread, page),
    artifacts: inner.artifacts,
    delete: (thread) => inner.delete(thread),
    exportThread: (thread, options) => inner.exportThread(thread, options),
    importThread: (image) => inner.importThread(image),
    prune: (write) => inner.prune(write),
    vacuum: () => inner.vacuum(),
    close: () => inner.close(),
    ...overrides,
  };
}
