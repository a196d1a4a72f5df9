/** Store wrapper: forwards every function except the overridden functions. */
import type { Store } from "@statewright/core";
import type { StoreReads } from "@statewright/core/store";

/** Returns `inner` with some functions overridden; works for every store, including classes with private fields. */
export function wrapStore(inner: Store, overrides: Partial<Store>): Store {
  const { now, watch, snapshot, supersteps, claimRuns, claimTimers } = inner;
  return {
    name: inner.name,
    local: inner.local,
    ownership: inner.ownership,
    ...(now === undefined ? {} : { now: () => now.call(inner) }),
    longTerm: inner.longTerm,
    createThread: (write) => inner.createThread(write),
    updateThread: (thread, patch) => inner.updateThread(thread, patch),
    claim: (request) => inner.claim(request),
    ...(claimRuns === undefined ? {} : { claimRuns: (request) => claimRuns.call(inner, request) }),
    ...(claimTimers === undefined ? {} : { claimTimers: (request) => claimTimers.call(inner, request) }),
    commit: (commit, onCommitted) => inner.commit(commit, onCommitted),
    enqueue: (write) => inner.enqueue(write),
    enqueueDue: (page) => inner.enqueueDue(page),
    schedules: inner.schedules,
    dequeue: (thread, run, ended) => inner.dequeue(thread, run, ended),
    post: (write) => inner.post(write),
    request: (write) => inner.request(write),
    requests: (thread) => inner.requests(thread),
    countInputs: (threads) => inner.countInputs(threads),
    ...(watch === undefined ? {} : { watch: (listener, options) => watch.call(inner, listener, options) }),
    branch: (write) => inner.branch(write),
    thread: (thread) => inner.thread(thread),
    threads: (filter) => inner.threads(filter),
    countThreads: (filter) => inner.countThreads(filter),
    branches: (thread) => inner.branches(thread),
    runs: (filter) => inner.runs(filter),
    run: (id, of) => inner.run(id, of),
    countRuns: (filter) => inner.countRuns(filter),
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
    inboxMessage: (thread, branch, id) => inner.inboxMessage(thread, branch, id),
    timers: (filter) => inner.timers(filter),
    events: (thread, page) => inner.events(thread, page),
    namespaces: (thread, kind) => inner.namespaces(thread, kind),
    ...(snapshot === undefined
      ? {}
      : {
          snapshot: <Value>(read: (reads: StoreReads) => Promise<Value>) =>
            snapshot.call(inner, read) as Promise<Value>,
        }),
    ...(supersteps === undefined ? {} : { supersteps: (thread, page) => supersteps.call(inner, thread, page) }),
    outbox: inner.outbox,
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
