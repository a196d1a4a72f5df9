/**
 * Wraps SQLite statements in functions named after the kind of statement, so that a profile separates them. Native
 * code has no function name in a profile.
 */
import Database from "better-sqlite3";

type Call = (...args: unknown[]) => unknown;

const wrappers: Readonly<Record<"transaction" | "change" | "query", (call: Call) => Call>> = {
  transaction: (call) =>
    function transaction(this: unknown, ...args) {
      return call.apply(this, args);
    },
  change: (call) =>
    function change(this: unknown, ...args) {
      return call.apply(this, args);
    },
  query: (call) =>
    function query(this: unknown, ...args) {
      return call.apply(this, args);
    },
};

/** Wraps all statements prepared after this call in this process. */
export function nameStatements(): void {
  const prepare = Database.prototype.prepare;
  Database.prototype.prepare = function named(this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql);
    const wrapped = wrappers[getStatementKind(sql)];
    for (const name of ["run", "get", "all"]) {
      const call: unknown = Reflect.get(statement, name);
      if (typeof call === "function") Reflect.set(statement, name, wrapped(call as Call));
    }
    return statement;
  } as typeof prepare;
}

/** Returns the kind of a statement, by its first word. */
export function getStatementKind(sql: string): "transaction" | "change" | "query" {
  const [, word = ""] = /^\s*(\w+)/.exec(sql) ?? [];
  if (/^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)$/i.test(word)) return "transaction";
  return /^(INSERT|UPDATE|DELETE|REPLACE)$/i.test(word) ? "change" : "query";
}
