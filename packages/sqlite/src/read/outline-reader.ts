/** Reads of saved outlines of graph versions. */
import { computeOutlineSum, createCorruptError, type GraphVersion } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

interface OutlineColumns {
  readonly outline: string | null;
  readonly outline_sum: number | null;
}

function prepareStatements(db: Database) {
  return {
    find: db.prepare<[string, number, string], OutlineColumns>(
      "SELECT outline, outline_sum FROM graphs WHERE name = ? AND version = ? AND shape = ?",
    ),
    versions: db.prepare<[], GraphVersion>("SELECT name AS graph, version, shape FROM graphs ORDER BY key"),
  };
}

/** Reads the outlines of graph versions. */
export class OutlineReader {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Lists all graph versions of the file. */
  listVersions(): readonly GraphVersion[] {
    return this.#sql.versions.all();
  }

  /** Returns the outline of a graph version as JSON text. Throws `store_corrupt` on a checksum mismatch. */
  get(version: GraphVersion): string | undefined {
    const found = this.#sql.find.get(version.graph, version.version, version.shape);
    if (found === undefined || (found.outline === null && found.outline_sum === null)) return undefined;
    if (found.outline !== null && computeOutlineSum(version, found.outline) === found.outline_sum) return found.outline;
    throw createCorruptError(
      `the outline of graph "${version.graph}", version ${version.version}, does not match its checksum`,
    );
  }
}
