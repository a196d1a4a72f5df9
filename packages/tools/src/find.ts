/** The tool `find`: files by a glob. */
import { type DefinedTool, defineTool, jsonSchemaInput, systemWorld } from "@statewright/core";
import { globMatcher, workspace } from "@statewright/host";
import { updateEveryEntries } from "./list-files.ts";
import { pacedUpdates } from "./paced-updates.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** What the model gives to `find`. */
export interface FindArgs {
  readonly glob: string;
}

const mostFiles = 500;
const resultBytes = 50 * 1024;

/** The tool `find`. Globs are those of .gitignore and ripgrep, with braces; ignored files are not found. */
export function find(options: ToolOptions): DefinedTool<"find", FindArgs> {
  checkToolOptions("find", options);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "find",
    label: "Find Files",
    description:
      "Find files by a glob pattern, such as **/*.ts for all TypeScript files or src/{a,b}/*.md. A pattern without / is about names, in every folder. What .gitignore names is not found.",
    input: jsonSchemaInput<FindArgs>({
      type: "object",
      properties: { glob: { type: "string", minLength: 1, description: "The pattern, from the workspace." } },
      required: ["glob"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes },
    run: ({ glob }, { signal, update }) =>
      onHost(async () => {
        const matches = globMatcher(glob);
        let seen = 0;
        const updates = pacedUpdates({ update }, schedule, () => ({
          content: `${seen} paths looked at`,
          details: { seen },
        }));
        try {
          const { entries, truncated } = await files.list({
            limit: mostFiles,
            signal,
            wanted: (path, kind) => {
              if (++seen % updateEveryEntries === 0) updates.touch();
              return kind !== "folder" && matches(path);
            },
          });
          if (entries.length === 0) return `[No file fits ${glob}.]`;
          const lines = entries.map(({ path }) => path);
          if (truncated) lines.push(`[There are more than ${mostFiles}. Use a narrower pattern.]`);
          return lines.join("\n");
        } finally {
          updates.end();
        }
      }),
  });
}
