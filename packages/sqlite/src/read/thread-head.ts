/**
 * What a thread has come to. The row of a thread says it exactly while nobody holds the thread; a superstep of its owner does not
 * write that row, which would be a page more in every commit, so meanwhile its newest checkpoints say the rest. Lists know such threads by their runs at
 * work.
 */

/** The newest checkpoint of each branch, and of the child lines the newest of all: a column of those, the greatest. */
function inCheckpoints(column: string): string {
  return (
    "coalesce((SELECT max((SELECT " +
    column +
    " FROM checkpoints c WHERE c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff ORDER BY c.key DESC LIMIT 1))" +
    " FROM branches b INDEXED BY branches_of_thread WHERE b.thread = t.key AND instr(b.name, '/') = 0), 0)," +
    " coalesce((SELECT " +
    column +
    " FROM child_checkpoints x CROSS JOIN checkpoints c ON c.key = (x.branch << 24) + (x.key & 0xffffff)" +
    " WHERE x.key BETWEEN t.key << 24 AND (t.key << 24) + 0xffffff ORDER BY x.key DESC LIMIT 1), 0)"
  );
}

function reached(known: string, column: string): string {
  return "CASE WHEN t.owner IS NULL THEN " + known + " ELSE max(" + known + ", " + inCheckpoints(column) + ") END";
}

/** Of a row of `threads t`: the last number of its durable events, the last id of its checkpoints, when it changed last. */
export const reachedSeq: string = reached("t.seq", "c.seq");
export const reachedCheckpoint: string = reached("t.checkpoint", "c.key & 0xffffff");
export const reachedAt: string = reached("t.updated", "c.at");

/** Put into the row of `threads AS t` what the thread has come to. */
export const settleReached: string =
  "seq = " + reachedSeq + ", checkpoint = " + reachedCheckpoint + ", updated = " + reachedAt;
