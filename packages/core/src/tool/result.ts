/** Results of tools: accepted return values and their normalized form. */
import { describeThrown, isError } from "../base/errors.ts";
import { createFrozenCopy, describeValue, isPlainObject, type Json, type JsonObject, maxDepth } from "../base/json.ts";
import { type ContentBlock, findMediaIssue, type Usage } from "../model/message.ts";
import { type ArtifactDraft, type ArtifactRef, parseDrafts } from "./artifacts/artifact-draft.ts";
import {
  ToolError,
  type ToolErrorDisposition,
  type ToolErrorKind,
  type ToolErrorPolicy,
  toToolError,
} from "./definition/tool-error.ts";

/** Structured return value of a tool. */
export interface ToolOutput<Value = unknown, Details = unknown> {
  /** Content for the model. */
  readonly content: string | readonly ContentBlock[];
  /** Typed data for programs, validated by the tool's output schema. */
  readonly value?: Value | undefined;
  /** Data for people only (logs, cards, metrics); never sent to a model. */
  readonly details?: Details | undefined;
  /** State update and next node, committed with the results of the node. */
  readonly command?: { readonly update?: Readonly<Record<string, unknown>>; readonly goto?: string } | undefined;
  readonly isError?: boolean | undefined;
  /** Requests the end of the agent after this batch of calls. */
  readonly terminate?: boolean | undefined;
  readonly usage?: Usage | undefined;
  /** Additional data of the provider, such as a request id; for programs, never sent to a model. */
  readonly provider?: JsonObject | undefined;
  /** Artifacts to store; the content for the model gets a line per artifact. */
  readonly artifacts?: readonly ArtifactDraft[] | undefined;
}

/** Return value of a tool's `run`: text, an output, or plain data, which the model reads as JSON. */
export type ToolReturn<Value = unknown, Details = unknown> = ToolOutput<Value, Details> | Value | string | undefined;

