/**
 * Which rows are a thread's: for every table, how its rows belong to a thread, to one of its lines or to a channel of a
 * line. Deleting a thread and measuring one go by this list; a table that is missing here fails a test.
 */
import type { Database } from "better-sqlite3";
import { settleReached } from "../read/thread-head.ts";

/** What a row belongs to, and the condition by which its rows are found, given the key of that. */
interface Belonging {
  readonly to: "thread" | "line" | "channel";
  readonly where: string;
}

const inRange = "key >= (@key << 24) AND key < (@key + 1) << 24";

/** Rows that nothing else leads to come first. */
export const threadTables: Readonly<Record<string, Belonging>> = {
  deltas: { to: "channel", where: inRange },
  channels: { to: "line", where: "branch = @key" },
  checkpoints: { to: "line", where: inRange },
  anchors: { to: "line", where: inRange },
  effects: { to: "line", where: "branch = @key" },
  interrupts: { to: "line", where: "branch = @key" },
  timers: { to: "line", where: "branch = @key" },
  letters: { to: "line", where: "branch = @key" },
  child_checkpoints: { to: "thread", where: inRange },
  facts: { to: "thread", where: "thread = @key" },
  artifact_pieces: {
    to: "thread",
    where:
      "key IN (SELECT p.key FROM artifacts a JOIN artifact_pieces p ON p.key >= a.key << 24 AND p.key < (a.key + 1) << 24 WHERE a.thread = @key)",
  },
  artifacts: { to: "thread", where: "thread = @key" },
  run_metadata: { to: "thread", where: "run IN (SELECT key FROM runs WHERE thread = @key)" },
  runs: { to: "thread", where: "thread = @key" },
  branches: { to: "thread", where: "thread = @key" },
  threads: { to: "thread", where: "key = @key" },
};

/** Tables whose rows are nobody's: names of graphs that threads share, the long-term store, the processes that own threads, what holds for the file. */
export const sharedTables: readonly string[] = ["graphs", "long_term", "owners", "settings"];

export interface Eraser {
  /** Remove everything of a line but its runs, which are the thread's. */
  line(thread: number, line: number): void;
  thread(thread: number): void;
}

/** What removes rows; to be called inside a transaction. */
export function createEraser(db: Database): Eraser {
  const statements = (to: Belonging["to"]) =>
    Object.entries(threadTables)
      .filter(([, belonging]) => belonging.to === to)
      .map(([table, { where }]) => db.prepare<[{ key: number }]>("DELETE FROM " + table + " WHERE " + where));
  const [ofThread, ofLine, ofChannel] = [statements("thread"), statements("line"), statements("channel")];
  const channels = db.prepare<[number], number>("SELECT key FROM channels WHERE branch = ?").pluck();
  const lines = db.prepare<[number], number>("SELECT key FROM branches WHERE thread = ?").pluck();
  const settle = db.prepare<[number]>(
    "UPDATE threads AS t SET " + settleReached + " WHERE t.key = ? AND t.owner IS NOT NULL",
  );
  const removeLine = db.prepare<[number]>("DELETE FROM branches WHERE key = ?");
  const idsOfLine = db.prepare<[{ key: number }], { first: number | null; last: number | null }>(
    "SELECT min(key) & 0xffffff AS first, max(key) & 0xffffff AS last FROM checkpoints WHERE " + inRange,
  );
  const removeIds = db.prepare<[{ key: number; first: number; last: number; line: number }]>(
    "DELETE FROM child_checkpoints WHERE key BETWEEN (@key << 24) + @first AND (@key << 24) + @last AND branch = @line",
  );

  function contentsOf(line: number): void {
    for (const key of channels.all(line)) for (const statement of ofChannel) statement.run({ key });
    for (const statement of ofLine) statement.run({ key: line });
  }

  return {
    line: (thread, line) => {
      // It may have the newest that a thread at work has come to, whose numbers are not used again.
      settle.run(thread);
      const { first, last } = idsOfLine.get({ key: line }) ?? {};
      if (first != null && last != null) removeIds.run({ key: thread, first, last, line });
      contentsOf(line);
      removeLine.run(line);
    },
    thread: (key) => {
      for (const line of lines.all(key)) contentsOf(line);
      for (const statement of ofThread) statement.run({ key });
    },
  };
}
