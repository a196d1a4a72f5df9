/** Tool `edit_file`: replaces parts of a text file, all or none. */
import { type DefinedTool, defineTool, ToolError } from "@statewright/core";
import { jsonSchemaInput } from "@statewright/core/adapter";
import { workspace } from "@statewright/host";
import { createTwoFilesPatch } from "diff";
import { applyEdits, type Edit } from "./edits.ts";
import { getFileLock } from "./file-lock.ts";
import { checkWriteToolOptions, createWriteReview, type WriteToolOptions } from "./protected-paths.ts";
import { runOnHost } from "./to-tool-error.ts";

/** Arguments of `edit_file`. */
export interface EditFileArgs {
  readonly path: string;
  readonly edits: readonly Edit[];
}

/** Details of an edit for applications. */
export interface EditDetails {
  /** Unified diff of the change; absent when too large. */
  readonly diff?: string;
  readonly changed: boolean;
}

/** Maximum size of an editable file. */
const maxFileBytes = 8 * 2 ** 20;
const maxDiffLength = 64 * 1024;

/**
 * Creates the tool `edit_file`. Each `old` text must occur exactly once; line ends, byte order mark and file mode are
 * preserved. Idempotent: a file that already has the result of the edits stays unchanged, without an error.
 */
export function editFile(options: WriteToolOptions): DefinedTool<"edit_file", EditFileArgs> {
  checkWriteToolOptions("editFile", options);
  const { root, world } = options;
  const files = workspace(root, world === undefined ? {} : { world });
  return defineTool({
    name: "edit_file",
    label: "Edit File",
    description:
      "Replace parts of a text file. Each old text must occur in the file exactly once; either all edits are made or none. Include enough surrounding text to make it unique.",
    input: jsonSchemaInput<EditFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "Path of the file, relative to the workspace." },
        edits: {
          type: "array",
          minItems: 1,
          maxItems: 100,
          description: "The edits, all applied to the current file.",
          items: {
            type: "object",
            properties: {
              old: {
                type: "string",
                minLength: 1,
                description: "The current text in the file, character by character.",
              },
              new: { type: "string", description: "The new text." },
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
    execution: { lock: ({ path }) => getFileLock(root, path), needsApproval: createWriteReview(options) },
    run: ({ path, edits }) =>
      runOnHost(async () => {
        const original = await files.read(path, { maxBytes: maxFileBytes });
        if (original.kind === "binary") throw ToolError.failed(`Cannot edit ${path}: it is not UTF-8 text.`);
        if (original.truncated) throw ToolError.failed(`Cannot edit ${path}: it has more than ${maxFileBytes} bytes.`);
        const { text, isDone } = applyEdits(original.text, edits);
        const details: EditDetails = { changed: !isDone };
        if (isDone)
          return {
            content: `Nothing was changed: ${path} already contains the new text and not the old text, as after these edits. If you did not make them before, read the file.`,
            details,
          };
        await files.write(path, text);
        const diff = createDiff(path, original.text, text);
        return {
          content: `Edited ${path}: ${edits.length === 1 ? "1 edit" : `${edits.length} edits`}.`,
          details: diff === undefined ? details : { ...details, diff },
        };
      }),
  });
}

function createDiff(path: string, original: string, edited: string): string | undefined {
  const diff = createTwoFilesPatch(path, path, original, edited, undefined, undefined, {
    context: 3,
    maxEditLength: 2_000,
  });
  return diff === undefined || diff.length > maxDiffLength ? undefined : diff;
}
