/**
 * Pinned query plans: SQLite replans a join or an aggregate whenever a parameter is bound, in case the value suggests
 * another plan. Planning takes 15 to 300 µs, many times the query itself. A parameter with a unary plus is an
 * ordinary expression, so the plan is kept.
 */
import type { Database } from "../driver/database.ts";

/** Pins the plans of all queries prepared on this connection from now on. */
export function pinQueryPlans(db: Database): void {
  const prepare = db.prepare;
  db.prepare = ((sql: string) => prepare.call(db, pinQueryPlan(sql))) as typeof prepare;
}

/**
 * Adds a unary plus to each parameter of a query. Statements that change rows are never replanned and stay unchanged.
 */
export function pinQueryPlan(sql: string): string {
  if (!/^\s*(SELECT|WITH)\b/i.test(sql)) return sql;
  return sql.replaceAll(/'(?:[^']|'')*'|\?|@\w+/g, (found) => (found.startsWith("'") ? found : `+${found}`));
}
