/** The tool `read_file`: a page of a text with the numbers of its lines, or an image. */
import {
  type DefinedTool,
  defineTool,
  jsonSchemaInput,
  systemWorld,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
} from "@statewright/core";
import { type PageLine, type PageResult, type Workspace, workspace } from "@statewright/host";
import { imageType } from "./image-type.ts";
import { pacedUpdates } from "./paced-updates.ts";
import { onHost } from "./to-tool-error.ts";
import { checkToolOptions, type ToolOptions } from "./tool-options.ts";

/** How much `read_file` shows. */
export interface ReadFileOptions extends ToolOptions {
  /** How many lines a page has at most. Default 500, at most 1,000. */
  readonly pageLines?: number;
  /** How large an image may be, in bytes. Default 1 MiB. */
  readonly maxImageBytes?: number;
}

/** What the model gives to `read_file`. */
export interface ReadFileArgs {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** With the numbers of its lines a page stays below what a result may have. */
const pageBytes = 40 * 1024;
const resultBytes = 50 * 1024;
const mostPageLines = 1_000;
/** A search for the first line that reads so much says how far it has come. */
const updateEveryBytes = 64 * 2 ** 20;

/** The tool `read_file`. What cannot be read is `failed` with `Cannot read <path>: <cause>`. */
export function readFile(options: ReadFileOptions): DefinedTool<"read_file", ReadFileArgs> {
  checkToolOptions("readFile", options, ["pageLines", "maxImageBytes"]);
  const { maxImageBytes = 2 ** 20 } = options;
  const pageLines = Math.min(options.pageLines ?? 500, mostPageLines);
  const files = workspace(options.root);
  const { schedule } = options.world ?? systemWorld();
  return defineTool({
    name: "read_file",
    label: "Read File",
    description: `Read a text file, each line behind its number and a tab, ${pageLines} lines at a time; or look at an image (PNG, JPEG, GIF, WebP). The numbers are not part of the file.`,
    input: jsonSchemaInput<ReadFileArgs>({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "The file, from the workspace." },
        offset: { type: "integer", minimum: 1, description: "The number of the first line to read. Default 1." },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: pageLines,
          description: `How many lines to read. Default ${pageLines}.`,
        },
      },
      required: ["path"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    limits: { artifactBytes: resultBytes, resultBytes: Math.max(resultBytes, Math.ceil(maxImageBytes / 3) * 4 + 1024) },
    run: ({ path, offset = 1, limit = pageLines }, { signal, update }: Pick<ToolRuntime, "signal" | "update">) =>
      onHost(async () => {
        let scanned = 0;
        const updates = pacedUpdates({ update }, schedule, () => ({
          content: `${scanned} bytes looked through`,
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
            ? shownPage(path, offset, page)
            : await shownBinary(files, path, page.head, page.totalBytes, maxImageBytes);
        } finally {
          updates.end();
        }
      }),
  });
}

function shownPage(path: string, from: number, page: Extract<PageResult, { kind: "text" }>): string {
  const { lines, next, totalLines, isExact, totalBytes } = page;
  if (lines.length === 0) {
    if (totalBytes === 0) return `[${path} is empty.]`;
    throw ToolError.failed(`Cannot read ${path} from line ${from}: it has ${totalLines ?? 0} lines.`);
  }
  const text = lines.map((line, index) => `${from + index}\t${shownLine(line)}`).join("\n");
  const last = from + lines.length - 1;
  const more =
    next === undefined ? "" : `\n[Lines ${from} to ${last} of ${totalBytes} bytes. Go on with offset ${next}.]`;
  return `${text}${more}${isExact ? "" : "\n[Bytes that are no UTF-8 are shown as \uFFFD.]"}`;
}

function shownLine({ text, cutBytes }: PageLine): string {
  return cutBytes === 0 ? text : `${text} [… ${cutBytes} more bytes of this line]`;
}

async function shownBinary(
  files: Workspace,
  path: string,
  head: Uint8Array,
  totalBytes: number,
  maxImageBytes: number,
): Promise<ToolOutput | string> {
  const mimeType = imageType(head);
  if (mimeType === undefined) return `[${path} is a binary file of ${totalBytes} bytes. It is no text to read.]`;
  const what = `${path}: ${mimeType}, ${totalBytes} bytes`;
  if (totalBytes > maxImageBytes) return `[${what}. It is too large to look at: the limit is ${maxImageBytes} bytes.]`;
  const read = await files.read(path, { maxBytes: maxImageBytes });
  if (read.kind !== "binary" || read.truncated) return `[${path} changed while it was read. Read it again.]`;
  return {
    content: [
      { type: "text", text: what },
      { type: "image", mimeType, data: Buffer.from(read.bytes).toString("base64") },
    ],
  };
}
