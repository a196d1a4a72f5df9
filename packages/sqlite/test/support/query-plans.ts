/** Executed statements of a connection, and their query plans. */
import type Sqlite from "better-sqlite3";

/** Returns the connection with a list of its executed statements. */
export function watchStatements(db: Sqlite.Database, executed: string[]): Sqlite.Database {
  return new Proxy(db, {
    get: (of, name) => {
      if (name !== "prepare") return Reflect.get(of, name);
      return (sql: string) => watchStatement(of.prepare(sql), () => executed.push(sql));
    },
  });
}

function watchStatement(statement: Sqlite.Statement, onExecuted: () => void): Sqlite.Statement {
  return new Proxy(statement, {
    get: (of, name, receiver) => {
      const member: unknown = Reflect.get(of, name);
      if (typeof member !== "function") return member;
      return (...values: unknown[]) => {
        if (name === "all" || name === "get") onExecuted();
        const result: unknown = Reflect.apply(member, of, values);
        return result === of ? receiver : result;
      };
    },
  });
}

/** Returns the steps of the query plan of a statement. */
export function explainPlan(db: Sqlite.Database, sql: string): readonly string[] {
  const statement = sql.replaceAll(/[@:]\w+/g, "1").replaceAll("?", "1");
  const steps = db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all() as readonly { readonly detail: string }[];
  return steps.map(({ detail }) => detail);
}
