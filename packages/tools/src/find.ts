/** Tool `find`: finds files by a glob pattern. */
import { type DefinedTool, defineTool } from "@statewright/core";
import { jsonSchemaInput, systemWorld } from "@statewright/core/adapter";
import { createGlobMatcher, workspace } from "@statewright/host";
import { updateEveryEntries } from "./list-files.ts";
import { createPacedUpdates } from "./paced-updates.ts";
import { runOnHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Arguments of `find`. */
export interface FindArgs {
  readonly glob: string;
}

const maxFiles = 500;
const resultBytes = 50 * 1024;

/** Creates the tool `find`. Supports the globs of .gitignore and ripgrep, with braces; skips ignored files. */
export function find(options: ToolOptions): DefinedTool<"find", FindArgs> {
  checkToolOptions("find", options);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "find",
    label: "Find Files",
    description:
      "Find files by a glob pattern, such as **/*.ts for all TypeScript files or src/{a,b}/*.md. A pattern without / matches names in every folder. Files named in .gitignore are skipped.",
    input: jsonSchemaInput<FindArgs>({
      type: "object",
      properties: {
        glob: { type: "string", minLength: 1, description: "The glob pattern, relative to the workspace." },
      },
      required: ["glob"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: ({ glob }, { signal, update }) =>
      runOnHost(async () => {
        const matches = createGlobMatcher(glob);
        let seen = 0;
        const updates = createPacedUpdates({ update }, schedule, () => ({
          content: `${seen} paths checked`,
          details: { seen },
        }));
        try {
          const { entries, truncated } = await files.list({
            limit: maxFiles,
            signal,
            filter: (path, kind) => {
              if (++seen % updateEveryEntries === 0) updates.touch();
              return kind !== "folder" && matches(path);
            },
          });
          if (entries.length === 0) return `[No file matches ${glob}.]`;
          const lines = entries.map(({ path }) => path);
          if (truncated) lines.push(`[There are more than ${maxFiles} files. Use a narrower pattern.]`);
          return lines.join("\n");
        } finally {
          updates.end();
        }
      }),
  });
}