/** Result of a call: saved, emitted in events, and converted to the tool message for the model. */
export interface ToolResult {
  readonly callId: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly value?: unknown;
  readonly details?: unknown;
  readonly command?: ToolOutput["command"];
  readonly isError: boolean;
  readonly error?:
    | { readonly kind: ToolErrorKind; readonly disposition: ToolErrorDisposition; readonly message: string }
    | undefined;
  readonly terminate?: boolean | undefined;
  readonly usage?: Usage | undefined;
  readonly provider?: JsonObject | undefined;
  /** Stored artifacts, for programs; the model sees handles. */
  readonly artifacts?: readonly ArtifactRef[] | undefined;
  /** Artifacts to store, visible to around and after hooks; removed after storage. */
  readonly drafts?: readonly ArtifactDraft[] | undefined;
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** Data of a result that the machine of the call provides. */
export interface ResultMetadata {
  readonly callId: string;
  readonly name: string;
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** Copies the data of a result under a name of the result, such as `details`. */
export type CopyData = (value: unknown, name: string) => unknown;

/**
 * Converts a normal return value to a result. The result is a copy, so the tool may reuse its value; `copyData` copies
 * `value`, `details` and `provider`. Text that begins with "Error" is no error; `isError: true` is. Throws an
 * `invalid_output` ToolError for an unreadable value.
 */
export function toResult(
  returned: unknown,
  metadata: ResultMetadata,
  copyData: CopyData = (value) => value,
): ToolResult {
  if (typeof returned === "string") {
    const content = Object.freeze([Object.freeze({ type: "text", text: returned } as const)]);
    return Object.freeze({ ...metadata, content, isError: false });
  }
  const output = toOutput(returned, copyData);
  return createFrozenCopy({
    ...metadata,
    content: typeof output.content === "string" ? [{ type: "text", text: output.content } as const] : output.content,
    ...(output.value === undefined ? {} : { value: copyData(output.value, "value") }),
    ...(output.details === undefined ? {} : { details: copyData(output.details, "details") }),
    ...(output.command === undefined ? {} : { command: output.command }),
    ...(output.terminate === undefined ? {} : { terminate: output.terminate }),
    ...(output.usage === undefined ? {} : { usage: output.usage }),
    ...(output.provider === undefined
      ? {}
      : { provider: copyData(output.provider, "provider") as JsonObject | undefined }),
    ...(output.artifacts === undefined ? {} : { drafts: parseDrafts(output.artifacts) }),
    ...(output.isError === true
      ? { error: { kind: "failed", disposition: "repair", message: getContentText(output.content) } as const }
      : {}),
    isError: output.isError === true,
  });
}

/**
 * Creates the result of an attempt that answered after its abort: the tool's own content, with the kind of the abort.
 */
export function toStoppedResult(stop: ToolError, result: ToolResult): ToolResult {
  const message = result.error?.message ?? getContentText(result.content);
  const error = { kind: stop.kind, disposition: stop.disposition, message };
  return createFrozenCopy({ ...result, isError: true, error });
}

/** Applies the tool's error policy to a failure: the run fails, or the model reads the message of the policy. */
export function applyErrorPolicy(result: ToolResult, policy: ToolErrorPolicy): ToolResult {
  const { error } = result;
  if (error === undefined || error.disposition === "control" || policy === "return") return result;
  if (policy === "fail") return createFrozenCopy({ ...result, error: { ...error, disposition: "fail" } });
  return createFrozenCopy({ ...result, content: [{ type: "text", text: policy.message } as const] });
}

/** Converts a failure to a result for the model. */
export function toErrorResult(error: ToolError, metadata: ResultMetadata): ToolResult {
  return createFrozenCopy({
    ...metadata,
    content: [{ type: "text", text: error.modelMessage } as const],
    ...(error.details === undefined ? {} : { details: error.details }),
    isError: true,
    error: { kind: error.kind, disposition: error.disposition, message: error.userMessage },
  });
}

/**
 * Converts a return value to an output. An object with `content` is an output, also with the image and error formats
 * of other frameworks; other data becomes JSON text and `value`, from the copy that `copyData` returns. Throws an Error
 * that the tool returned.
 */
export function toOutput(returned: unknown, copyData: CopyData = (value) => value): ToolOutput {
  if (returned === undefined) return { content: "" };
  if (typeof returned === "string") return { content: returned };
  if (isError(returned)) throw toToolError(returned);
  if (!isPlainObject(returned) || isDataWithContent(returned)) return createDataOutput(returned, copyData);
  const content = parseContent(returned["content"]);
  const { error } = returned;
  if (content === undefined) {
    if (isError(error)) throw toToolError(error);
    if (returned["isError"] !== true) return createDataOutput(returned, copyData);
    return {
      ...(returned as Partial<ToolOutput>),
      content: getFailureText(error ?? returned["message"] ?? returned["content"]),
      isError: true,
    };
  }
  const isFailure = returned["isError"] === true || isFailureValue(error);
  return { ...(returned as Partial<ToolOutput>), content, ...(isFailure ? { isError: true } : {}) };
}

/**
 * Keys of an object that is an output when `content` is a string: keys of an output, and error keys of other
 * frameworks.
 */
const outputKeys: ReadonlySet<string> = new Set([
  ...["content", "value", "details", "command", "isError", "terminate", "usage", "provider", "artifacts"],
  ...["error", "message"],
]);

/**
 * Returns true for data with a string under `content`, such as a file with its path: treated as an output, the model
 * would read only that string.
 */
function isDataWithContent(returned: Readonly<Record<string, unknown>>): boolean {
  if (typeof returned["content"] !== "string" || "isError" in returned || "callId" in returned) return false;
  return Object.keys(returned).some((key) => !outputKeys.has(key));
}

function createDataOutput(returned: unknown, copyData: CopyData): ToolOutput {
  const value = copyData(returned, "value");
  if (value === undefined)
    throw new ToolError("invalid_output", `The tool returned ${describeValue(returned)}, which is not data.`);
  return { content: [{ type: "json", value: toJson(value) }], value };
}

/** Returns true if an `error` next to content means a failure: an Error, a message, or true. */
function isFailureValue(error: unknown): boolean {
  return isError(error) || error === true || (typeof error === "string" && error !== "");
}

function getFailureText(error: unknown): string {
  if (isError(error)) return describeThrown(error);
  if (typeof error === "string" && error !== "") return error;
  return typeof error === "object" && error !== null
    ? JSON.stringify(toJson(error))
    : "The tool failed without a message";
}

/** Normalizes content; undefined for a value without content. Throws for an invalid block. */
function parseContent(content: unknown): ToolOutput["content"] | undefined {
  if (typeof content === "string") return content;
  if (!isBlockList(content)) return undefined;
  return content.map((original, index) => {
    const block = original["type"] === "image" ? normalizeImage(original) : original;
    if (isContentBlock(block)) return block;
    throw new ToolError("invalid_output", `The tool returned ${describeInvalidBlock(block, index + 1)}.`);
  });
}

const blockTypes: readonly unknown[] = ["text", "image", "file", "json", "artifact"];

function describeInvalidBlock({ type }: Readonly<Record<string, unknown>>, number: number): string {
  if (blockTypes.includes(type)) return `an invalid content block (number ${number}) of type "${type}"`;
  const known = blockTypes.join(", ");
  return `a content block of the unknown type ${describeValue(type)} (number ${number}); known types are ${known}`;
}

/**
 * Converts an image in the format of another framework. An unknown format would be dropped later, by some providers
 * only.
 */
function normalizeImage(block: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (findMediaIssue(block) === undefined) return block;
  const source = isPlainObject(block["source"]) ? block["source"] : block;
  const mimeType = mimeTypeNames.map((name) => source[name]).find((name) => typeof name === "string");
  const data = source["data"] ?? source["base64"] ?? source["Data"];
  return mimeType === undefined || typeof data !== "string" ? block : { type: "image", mimeType, data };
}

const mimeTypeNames = ["mimeType", "media_type", "mediaType", "mime_type", "mime", "MIMEType"];

/** Returns true if a value is a tool result, as required from around and after hooks. */
export function isResult(value: unknown): value is ToolResult {
  return (
    isPlainObject(value) &&
    typeof value["isError"] === "boolean" &&
    Array.isArray(value["content"]) &&
    value["content"].every((block) => isContentBlock(block))
  );
}

/** Converts data to JSON for the model: a date becomes text, and values without a JSON form are dropped. */
function toJson(value: unknown): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new ToolError("invalid_output", "The tool returned a value that is not plain data.", { cause });
  }
  if (text === undefined)
    throw new ToolError("invalid_output", `The tool returned a ${typeof value}, which is not data.`);
  // Fast path: most data has no empty object.
  const collection = text.includes("{}") ? findCollection(value, 0) : undefined;
  if (collection !== undefined)
    throw new ToolError(
      "invalid_output",
      `The tool returned a ${collection}, which JSON cannot represent; return a list or an object.`,
    );
  return JSON.parse(text) as Json;
}

/** Finds a Map or Set in the data, which JSON would render as {}. */
function findCollection(value: unknown, level: number): "Map" | "Set" | undefined {
  if (typeof value !== "object" || value === null || level > maxDepth) return undefined;
  if (value instanceof Map) return "Map";
  if (value instanceof Set) return "Set";
  const parts = Array.isArray(value) ? value : isPlainObject(value) ? Object.values(value) : [];
  for (const part of parts) {
    const collection = findCollection(part, level + 1);
    if (collection !== undefined) return collection;
  }
  return undefined;
}

function isBlockList(content: unknown): content is readonly Record<string, unknown>[] {
  return Array.isArray(content) && content.every((block) => isPlainObject(block) && typeof block["type"] === "string");
}

function isContentBlock(block: unknown): block is ContentBlock {
  if (!isPlainObject(block)) return false;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "image":
    case "file":
      return findMediaIssue(block) === undefined;
    case "json":
      return block["value"] !== undefined;
    case "artifact":
      return isPlainObject(block["ref"]) && typeof block["preview"] === "string";
    default:
      return false;
  }
}

/** Joins content to a text; other blocks appear as their type in brackets. */
export function getContentText(content: string | readonly ContentBlock[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
