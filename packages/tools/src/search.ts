/** The tool `search`: lines of files that a regular expression finds, by ripgrep or by ourselves. */
import { type DefinedTool, defineTool, jsonSchemaInput, systemWorld } from "@statewright/core";
import { globMatcher, isHostError, workspace } from "@statewright/host";
import { pacedUpdates } from "./paced-updates.ts";
import { searchWithRipgrep } from "./ripgrep.ts";
import { searchFiles } from "./search-files.ts";
import type { SearchHit, SearchReport, SearchRequest } from "./search-hits.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** How `search` works. */
export interface SearchOptions extends ToolOptions {
  /** The program `rg` (default), a path to it, or false to search without it. Where it is not there we search ourselves. */
  readonly ripgrep?: string | false;
  /** How many lines are found at most. Default 200. */
  readonly maxHits?: number;
}

/** What the model gives to `search`. */
export interface SearchArgs {
  readonly pattern: string;
  readonly path?: string;
  readonly glob?: string;
}

const resultBytes = 50 * 1024;

/** The tool `search`. Both ways take the same expressions, in time that is linear in the text, and find the same. */
export function search(options: SearchOptions): DefinedTool<"search", SearchArgs> {
  checkToolOptions("search", options, ["ripgrep", "maxHits"]);
  const { root, maxHits = 200, world = systemWorld() } = options;
  const files = workspace(root);
  let program = options.ripgrep ?? "rg";
  return defineTool({
    name: "search",
    label: "Search Files",
    description:
      "Search the text of files by a regular expression, line by line; begin it with (?i) to ignore case. Gives path:line:text. What .gitignore names, and binary files, are not searched.",
    input: jsonSchemaInput<SearchArgs>({
      type: "object",
      properties: {
        pattern: {
          type: "string",
          minLength: 1,
          maxLength: 1_000,
          description: "The regular expression, without look-around and back references.",
        },
        path: { type: "string", description: "A file or a folder, from the workspace. Default: all of it." },
        glob: { type: "string", minLength: 1, description: "Only in files that this glob fits, such as *.ts." },
      },
      required: ["pattern"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: (args, { signal, update }) =>
      onHost(async () => {
        const { path: place, kind } = await files.stat(args.path ?? ".");
        // A glob that fits nothing is refused in the same words both ways.
        const fits = args.glob === undefined ? undefined : globMatcher(args.glob);
        const hits: SearchHit[] = [];
        let seen = 0;
        const updates = pacedUpdates({ update }, world.schedule, () => ({
          content: shownHits(hits.slice(-20)),
          details: { hits: hits.length, files: seen },
        }));
        const request: SearchRequest = {
          ...args,
          place,
          kind,
          maxHits,
          signal,
          onHit: (hit) => {
            hits.push(hit);
            updates.touch();
          },
          onFiles: (count) => {
            seen = count;
            updates.touch();
          },
        };
        try {
          return shownReport(args, hits, await searched(request, fits));
        } finally {
          updates.end();
        }
      }),
  });

  async function searched(
    request: SearchRequest,
    fits: ((path: string) => boolean) | undefined,
  ): Promise<SearchReport> {
    if (program !== false) {
      try {
        return await searchWithRipgrep(root, program, request, fits, world);
      } catch (error) {
        if (!isHostError(error) || error.code !== "spawn_failed" || error.systemCode !== "ENOENT") throw error;
        program = false;
      }
    }
    return searchFiles(files, request, fits);
  }
}

function shownReport({ pattern }: SearchArgs, hits: readonly SearchHit[], report: SearchReport): string {
  if (hits.length === 0) return `[No line fits ${pattern}.]`;
  const lines = [shownHits(hits)];
  if (report.isCut) lines.push(`[There are more than ${hits.length}. Search in a folder, or for something rarer.]`);
  if (report.unread > 0) lines.push(`[${report.unread} files could not be read or were too large.]`);
  return lines.join("\n");
}

function shownHits(hits: readonly SearchHit[]): string {
  return hits.map(({ path, line, text }) => `${path}:${line}:${text}`).join("\n");
}
