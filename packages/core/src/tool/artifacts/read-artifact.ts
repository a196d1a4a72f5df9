/** `readArtifact`: a tool that reads large results page by page. */
import { checkCount, checkOptions } from "../../base/options.ts";
import { jsonSchemaInput } from "../arguments/json-schema.ts";
import { type Tool, type ToolCall, type ToolRuntime, toolSpec } from "../definition/tool.ts";
import type { ArtifactPage } from "./artifact-access.ts";

/** Options of `readArtifact`. */
export interface ReadArtifactOptions {
  /** Maximum bytes of a page. Default 8,192. */
  readonly pageBytes?: number;
}

/** Maximum page size, with a margin below the limit of a result. */
const maxPageBytes = 48 * 1024;

/**
 * Creates the tool `read_artifact` for a tool node. Throws `invalid_option` unless `pageBytes` is an integer from 64
 * to 49,152.
 */
export function readArtifact(options: ReadArtifactOptions = {}): Tool {
  checkOptions("readArtifact", options, ["pageBytes"]);
  const { pageBytes = 8_192 } = options;
  checkCount("readArtifact", { pageBytes }, 64, maxPageBytes);
  const resultBytes = pageBytes + 1_024;
  const spec = toolSpec({
    name: "read_artifact",
    description:
      "Read a part of a large result that was stored as an artifact. Pass the id of the artifact as shown, and the offset to continue from.",
    input: jsonSchemaInput({
      type: "object",
      properties: {
        artifact: { type: "string", description: "The id of the artifact." },
        offset: { type: "integer", minimum: 0, description: "The byte to begin at. Default 0." },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: pageBytes,
          description: `Most bytes to read. Default ${pageBytes}.`,
        },
      },
      required: ["artifact"],
      additionalProperties: false,
    }),
    effect: "pure",
    safety: { access: "read" },
    limits: { resultBytes, artifactBytes: resultBytes },
  });
  return Object.freeze({
    spec,
    call: async (_state: unknown, { artifacts }: ToolRuntime, { args }: ToolCall) => {
      const { artifact, offset = 0, limit = pageBytes } = args as ReadArgs;
      return { content: formatPage(await artifacts.page(artifact, { offset, limit })) };
    },
  });
}

interface ReadArgs {
  readonly artifact: string;
  readonly offset?: number;
  readonly limit?: number;
}

function formatPage({ text, offset, next, bytes, name }: ArtifactPage): string {
  const end = next ?? bytes;
  const range = offset >= bytes ? `There is nothing from byte ${offset} on` : `Bytes ${offset} to ${end}`;
  const hint = next === undefined ? "" : ` Go on with offset ${next}.`;
  return `${text}\n[${range} of ${bytes} in ${JSON.stringify(name.slice(0, 200))}.${hint}]`;
}
