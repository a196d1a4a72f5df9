/** A store in front of another: everything is handed on except what is replaced. */
import type { Store } from "@statewright/core";

/** `inner` with some of its functions replaced; works for stores of any make, also those with private fields. */
export function storeAround(inner: Store, replaced: Partial<Store>): Store {
  return {
    name: inner.name,
    local: inner.local,
    longTerm: inner.longTerm,
    claim: (request) => inner.claim(request),
    commit: (commit, told) => inner.commit(commit, told),
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
    head: (thread, branch) => inner.head(thread, branch),
    history: (thread, page) => inner.history(thread, page),
    state: (thread, checkpoint) => inner.state(thread, checkpoint),
    effects: (thread, branch, step) => inner.effects(thread, branch, step),
    interrupts: (thread, branch) => inner.interrupts(thread, branch),
    questions: (filter) => inner.questions(filter),
    claimable: (page) => inner.claimable(page),
    inbox: (thread, branch) => inner.inbox(thread, branch),
    timers: (filter) => inner.timers(filter),
    events: (thread, page) => inner.events(thread, page),
    artifacts: inner.artifacts,
    delete: (thread) => inner.delete(thread),
    image: (thread) => inner.image(thread),
    insert: (image) => inner.insert(image),
    prune: (write) => inner.prune(write),
    vacuum: () => inner.vacuum(),
    close: () => inner.close(),
    ...replaced,
  };
}
