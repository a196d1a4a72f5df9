/** Tool `write_file`: writes a whole file. */
import { type DefinedTool, defineTool } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import { workspace } from "@statewright/host";
import { getFileLock } from "./file-lock.ts";
import { checkWriteToolOptions, createWriteReview, type WriteToolOptions } from "./protected-paths.ts";
import { runOnHost } from "./to-tool-error.ts";

/** Arguments of `write_file`. */
export interface WriteFileArgs {
  readonly path: string;
  readonly content: string;
}

/**
 * Creates the tool `write_file`: creates missing parent folders, replaces the file atomically, and preserves its
 * mode.
 */
export function writeFile(options: WriteToolOptions): DefinedTool<"write_file", WriteFileArgs> {
  checkWriteToolOptions("writeFile", options);
  const { root, world } = options;
  const files = workspace(root, world === undefined ? {} : { world });
  return defineTool({
    name: "write_file",
    label: "Write File",
    description:
      "Write a whole file: its old content is replaced, missing folders are created. To change a part of a file use edit_file.",
    input: jsonSchemaInput<WriteFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "Path of the file, relative to the workspace." },
        content: { type: "string", description: "The complete content of the file." },
      },
      required: ["path", "content"],
      additionalProperties: false,
    }),
    effect: "idempotent",
    safety: { access: "write", filesystem: "write" },
    execution: { lock: ({ path }) => getFileLock(root, path), needsApproval: createWriteReview(options) },
    run: ({ path, content }) =>
      runOnHost(async () => {
        const { bytes, created } = await files.write(path, content);
        return {
          content: `${created ? "Created" : "Replaced"} ${path}: ${bytes} bytes.`,
          details: { bytes, created },
        };
      }),
  });
}
