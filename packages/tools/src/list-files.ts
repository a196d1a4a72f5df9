/** Tool `list_files`: lists the content of a folder, without ignored files. */
import { type DefinedTool, defineTool } from "@statewright/core";
import { jsonSchemaInput, systemWorld } from "@statewright/core/adapter";
import { workspace } from "@statewright/host";
import { createPacedUpdates } from "./paced-updates.ts";
import { runOnHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Arguments of `list_files`. */
export interface ListFilesArgs {
  readonly path?: string;
  readonly depth?: number;
  readonly limit?: number;
}

/** Number of entries between progress updates. */
export const updateEveryEntries = 1_000;

const defaultDepth = 3;
const defaultLimit = 500;
const resultBytes = 50 * 1024;

/**
 * Creates the tool `list_files`. Folders end with `/`, symbolic links with `@`; skips files named in .gitignore,
 * `.git` and `node_modules`.
 */
export function listFiles(options: ToolOptions): DefinedTool<"list_files", ListFilesArgs> {
  checkToolOptions("listFiles", options);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "list_files",
    label: "List Files",
    description:
      "List a folder and its subfolders, one path per line: a folder ends with /, a link with @. Files named in .gitignore are skipped.",
    input: jsonSchemaInput<ListFilesArgs>({
      type: "object",
      properties: {
        path: { type: "string", description: "The folder, relative to the workspace. Default: the workspace itself." },
        depth: { type: "integer", minimum: 1, description: `Depth of subfolders. Default ${defaultDepth}.` },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 5_000,
          description: `Maximum number of paths. Default ${defaultLimit}.`,
        },
      },
      required: [],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: ({ path = ".", depth = defaultDepth, limit = defaultLimit }, { signal, update }) =>
      runOnHost(async () => {
        let seen = 0;
        const updates = createPacedUpdates({ update }, schedule, () => ({
          content: `${seen} paths so far`,
          details: { seen },
        }));
        try {
          const listing = await files.list({
            path,
            depth,
            limit,
            signal,
            filter: () => {
              if (++seen % updateEveryEntries === 0) updates.touch();
              return true;
            },
          });
          const lines = listing.entries.map((entry) => entry.path + suffixes[entry.kind]);
          for (const { path: unreadablePath, cause } of listing.unreadable)
            lines.push(`[${unreadablePath} is not listed: ${cause}]`);
          if (listing.truncated)
            lines.push(`[There are more than ${limit} paths. List a subfolder, or use a larger limit.]`);
          return lines.length === 0 ? `[${path} holds nothing.]` : lines.join("\n");
        } finally {
          updates.end();
        }
      }),
  });
}

const suffixes = { file: "", folder: "/", link: "@", other: "" } as const;
