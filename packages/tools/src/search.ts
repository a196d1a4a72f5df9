/** Tool `search`: finds lines of files by a regular expression, with ripgrep or a built-in implementation. */
import { type DefinedTool, defineTool, type World } from "@statewright/core";
import { jsonSchemaInput, systemWorld } from "@statewright/core/adapter";
import { createGlobMatcher, isHostError, type Workspace, workspace } from "@statewright/host";
import { createPacedUpdates } from "./paced-updates.ts";
import { searchWithRipgrep } from "./ripgrep.ts";
import { searchFiles } from "./search-files.ts";
import type { SearchHit, SearchReport, SearchRequest } from "./search-hits.ts";
import { runOnHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Search program, and the limit of found lines. */
export interface SearchOptions extends ToolOptions {
  /**
   * Program name or path of ripgrep (default `rg`), or false for the built-in search, which is also used when ripgrep
   * is not installed.
   */
  readonly ripgrep?: string | false;
  /** Maximum number of found lines. Default 200. */
  readonly maxHits?: number;
}

/** Arguments of `search`. */
export interface SearchArgs {
  readonly pattern: string;
  readonly path?: string;
  readonly glob?: string;
}

const resultBytes = 50 * 1024;

const input = jsonSchemaInput<SearchArgs>({
  type: "object",
  properties: {
    pattern: {
      type: "string",
      minLength: 1,
      maxLength: 1_000,
      description: "The regular expression, without look-around and back references.",
    },
    path: {
      type: "string",
      description: "A file or a folder, relative to the workspace. Default: the whole workspace.",
    },
    glob: { type: "string", minLength: 1, description: "Search only files that match this glob, such as *.ts." },
  },
  required: ["pattern"],
  additionalProperties: false,
});

/**
 * Creates the tool `search`. Both implementations support the same expressions, run in linear time, and find the same
 * lines.
 */
export function search(options: SearchOptions): DefinedTool<"search", SearchArgs> {
  checkToolOptions("search", options, ["ripgrep", "maxHits"]);
  const { root, maxHits = 200, world = systemWorld() } = options;
  const files = workspace(root);
  const runSearch = createSearchRunner(files, options, world);
  return defineTool({
    name: "search",
    label: "Search Files",
    description:
      "Search the text of files by a regular expression, line by line; begin it with (?i) to ignore case. Returns path:line:text. Files named in .gitignore and binary files are not searched.",
    input,
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: (args, { signal, update }) =>
      runOnHost(async () => {
        const { path, kind } = await files.stat(args.path ?? ".");
        // Validates the glob here, so that both implementations reject an invalid glob with the same message.
        const matchesGlob = args.glob === undefined ? undefined : createGlobMatcher(args.glob);
        const hits: SearchHit[] = [];
        let searchedFiles = 0;
        const updates = createPacedUpdates({ update }, world.schedule, () => ({
          content: formatHits(hits.slice(-20)),
          details: { hits: hits.length, files: searchedFiles },
        }));
        const request: SearchRequest = {
          ...args,
          matchesGlob,
          searchPath: path,
          kind,
          maxHits,
          signal,
          onHit: (hit) => {
            hits.push(hit);
            updates.touch();
          },
          onFiles: (count) => {
            searchedFiles = count;
            updates.touch();
          },
        };
        try {
          return formatReport(args, hits, await runSearch(request));
        } finally {
          updates.end();
        }
      }),
  });
}

/** Creates a search that runs ripgrep, or the built-in search once ripgrep is found not to be installed. */
function createSearchRunner(
  files: Workspace,
  { root, ripgrep = "rg" }: SearchOptions,
  world: World,
): (request: SearchRequest) => Promise<SearchReport> {
  let program = ripgrep;
  return async (request) => {
    if (program !== false) {
      try {
        return await searchWithRipgrep(request, { program, root, world });
      } catch (error) {
        if (!isHostError(error) || error.code !== "spawn_failed" || error.systemCode !== "ENOENT") throw error;
        program = false;
      }
    }
    return searchFiles(files, request, world);
  };
}

function formatReport({ pattern }: SearchArgs, hits: readonly SearchHit[], report: SearchReport): string {
  if (hits.length === 0) return `[No line matches ${pattern}.]`;
  const lines = [formatHits(hits)];
  if (report.isTruncated)
    lines.push(`[There are more than ${hits.length} lines. Search in a folder, or use a more specific pattern.]`);
  if (report.skippedFiles > 0)
    lines.push(`[${report.skippedFiles} files could not be read, were too large, or took too long.]`);
  return lines.join("\n");
}

function formatHits(hits: readonly SearchHit[]): string {
  return hits.map(({ path, line, text }) => `${path}:${line}:${text}`).join("\n");
}
