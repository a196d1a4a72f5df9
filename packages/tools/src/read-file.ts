/** Tool `read_file`: reads a page of a text with line numbers, or an image. */
import { type DefinedTool, defineTool, ToolError, type ToolOutput, type ToolRuntime } from "@statewright/core";
import { jsonSchemaInput, systemWorld } from "@statewright/core/adapter";
import { type PageLine, type PageResult, type Workspace, workspace } from "@statewright/host";
import { detectImageType } from "./image-type.ts";
import { createPacedUpdates } from "./paced-updates.ts";
import { runOnHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** Limits of pages and images. */
export interface ReadFileOptions extends ToolOptions {
  /** Maximum lines per page. Default 500, at most 1,000. */
  readonly pageLines?: number;
  /** Maximum size of an image in bytes. Default 1 MiB. */
  readonly maxImageBytes?: number;
}

/** Arguments of `read_file`. */
export interface ReadFileArgs {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** Maximum bytes of a page; with line numbers the page stays below `resultBytes`. */
const pageBytes = 40 * 1024;
const resultBytes = 50 * 1024;
const maxPageLines = 1_000;
/** Bytes between progress updates while the tool searches for the first line. */
const updateEveryBytes = 64 * 2 ** 20;

/** Creates the tool `read_file`. An unreadable file gives a `failed` error `Cannot read <path>: <cause>`. */
export function readFile(options: ReadFileOptions): DefinedTool<"read_file", ReadFileArgs> {
  checkToolOptions("readFile", options, ["pageLines", "maxImageBytes"]);
  const { maxImageBytes = 2 ** 20 } = options;
  const pageLines = Math.min(options.pageLines ?? 500, maxPageLines);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "read_file",
    label: "Read File",
    description: `Read a text file, each line after its number and a tab, ${pageLines} lines at a time; or look at an image (PNG, JPEG, GIF, WebP). The numbers are not part of the file.`,
    input: jsonSchemaInput<ReadFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "Path of the file, relative to the workspace." },
        offset: { type: "integer", minimum: 1, description: "The number of the first line to read. Default 1." },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: pageLines,
          description: `Number of lines to read. Default ${pageLines}.`,
        },
      },
      required: ["path"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes: Math.max(resultBytes, Math.ceil(maxImageBytes / 3) * 4 + 1024) },
    run: ({ path, offset = 1, limit = pageLines }, { signal, update }: Pick<ToolRuntime, "signal" | "update">) =>
      runOnHost(async () => {
        let scanned = 0;
        const updates = createPacedUpdates({ update }, schedule, () => ({
          content: `${scanned} bytes scanned`,
          details: { scannedBytes: scanned },
        }));
        try {
          const page = await files.readLines(path, {
            from: offset,
            lines: limit,
            maxBytes: pageBytes,
            signal,
            onScanned: (bytes) => {
              if (bytes < scanned + updateEveryBytes) return;
              scanned = bytes;
              updates.touch();
            },
          });
          return page.kind === "text"
            ? formatPage(path, offset, page)
            : await formatBinary(files, path, { ...page, maxImageBytes });
        } finally {
          updates.end();
        }
      }),
  });
}

function formatPage(path: string, from: number, page: Extract<PageResult, { kind: "text" }>): string {
  const { lines, next, totalLines, isExact, totalBytes } = page;
  if (lines.length === 0) {
    if (totalBytes === 0) return `[${path} is empty.]`;
    throw ToolError.failed(`Cannot read ${path} from line ${from}: it has ${totalLines ?? 0} lines.`);
  }
  const text = lines.map((line, index) => `${from + index}\t${formatLine(line)}`).join("\n");
  const last = from + lines.length - 1;
  const continuation =
    next === undefined ? "" : `\n[Lines ${from} to ${last} of ${totalBytes} bytes. Continue with offset ${next}.]`;
  return `${text}${continuation}${isExact ? "" : "\n[Bytes that are not UTF-8 are shown as \uFFFD.]"}`;
}

function formatLine({ text, cutBytes }: PageLine): string {
  return cutBytes === 0 ? text : `${text} [… ${cutBytes} more bytes of this line]`;
}

/** Returns an image, or a description of any other binary file. */
async function formatBinary(
  files: Workspace,
  path: string,
  binary: Extract<PageResult, { kind: "binary" }> & { readonly maxImageBytes: number },
): Promise<ToolOutput | string> {
  const { head, totalBytes, maxImageBytes } = binary;
  const mimeType = detectImageType(head);
  if (mimeType === undefined) return `[${path} is a binary file of ${totalBytes} bytes and cannot be read as text.]`;
  const description = `${path}: ${mimeType}, ${totalBytes} bytes`;
  if (totalBytes > maxImageBytes)
    return `[${description}. It is too large to show: the limit is ${maxImageBytes} bytes.]`;
  const read = await files.read(path, { maxBytes: maxImageBytes });
  if (read.kind !== "binary" || read.truncated) return `[${path} changed while it was read. Read it again.]`;
  return {
    content: [
      { type: "text", text: description },
      { type: "image", mimeType, data: Buffer.from(read.bytes).toString("base64") },
    ],
  };
}
