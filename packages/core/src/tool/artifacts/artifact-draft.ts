/** What a tool gives to be kept whole beside its answer. */
import { describeValue, isPlainObject } from "../../base/json.ts";
import { ToolError } from "../definition/tool-error.ts";

/** An artifact as a tool gives it. */
export interface ArtifactDraft {
  /** What people and the model know it by, such as the name of a file. */
  readonly name: string;
  readonly mimeType: string;
  /** Text is kept in UTF-8. */
  readonly body: string | Uint8Array;
  /** False keeps the text of the body as it is, in spite of the tool's redaction. What `read_artifact` shows is redacted all the same. */
  readonly redact?: boolean;
}

/** What the application and events know of an artifact of a call. */
export interface ArtifactRef {
  /** SHA-256 of the body, in hexadecimal: by it the store hands the body out. */
  readonly key: string;
  /** Its short name in its thread: what the model is shown. */
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
}

/**
 * The drafts of an output, copied: what the tool keeps stays its own. Throws an `invalid_output` ToolError for what is no
 * list of them.
 */
export function draftsOf(given: unknown): readonly ArtifactDraft[] {
  if (!Array.isArray(given)) throw unfit("artifacts", given);
  return given.map((draft: unknown) => {
    if (!isPlainObject(draft)) throw unfit("an artifact", draft);
    const { name, mimeType, body, redact } = draft;
    if (typeof name !== "string" || name === "") throw unfit("the name of an artifact", name);
    if (typeof mimeType !== "string" || mimeType === "")
      throw unfit(`the mimeType of the artifact "${name}"`, mimeType);
    if (redact !== undefined && typeof redact !== "boolean") throw unfit(`redact of the artifact "${name}"`, redact);
    if (typeof body !== "string" && !(body instanceof Uint8Array))
      throw unfit(`the body of the artifact "${name}"`, body);
    const kept = typeof body === "string" ? body : body.slice();
    return Object.freeze({ name, mimeType, body: kept, ...(redact === undefined ? {} : { redact }) });
  });
}

function unfit(what: string, given: unknown): ToolError {
  return new ToolError("invalid_output", `The tool gave ${describeValue(given)} as ${what}.`);
}
