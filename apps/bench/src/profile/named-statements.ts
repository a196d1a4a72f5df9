/**
 * Statements of SQLite run under the name of what they do, so that a profile tells them apart: native code has no name of
 * its own there.
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

/** From now on, in this process. */
export function nameStatements(): void {
  const prepare = Database.prototype.prepare;
  Database.prototype.prepare = function named(this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql);
    const wrapped = wrappers[kindOf(sql)];
    for (const name of ["run", "get", "all"]) {
      const call: unknown = Reflect.get(statement, name);
      if (typeof call === "function") Reflect.set(statement, name, wrapped(call as Call));
    }
    return statement;
  } as typeof prepare;
}

/** What a statement does, by its first word. */
export function kindOf(sql: string): "transaction" | "change" | "query" {
  const [, word = ""] = /^\s*(\w+)/.exec(sql) ?? [];
  if (/^(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)$/i.test(word)) return "transaction";
  return /^(INSERT|UPDATE|DELETE|REPLACE)$/i.test(word) ? "change" : "query";
}
