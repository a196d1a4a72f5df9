/** File search: emits an update with its own list for every file found, and can be cancelled between two files. */
import { glob } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { defineContext, defineTool, ToolError } from "statewright";
import * as z from "zod";

/** Folder to search; not visible to the model. */
export const SearchContext = defineContext({ folder: z.string() });

export const searchFiles = defineTool({
  name: "search_files",
  label: "File Search",
  description: "Search files by glob pattern (e.g., **/*.ts for all TypeScript files).",
  input: z.object({ pattern: z.string().describe("Glob pattern, relative to the search folder") }),
  inject: { folder: SearchContext.from(({ folder }) => folder) },
  effect: "pure",
  safety: { access: "read", filesystem: "read" },
  run: async ({ pattern }, { injected, signal, update, clock }) => {
    if (isAbsolute(pattern) || pattern.includes(".."))
      throw new ToolError("denied", "The pattern leaves the search folder. Use a pattern inside the folder.");
    const startedMs = clock.monotonic();
    const found: string[] = [];
    const createDetails = () => ({
      files: [...found],
      totalMatches: found.length,
      searchTime: clock.monotonic() - startedMs,
    });
    for await (const path of glob(pattern, { cwd: injected.folder })) {
      if (signal.aborted) throw new Error("Search cancelled");
      found.push(path);
      update?.({ content: `Found ${found.length} files so far...`, details: createDetails() });
    }
    const heading = `Found ${found.length} files matching ${pattern}:`;
    return { content: [heading, ...found].join("\n"), details: createDetails() };
  },
});
