/** Fills a file with very many threads, in one transaction without a store. */

import { computeColumnSum } from "@statewright/store-kit";
import Database from "better-sqlite3";
import { registerRowSums } from "../../src/rows/row-sums.ts";

const numbers = "WITH RECURSIVE nth (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM nth WHERE n < @count) ";

/** Status of thread `n`: half of the threads are done, a tenth has no run. */
const status =
  "CASE n % 10 WHEN 0 THEN 'waiting' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' WHEN 3 THEN 'paused' WHEN 4 THEN 'new' ELSE 'done' END";

const tenant = "'tenant-' || (n / 10 % CAST(@tenants AS INTEGER))";
const metadata = `'{"project":"p' || (n % 2) || '","order":' || n || '}'`;

/**
 * Adds the threads `t1`, `t2`, … to a closed file of a store: each with a title, metadata and one of some tenants, and
 * nine of ten with a run `r1`, `r2`, ….
 */
export function addManyThreads(
  file: string,
  { count, tenants }: { readonly count: number; readonly tenants: number },
): void {
  const db = new Database(file);
  registerRowSums(db);
  const options = { varargs: true, deterministic: true } as const;
  db.function("sum_of_columns", options, (...columns: unknown[]) => computeColumnSum(columns));
  const statements = [
    "INSERT INTO graphs (key, name, version, shape) SELECT 1, 'chat', 1, 's' WHERE @count > 0",
    `${numbers}INSERT INTO threads (key, id, salt, graph, head, run, status, epoch, seq, checkpoint, queued, messages, requests, input, created, updated, tenant)
      SELECT n, 't' || n, '', 1, 'main', CASE WHEN n % 10 = 4 THEN NULL ELSE n END, ${status}, 1, 0, 0, 0, 0, 0, 0, n, n, ${tenant} FROM nth`,
    `${numbers}INSERT INTO thread_details (thread, title, metadata, sum)
      SELECT n, 'Chat ' || n, ${metadata}, sum_of_columns('t' || n, ${tenant}, NULL, 'Chat ' || n, ${metadata}) FROM nth`,
    `${numbers}INSERT INTO thread_metadata (thread, name, value, tenant) SELECT n, 'project', '"p' || (n % 2) || '"', ${tenant} FROM nth`,
    `${numbers}INSERT INTO thread_metadata (thread, name, value, tenant) SELECT n, 'order', n, ${tenant} FROM nth`,
    `${numbers}INSERT INTO branches (key, thread, name, run)
      SELECT n, n, 'main', CASE WHEN n % 10 = 4 THEN NULL ELSE n END FROM nth`,
    `${numbers}INSERT INTO runs (key, thread, branch, id, graph, version, status, attempt, started, epoch, tenant)
      SELECT n, n, n, 'r' || n, 'chat', 1, ${status}, 1, n, 1, ${tenant} FROM nth WHERE n % 10 <> 4`,
    `UPDATE runs AS r SET sum = sum_of_run(r.thread, r.branch, r.id, r.graph, r.version, r.status, r.attempt, r.started, r.epoch,
      r.ended, r.error, r.name, r.metadata, r.input, r.more, r.tenant, r.user, r.priority) WHERE @count > 0`,
  ];
  db.transaction(() => {
    for (const statement of statements) db.prepare(statement).run({ count, tenants });
  })();
  db.close();
}
