/**
 * Ownership of rows: for every table, the condition for rows of a thread, of a namespace or of a channel. Used for
 * deleting and measuring a thread; a test fails for a missing table.
 */
import type { Database } from "../driver/database.ts";
import { threadHeadAssignments } from "../read/thread-head.ts";

/** Owner of the rows of a table, and the condition for its rows by the owner's key. */
interface TableOwnership {
  readonly owner: "thread" | "namespace" | "channel";
  readonly where: string;
  /** Set for a table of threads that no list of threads and runs reads: its rows may outlive the row of their thread. */
  readonly outlives?: true;
}

/** Condition for the rows whose key begins with the owner's key. */
export const inRange: string = "key >= (@key << 24) AND key < (@key + 1) << 24";

/** Ordered for deletion: rows referenced by other conditions come last. */
export const threadTables: Readonly<Record<string, TableOwnership>> = {
  deltas: { owner: "channel", where: inRange },
  channels: { owner: "namespace", where: "branch = @key" },
  checkpoints: { owner: "namespace", where: inRange },
  anchors: { owner: "namespace", where: inRange },
  effects: { owner: "namespace", where: "branch = @key" },
  interrupts: { owner: "namespace", where: "branch = @key" },
  timers: { owner: "namespace", where: "branch = @key" },
  requests: { owner: "namespace", where: "branch = @key" },
  inbox_messages: { owner: "namespace", where: "branch = @key" },
  child_checkpoints: { owner: "thread", where: inRange, outlives: true },
  events: { owner: "thread", where: "thread = @key", outlives: true },
  outbox: { owner: "thread", where: "thread = @key" },
  artifact_pieces: {
    owner: "thread",
    outlives: true,
    where:
      "key IN (SELECT p.key FROM artifacts a JOIN artifact_pieces p ON p.key >= a.key << 24 AND p.key < (a.key + 1) << 24 WHERE a.thread = @key)",
  },
  artifacts: { owner: "thread", where: "thread = @key", outlives: true },
  run_metadata: { owner: "thread", where: "run IN (SELECT key FROM runs WHERE thread = @key)" },
  runs: { owner: "thread", where: "thread = @key" },
  thread_metadata: { owner: "thread", where: "thread = @key" },
  thread_details: { owner: "thread", where: "thread = @key" },
  branches: { owner: "thread", where: "thread = @key", outlives: true },
  threads: { owner: "thread", where: "key = @key" },
};

/** Tables without an owner: removed threads, bodies outside of the file, graph names shared by threads, the long-term store, the topics of outbox consumers, schedules, owner processes, file settings and the rotation of tenants. */
export const sharedTables: readonly string[] = [
  "artifact_bodies",
  "graphs",
  "long_term",
  "outbox_topics",
  "owners",
  "removed_threads",
  "schedules",
  "settings",
  "tenant_rotations",
];

export interface Eraser {
  /** Deletes all rows of a namespace except runs, which belong to the thread. */
  eraseNamespace(thread: number, namespaceKey: number): void;
  /** Deletes the row of a thread and the rows of the lists of threads and runs: then nothing finds the other rows. */
  hideThread(thread: number): void;
}

/** Creates the deletion of rows; call inside a transaction. */
export function createEraser(db: Database): Eraser {
  const prepareDeletes = (to: TableOwnership["owner"]) =>
    Object.entries(threadTables)
      .filter(([, belonging]) => belonging.owner === to && belonging.outlives !== true)
      .map(([table, { where }]) => db.prepare<[{ key: number }]>("DELETE FROM " + table + " WHERE " + where));
  const [deletesOfThread, deletesOfNamespace, deletesOfChannel] = [
    prepareDeletes("thread"),
    prepareDeletes("namespace"),
    prepareDeletes("channel"),
  ];
  const channels = db.prepare<[number], number>("SELECT key FROM channels WHERE branch = ?").pluck();
  const updateThreadHead = db.prepare<[number]>(
    "UPDATE threads AS t SET " + threadHeadAssignments + " WHERE t.key = ? AND t.owner IS NOT NULL",
  );
  const removeNamespace = db.prepare<[number]>("DELETE FROM branches WHERE key = ?");
  const idsOfNamespace = db.prepare<[{ key: number }], { first: number | null; last: number | null }>(
    "SELECT min(key) & 0xffffff AS first, max(key) & 0xffffff AS last FROM checkpoints WHERE " + inRange,
  );
  const removeIds = db.prepare<[{ key: number; first: number; last: number; namespace: number }]>(
    "DELETE FROM child_checkpoints WHERE key BETWEEN (@key << 24) + @first AND (@key << 24) + @last AND branch = @namespace",
  );

  function eraseContents(namespaceKey: number): void {
    for (const key of channels.all(namespaceKey)) for (const statement of deletesOfChannel) statement.run({ key });
    for (const statement of deletesOfNamespace) statement.run({ key: namespaceKey });
  }

  return {
    eraseNamespace: (thread, namespace) => {
      // The namespace may contain the newest checkpoint of an active thread, whose ids are never reused.
      updateThreadHead.run(thread);
      const { first, last } = idsOfNamespace.get({ key: namespace }) ?? {};
      if (first != null && last != null) removeIds.run({ key: thread, first, last, namespace });
      eraseContents(namespace);
      removeNamespace.run(namespace);
    },
    hideThread: (key) => {
      for (const statement of deletesOfThread) statement.run({ key });
    },
  };
}
