/** Rows: a partial result at every hundredth row, and a stop between two rows. */
import { defineTool, ToolError } from "statewright";
import * as z from "zod";

export const processRows = defineTool({
  name: "process_rows",
  label: "Process Rows",
  description: "Process the rows of a table, one after the other.",
  input: z.object({ total: z.int().min(0).describe("How many rows there are") }),
  effect: "idempotent",
  run: async ({ total }, { signal, update, wait }) => {
    for (let row = 0; row < total; row++) {
      if (signal.aborted) throw ToolError.cancelled();
      if (row % 100 === 0) update?.({ content: `Processed ${row}/${total} rows`, details: { progress: row / total } });
      await wait(1);
    }
    return `Processed all ${total} rows`;
  },
});
