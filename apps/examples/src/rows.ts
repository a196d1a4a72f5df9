/** Row processing: emits a partial result every 100 rows, and can be cancelled between two rows. */
import { defineTool, ToolError } from "statewright";
import * as z from "zod";

export const processRows = defineTool({
  name: "process_rows",
  label: "Process Rows",
  description: "Process the rows of a table in order.",
  input: z.object({ total: z.int().min(0).describe("Number of rows") }),
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
