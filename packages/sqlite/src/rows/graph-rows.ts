/** Rows of graph versions. */
import type { ClaimRequest } from "@statewright/core/store";
import { computeOutlineSum, type GraphVersion } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { ClaimedThread } from "../write/claimed-thread.ts";

interface GraphColumns {
  readonly key: number;
  readonly hasOutline: 0 | 1;
}

function prepareStatements(db: Database) {
  return {
    find: db.prepare<[string, number, string], GraphColumns>(
      "SELECT key, outline IS NOT NULL AS hasOutline FROM graphs WHERE name = ? AND version = ? AND shape = ?",
    ),
    add: db.prepare<[string, number, string]>("INSERT INTO graphs (name, version, shape) VALUES (?, ?, ?)"),
    setOutline: db.prepare<[string, number, number]>("UPDATE graphs SET outline = ?, outline_sum = ? WHERE key = ?"),
  };
}

/** Finds and creates rows of graph versions. */
export class GraphRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Finds the row key of a graph version whose outline is saved, or needs no saving. */
  findSavedKey({ graph, version, shape, outline }: ClaimRequest): number | undefined {
    const found = this.#sql.find.get(graph, version, shape);
    return outline !== undefined && found?.hasOutline === 0 ? undefined : found?.key;
  }

  /** Returns a graph version with its row key; creates a missing row, and saves a missing outline. */
  getWriter(writer: GraphVersion, outline?: string): ClaimedThread["writer"] {
    const { graph, version, shape } = writer;
    const found = this.#sql.find.get(graph, version, shape);
    const key = found?.key ?? Number(this.#sql.add.run(graph, version, shape).lastInsertRowid);
    if (outline !== undefined && found?.hasOutline !== 1)
      this.#sql.setOutline.run(outline, computeOutlineSum(writer, outline), key);
    return { graph, version, shape, key };
  }
}
