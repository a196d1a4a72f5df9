/**
 * Head of a thread: last event, last checkpoint and last change. The row of a thread is exact only while the thread
 * has no owner: a superstep does not update the row, which would cost one more page per commit, so the newest
 * checkpoints complete it. Lists find such threads through their active runs.
 */

/**
 * Selects the maximum of a column over the newest checkpoint of each branch, and the newest checkpoint of all child
 * namespaces.
 */
function selectFromCheckpoints(column: string): string {
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

function selectThreadHead(known: string, column: string): string {
  return (
    "CASE WHEN t.owner IS NULL THEN " + known + " ELSE max(" + known + ", " + selectFromCheckpoints(column) + ") END"
  );
}

/** For a row of `threads t`: last event number, last checkpoint id, and time of the last change. */
export const threadHeadSeq: string = selectThreadHead("t.seq", "c.seq");
export const threadHeadCheckpoint: string = selectThreadHead("t.checkpoint", "c.key & 0xffffff");
export const threadHeadTime: string = selectThreadHead("t.updated", "c.at");

/** Assignments that write the current head to the row of `threads AS t`. */
export const threadHeadAssignments: string =
  "seq = " + threadHeadSeq + ", checkpoint = " + threadHeadCheckpoint + ", updated = " + threadHeadTime;
