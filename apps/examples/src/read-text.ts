/** File reading: reports a missing argument and file errors with messages for the model. */
import { readFile } from "node:fs/promises";
import { defineTool, ToolError } from "statewright";
import * as z from "zod";

export const readText = defineTool({
  name: "read_text",
  label: "Read Text",
  description: "Read the whole text of one file.",
  input: z.object({
    path: z
      .string({ error: ({ input }) => (input === undefined ? "missing 'path'" : undefined) })
      .describe("Path of the file"),
  }),
  effect: "pure",
  safety: { access: "read", filesystem: "read" },
  run: async ({ path }, { signal }) => {
    try {
      return await readFile(path, { encoding: "utf8", signal });
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw ToolError.failed(`Cannot read ${path}: ${reason}`, { cause });
    }
  },
});
