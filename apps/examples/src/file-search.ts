/** File search: an update for every file that is found, each with a list of its own, and a stop between two files. */
import { glob } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { defineContext, defineTool, ToolError } from "statewright";
import * as z from "zod";

/** Where is searched: the model never sees it. */
export const Place = defineContext({ folder: z.string() });

export const searchFiles = defineTool({
  name: "search_files",
  label: "File Search",
  description: "Search files by glob pattern (e.g., **/*.ts for all TypeScript files).",
  input: z.object({ pattern: z.string().describe("Glob pattern, relative to the folder that is searched") }),
  inject: { folder: Place.from(({ folder }) => folder) },
  effect: "pure",
  safety: { access: "read", filesystem: "read" },
  run: async ({ pattern }, { injected, signal, update, clock }) => {
    if (isAbsolute(pattern) || pattern.includes(".."))
      throw new ToolError("denied", "The pattern leads out of the folder. Give one that stays inside it.");
    const began = clock.monotonic();
    const found: string[] = [];
    const details = () => ({ files: [...found], totalMatches: found.length, searchTime: clock.monotonic() - began });
    for await (const path of glob(pattern, { cwd: injected.folder })) {
      if (signal.aborted) throw new Error("Search cancelled");
      found.push(path);
      update?.({ content: `Found ${found.length} files so far...`, details: details() });
    }
    const heading = `Found ${found.length} files matching ${pattern}:`;
    return { content: [heading, ...found].join("\n"), details: details() };
  },
});
