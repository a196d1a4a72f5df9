/** The tool `list_files`: what a folder holds, save what is ignored. */
import { type DefinedTool, defineTool, jsonSchemaInput, systemWorld } from "@statewright/core";
import { workspace } from "@statewright/host";
import { pacedUpdates } from "./paced-updates.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** What the model gives to `list_files`. */
export interface ListFilesArgs {
  readonly path?: string;
  readonly depth?: number;
  readonly limit?: number;
}

/** A walk says how far it has come after so many entries. */
export const updateEveryEntries = 1_000;

const defaultDepth = 3;
const defaultLimit = 500;
const resultBytes = 50 * 1024;

/** The tool `list_files`: folders end with `/`, links with `@`; what a .gitignore names, `.git` and `node_modules` are left out. */
export function listFiles(options: ToolOptions): DefinedTool<"list_files", ListFilesArgs> {
  checkToolOptions("listFiles", options);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "list_files",
    label: "List Files",
    description:
      "List a folder and the folders in it, one path a line: a folder ends with /, a link with @. What .gitignore names is left out.",
    input: jsonSchemaInput<ListFilesArgs>({
      type: "object",
      properties: {
        path: { type: "string", description: "The folder, from the workspace. Default: the workspace itself." },
        depth: { type: "integer", minimum: 1, description: `How many folders deep. Default ${defaultDepth}.` },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 5_000,
          description: `How many paths at most. Default ${defaultLimit}.`,
        },
      },
      required: [],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: ({ path = ".", depth = defaultDepth, limit = defaultLimit }, { signal, update }) =>
      onHost(async () => {
        let seen = 0;
        const updates = pacedUpdates({ update }, schedule, () => ({
          content: `${seen} paths so far`,
          details: { seen },
        }));
        try {
          const listing = await files.list({
            path,
            depth,
            limit,
            signal,
            wanted: () => {
              if (++seen % updateEveryEntries === 0) updates.touch();
              return true;
            },
          });
          const lines = listing.entries.map((entry) => entry.path + endings[entry.kind]);
          for (const { path: unread, cause } of listing.unreadable) lines.push(`[${unread} is not listed: ${cause}]`);
          if (listing.truncated)
            lines.push(`[There are more than ${limit}. List a folder of it, or give a larger limit.]`);
          return lines.length === 0 ? `[${path} holds nothing.]` : lines.join("\n");
        } finally {
          updates.end();
        }
      }),
  });
}

const endings = { file: "", folder: "/", link: "@", other: "" } as const;
