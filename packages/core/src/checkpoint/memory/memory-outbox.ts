/** Outbox of the memory store. */
import type { OpenInterruptRow } from "../journal.ts";
import {
  applyOutcome,
  checkOutboxClaim,
  checkOutboxFilter,
  checkOutboxSweep,
  checkOutboxWrites,
  checkOverduePage,
  checkSubscription,
  type OutboxClaim,
  type OutboxFilter,
  type OutboxOutcome,
  type OutboxRow,
  type OutboxSubscription,
  type OutboxSweep,
  type OverduePage,
  type StoreOutbox,
  type ThreadOutboxWrite,
} from "../outbox.ts";
import { listOpenInterrupts } from "./memory-interrupts.ts";
import { matches } from "./memory-runs.ts";
import type { MemoryOutbox, Owner, Threads } from "./memory-thread.ts";

/** Adds a single row for each consumer that has subscribed to the topic and has no row with this id. */
export function addOutboxRow(outbox: MemoryOutbox, write: ThreadOutboxWrite): void {
  for (const [consumer, topics] of outbox.topics) {
    const key = toRowKey(consumer, write);
    if (!topics.has(write.topic) || outbox.positions.has(key)) continue;
    outbox.lastPosition += 1;
    const position = outbox.lastPosition;
    const row = { ...write, consumer, position, state: "pending", attempts: 0, dueAt: 0 } as const;
    outbox.rows.set(position, { row, owner: undefined });
    outbox.positions.set(key, position);
  }
}

/** Deletes the rows of a thread. */
export function deleteThreadOutbox(outbox: MemoryOutbox, thread: string): void {
  for (const { row } of outbox.rows.values()) if (row.thread === thread) deleteRow(outbox, row);
}

function deleteRow({ rows, positions }: MemoryOutbox, row: OutboxRow): void {
  rows.delete(row.position);
  positions.delete(toRowKey(row.consumer, row));
}

function toRowKey(consumer: string, { thread, id }: Pick<ThreadOutboxWrite, "thread" | "id">): string {
  return JSON.stringify([consumer, thread, id]);
}

/** Creates the outbox of an owner. */
export function createOutboxAccess(
  threads: Threads,
  self: Owner,
  {
    read,
    write,
  }: {
    readonly read: <Value>(work: () => Value) => Promise<Value>;
    readonly write: <Value>(work: () => Value) => Promise<Value>;
  },
): StoreOutbox {
  const { outbox } = threads;
  return {
    subscribe: (subscription) => write(() => subscribe(outbox, subscription)),
    subscriptions: () =>
      read(() =>
        [...outbox.topics]
          .map(([consumer, topics]) => ({ consumer, topics: [...topics].sort() }))
          .sort((one, other) => (one.consumer < other.consumer ? -1 : 1)),
      ),
    add: (writes) => write(() => addRows(threads, writes)),
    claim: (request) => write(() => claimRows(outbox, self, request)),
    finish: (position, outcome) => write(() => finishRow(outbox, self, { position, outcome })),
    retry: (position, at) => write(() => retryRow(outbox, position, at)),
    list: (filter = {}) => read(() => listRows(outbox, filter)),
    sweep: (sweep) => write(() => sweepRows(threads, sweep)),
    overdue: (page) => read(() => listOverdue(threads, page)),
  };
}

function subscribe(outbox: MemoryOutbox, subscription: OutboxSubscription): void {
  checkSubscription(subscription);
  const { consumer, topics } = subscription;
  if (topics.length > 0) {
    outbox.topics.set(consumer, new Set(topics));
    return;
  }
  outbox.topics.delete(consumer);
  for (const { row } of outbox.rows.values())
    if (row.consumer === consumer && row.state === "pending") deleteRow(outbox, row);
}

