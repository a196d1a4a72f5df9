/** The tool `write_file`: a whole file at once. */
import { type DefinedTool, defineTool, jsonSchemaInput } from "@statewright/core";
import { workspace } from "@statewright/host";
import { fileLock } from "./file-lock.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** What the model gives to `write_file`. */
export interface WriteFileArgs {
  readonly path: string;
  readonly content: string;
}

/** The tool `write_file`: makes the folders above the file, replaces it in one step and keeps its mode. */
export function writeFile(options: ToolOptions): DefinedTool<"write_file", WriteFileArgs> {
  checkToolOptions("writeFile", options);
  const { root, world } = options;
  const files = workspace(root, world === undefined ? {} : { world });
  return defineTool({
    name: "write_file",
    label: "Write File",
    description:
      "Write a whole file: its old content is replaced, folders that are missing are made. To change a part of a file use edit_file.",
    input: jsonSchemaInput<WriteFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "The file, from the workspace." },
        content: { type: "string", description: "All that is to stand in the file." },
      },
      required: ["path", "content"],
      additionalProperties: false,
    }),
    effect: "idempotent",
    safety: { access: "write", filesystem: "write" },
    execution: { lock: ({ path }) => fileLock(root, path) },
    run: ({ path, content }) =>
      onHost(async () => {
        const { bytes, created } = await files.write(path, content);
        return {
          content: `${created ? "Created" : "Replaced"} ${path}: ${bytes} bytes.`,
          details: { bytes, created },
        };
      }),
  });
}
