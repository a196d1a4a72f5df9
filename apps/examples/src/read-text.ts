/** Read a file: what is missing, and what the disk refuses, in words that a model can act on. */
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
      const why = cause instanceof Error ? cause.message : String(cause);
      throw ToolError.failed(`Cannot read ${path}: ${why}`, { cause });
    }
  },
});
