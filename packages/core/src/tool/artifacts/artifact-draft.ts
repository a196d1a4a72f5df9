/** Artifacts that a tool returns with its result. */
import { describeValue, isPlainObject } from "../../base/json.ts";
import { ToolError } from "../definition/tool-error.ts";

/** An artifact as returned by a tool. */
export interface ArtifactDraft {
  /** Name for people and the model, such as a file name. */
  readonly name: string;
  readonly mimeType: string;
  /** Text is stored as UTF-8. */
  readonly body: string | Uint8Array;
  /**
   * False stores the text of the body without the tool's redaction. `read_artifact` redacts in any case. Default
   * true.
   */
  readonly redact?: boolean;
}

/** Reference of an artifact, for the application and events. */
export interface ArtifactRef {
  /** SHA-256 of the body in hexadecimal: the key of the body in the store. */
  readonly key: string;
  /** Short name in the thread, shown to the model. */
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
}

/**
 * Parses and copies the drafts of an output, so that the tool may reuse its buffers. Throws an `invalid_output`
 * ToolError for an invalid list.
 */
export function parseDrafts(value: unknown): readonly ArtifactDraft[] {
  if (!Array.isArray(value)) throw createOutputError("artifacts", value);
  return value.map((draft: unknown) => {
    if (!isPlainObject(draft)) throw createOutputError("an artifact", draft);
    const { name, mimeType, body, redact } = draft;
    if (typeof name !== "string" || name === "") throw createOutputError("the name of an artifact", name);
    if (typeof mimeType !== "string" || mimeType === "")
      throw createOutputError(`the mimeType of the artifact "${name}"`, mimeType);
    if (redact !== undefined && typeof redact !== "boolean")
      throw createOutputError(`the option redact of the artifact "${name}"`, redact);
    if (typeof body !== "string" && !(body instanceof Uint8Array))
      throw createOutputError(`the body of the artifact "${name}"`, body);
    const copy = typeof body === "string" ? body : body.slice();
    return Object.freeze({ name, mimeType, body: copy, ...(redact === undefined ? {} : { redact }) });
  });
}

function createOutputError(what: string, value: unknown): ToolError {
  return new ToolError("invalid_output", `The tool returned ${describeValue(value)} as ${what}.`);
}