function addRows(threads: Threads, writes: readonly ThreadOutboxWrite[]): void {
  checkOutboxWrites(writes);
  for (const each of writes) {
    const namespace = threads.get(each.thread)?.namespaces.get(each.branch);
    if (namespace === undefined) continue;
    if (each.interrupt === undefined || namespace.awaited.has(each.interrupt)) addOutboxRow(threads.outbox, each);
  }
}

function claimRows({ rows }: MemoryOutbox, self: Owner, request: OutboxClaim): readonly OutboxRow[] {
  checkOutboxClaim(request);
  const { consumer, at, limit } = request;
  const due = [...rows.values()]
    .filter(({ row, owner }) => row.consumer === consumer && row.state === "pending" && owner?.alive !== true)
    .filter(({ row }) => row.dueAt <= at)
    .sort(({ row: one }, { row: other }) => one.dueAt - other.dueAt || one.position - other.position)
    .slice(0, limit);
  for (const { row } of due) rows.set(row.position, { row, owner: self });
  return due.map(({ row }) => row);
}

function finishRow(
  { rows }: MemoryOutbox,
  self: Owner,
  { position, outcome }: { readonly position: number; readonly outcome: OutboxOutcome },
): boolean {
  const stored = rows.get(position);
  if (stored === undefined || stored.owner !== self) return false;
  rows.set(position, { row: { ...stored.row, ...applyOutcome(stored.row, outcome) }, owner: undefined });
  return true;
}

function retryRow({ rows }: MemoryOutbox, position: number, at: number): boolean {
  const stored = rows.get(position);
  if (stored === undefined || stored.row.state === "pending") return false;
  const { finishedAt: _, ...row } = stored.row;
  rows.set(position, { row: { ...row, state: "pending", attempts: 0, dueAt: at }, owner: undefined });
  return true;
}

function listRows({ rows }: MemoryOutbox, filter: OutboxFilter): readonly OutboxRow[] {
  checkOutboxFilter(filter);
  const { consumer, thread, topic, state, before, limit } = filter;
  return [...rows.values()]
    .map(({ row }) => row)
    .filter((row) => matches(consumer, row.consumer) && matches(thread, row.thread))
    .filter((row) => matches(topic, row.topic) && matches(state, row.state))
    .filter(({ position }) => before === undefined || position < before.position)
    .sort((one, other) => other.position - one.position)
    .slice(0, limit);
}

function sweepRows(threads: Threads, sweep: OutboxSweep): number {
  checkOutboxSweep(sweep);
  const { consumer, finishedBefore, limit } = sweep;
  const old = [...threads.outbox.rows.values()]
    .map(({ row }) => row)
    .filter((row) => row.consumer === consumer && row.state !== "pending" && (row.finishedAt ?? 0) < finishedBefore)
    .filter((row) => !isAboutOpenInterrupt(threads, row))
    .slice(0, limit);
  for (const row of old) deleteRow(threads.outbox, row);
  return old.length;
}

function isAboutOpenInterrupt(threads: Threads, { thread, branch, interrupt }: OutboxRow): boolean {
  if (interrupt === undefined) return false;
  return threads.get(thread)?.namespaces.get(branch)?.awaited.has(interrupt) === true;
}

function listOverdue(threads: Threads, page: OverduePage): readonly OpenInterruptRow[] {
  checkOverduePage(page);
  const { consumer, topic, raisedBy, after, limit } = page;
  const known = listRows(threads.outbox, { consumer, topic });
  const isKnown = (each: OpenInterruptRow): boolean =>
    known.some(({ thread, branch, interrupt }) => {
      return thread === each.thread && branch === each.branch && interrupt === each.id;
    });
  const rows = listOpenInterrupts(threads, {})
    .filter(({ position }) => position > (after?.position ?? 0))
    .reverse();
  const end = rows.findIndex(({ raisedAt }) => raisedAt > raisedBy);
  return (end === -1 ? rows : rows.slice(0, end)).filter((row) => !isKnown(row)).slice(0, limit);
}
