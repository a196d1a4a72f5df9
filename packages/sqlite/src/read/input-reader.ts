/** Reads of the inputs that wait for the owners of threads. */
import type { InputCounts } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";

const noInputs: InputCounts = { queued: 0, messages: 0, requests: 0 };

function prepareStatements(db: Database) {
  return {
    counts: db.prepare<[string], InputCounts & { readonly id: string }>(
      "SELECT t.id, t.queued, t.messages, t.requests FROM json_each(?) AS n CROSS JOIN threads t ON t.id = n.value",
    ),
  };
}

/** Reads the numbers of waiting inputs. */
export class InputReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Returns the inputs that wait for the owners of these threads, in their order; zeros for an unknown thread. */
  count(threads: readonly string[]): readonly InputCounts[] {
    const rows = this.#sql.counts.all(JSON.stringify(threads));
    const byThread = new Map(rows.map(({ id, ...counts }) => [id, counts]));
    return threads.map((thread) => byThread.get(thread) ?? noInputs);
  }
}
