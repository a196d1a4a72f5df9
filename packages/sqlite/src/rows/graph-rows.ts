/** Rows of graph versions. */
import type { GraphVersion } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { ClaimedThread } from "../write/claimed-thread.ts";

function prepareStatements(db: Database) {
  return {
    graphKey: db
      .prepare<[string, number, string], number>("SELECT key FROM graphs WHERE name = ? AND version = ? AND shape = ?")
      .pluck(),
    addGraph: db.prepare<[string, number, string]>("INSERT INTO graphs (name, version, shape) VALUES (?, ?, ?)"),
  };
}

/** Finds and creates rows of graph versions. */
export class GraphRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Finds the row key of a graph version. */
  findKey({ graph, version, shape }: GraphVersion): number | undefined {
    return this.#sql.graphKey.get(graph, version, shape);
  }

  /** Returns a graph version with its row key; creates a missing row. */
  getWriter({ graph, version, shape }: GraphVersion): ClaimedThread["writer"] {
    const key =
      this.#sql.graphKey.get(graph, version, shape) ??
      Number(this.#sql.addGraph.run(graph, version, shape).lastInsertRowid);
    return { graph, version, shape, key };
  }
}
