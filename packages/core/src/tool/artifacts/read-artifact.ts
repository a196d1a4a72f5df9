/** `readArtifact`: the tool by which a model reads what was too large for it, page by page. */
import { StatewrightError } from "../../base/errors.ts";
import { describeValue } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import { jsonSchemaInput } from "../arguments/json-schema.ts";
import { type Tool, type ToolCall, type ToolRuntime, toolSpec } from "../definition/tool.ts";
import type { ArtifactPage } from "./artifact-access.ts";

/** What `readArtifact` takes. */
export interface ReadArtifactOptions {
  /** Most bytes of a page. Default 8,192. */
  readonly pageBytes?: number;
}

/** Larger pages would come near the limit of a result. */
const largestPage = 48 * 1024;

/** The tool `read_artifact`, for any tool node. Throws `invalid_option` for a page that is no number from 64 to 49,152. */
export function readArtifact(options: ReadArtifactOptions = {}): Tool {
  checkOptions("readArtifact", options, ["pageBytes"]);
  const { pageBytes = 8_192 } = options;
  if (!(Number.isInteger(pageBytes) && pageBytes >= 64 && pageBytes <= largestPage)) {
    throw new StatewrightError("invalid_option", {
      what: `pageBytes of readArtifact is ${describeValue(pageBytes)}`,
      next: `Give a whole number from 64 to ${largestPage}`,
    });
  }
  const resultBytes = pageBytes + 1_024;
  const spec = toolSpec({
    name: "read_artifact",
    description:
      "Read a part of a large result that was kept as an artifact. Give its id as it was shown, and the offset at which to go on.",
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
      return { content: shown(await artifacts.page(artifact, { offset, limit })) };
    },
  });
}

interface ReadArgs {
  readonly artifact: string;
  readonly offset?: number;
  readonly limit?: number;
}

function shown({ text, offset, next, bytes, name }: ArtifactPage): string {
  const end = next ?? bytes;
  const place = offset >= bytes ? `There is nothing from byte ${offset} on` : `Bytes ${offset} to ${end}`;
  const more = next === undefined ? "" : ` Go on with offset ${next}.`;
  return `${text}\n[${place} of ${bytes} in ${JSON.stringify(name.slice(0, 200))}.${more}]`;
}
