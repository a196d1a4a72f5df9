/** The tool `edit_file`: parts of a text replaced, all of them or none. */
import { type DefinedTool, defineTool, jsonSchemaInput, ToolError } from "@statewright/core";
import { workspace } from "@statewright/host";
import { createTwoFilesPatch } from "diff";
import { applyEdits, type Edit } from "./edits.ts";
import { fileLock } from "./file-lock.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** What the model gives to `edit_file`. */
export interface EditFileArgs {
  readonly path: string;
  readonly edits: readonly Edit[];
}

/** What people learn of an edit. */
export interface EditDetails {
  /** The change as a unified diff; absent when it is too large to be made or shown. */
  readonly diff?: string;
  readonly changed: boolean;
}

/** Larger files are not for exact edits. */
const mostBytes = 8 * 2 ** 20;
const mostDiffLength = 64 * 1024;

/**
 * The tool `edit_file`. Each `old` has to stand in the file once; line ends, byte order mark and mode stay. Idempotent: a
 * file that is already what the edits lead to is left as it is, and that is no error.
 */
export function editFile(options: ToolOptions): DefinedTool<"edit_file", EditFileArgs> {
  checkToolOptions("editFile", options);
  const { root, world } = options;
  const files = workspace(root, world === undefined ? {} : { world });
  return defineTool({
    name: "edit_file",
    label: "Edit File",
    description:
      "Replace parts of a text file. Each old text must stand in the file exactly once; either all edits are made or none. Give enough of the text around a change to make it unique.",
    input: jsonSchemaInput<EditFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "The file, from the workspace." },
        edits: {
          type: "array",
          minItems: 1,
          maxItems: 100,
          description: "The edits, all judged against the file as it is now.",
          items: {
            type: "object",
            properties: {
              old: {
                type: "string",
                minLength: 1,
                description: "What stands in the file now, character by character.",
              },
              new: { type: "string", description: "What is to stand there." },
            },
            required: ["old", "new"],
            additionalProperties: false,
          },
        },
      },
      required: ["path", "edits"],
      additionalProperties: false,
    }),
    effect: "idempotent",
    safety: { access: "write", filesystem: "write" },
    execution: { lock: ({ path }) => fileLock(root, path) },
    run: ({ path, edits }) =>
      onHost(async () => {
        const before = await files.read(path, { maxBytes: mostBytes });
        if (before.kind === "binary") throw ToolError.failed(`Cannot edit ${path}: it is no UTF-8 text.`);
        if (before.truncated) throw ToolError.failed(`Cannot edit ${path}: it has more than ${mostBytes} bytes.`);
        const { text, isDone } = applyEdits(before.text, edits);
        const details: EditDetails = { changed: !isDone };
        if (isDone)
          return {
            content: `Nothing was changed: ${path} has the new text and not the old one, as after these edits. If they were not made before, read the file.`,
            details,
          };
        await files.write(path, text);
        const diff = diffOf(path, before.text, text);
        return {
          content: `Edited ${path}: ${edits.length === 1 ? "1 edit" : `${edits.length} edits`}.`,
          details: diff === undefined ? details : { ...details, diff },
        };
      }),
  });
}

function diffOf(path: string, before: string, after: string): string | undefined {
  const diff = createTwoFilesPatch(path, path, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: 2_000,
  });
  return diff === undefined || diff.length > mostDiffLength ? undefined : diff;
}
