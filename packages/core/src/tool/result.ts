/** Results of tools: what a tool may return, and the one shape that it becomes. */
import { describeThrown, isError } from "../base/errors.ts";
import {
  deepestLevel,
  deepFreeze,
  describeValue,
  frozenCopy,
  isPlainObject,
  type Json,
  type JsonObject,
} from "../base/json.ts";
import { type ContentBlock, mediaIssue, type Usage } from "../model/message.ts";
import { type ArtifactDraft, type ArtifactRef, draftsOf } from "./artifacts/artifact-draft.ts";
import {
  ToolError,
  type ToolErrorDisposition,
  type ToolErrorKind,
  type ToolErrorPolicy,
  toToolError,
} from "./definition/tool-error.ts";

/** What a tool may return when plain data is not enough. */
export interface ToolOutput<Value = unknown> {
  /** What the model reads. */
  readonly content: string | readonly ContentBlock[];
  /** Typed data for programs, checked by the tool's output schema. */
  readonly value?: Value | undefined;
  /** For people only (logs, cards, metrics): never sent to a model. */
  readonly details?: unknown;
  /** A change of the graph's state and the next node, applied with the node's results. */
  readonly command?: { readonly update?: Readonly<Record<string, unknown>>; readonly goto?: string } | undefined;
  readonly isError?: boolean | undefined;
  /** Ask the agent to end after this set of calls. */
  readonly terminate?: boolean | undefined;
  readonly usage?: Usage | undefined;
  /** What the other side said besides, such as the id of a request: for programs, never sent to a model. */
  readonly provider?: JsonObject | undefined;
  /** What is to be kept whole beside the answer; the model is told of each in a line. */
  readonly artifacts?: readonly ArtifactDraft[] | undefined;
}

/** What `run` of a tool returns: text, an output, or any plain data, which the model reads as JSON. */
export type ToolReturn<Value = unknown> = ToolOutput<Value> | Value | string | undefined;

/** The answer to one call: saved, shown, and turned into the message that the model reads. */
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
  /** What was kept of it, for programs: the model is shown handles. */
  readonly artifacts?: readonly ArtifactRef[] | undefined;
  /** What is to be kept of it, for around and after hooks; it is gone once that is done. */
  readonly drafts?: readonly ArtifactDraft[] | undefined;
  readonly attempts: number;
  readonly elapsedMs: number;
}

/** Counts that a result gets from the call's machine. */
export interface ResultFacts {
  readonly callId: string;
  readonly name: string;
  readonly attempts: number;
  readonly elapsedMs: number;
}

/**
 * The result of a normal return, a copy: what the tool keeps stays its own. Text that begins with "Error" is not an error;
 * `isError: true` is. Throws an `invalid_output` ToolError for what no model can read.
 */
export function resultOf(returned: unknown, facts: ResultFacts): ToolResult {
  if (typeof returned === "string") {
    const content = Object.freeze([Object.freeze({ type: "text", text: returned } as const)]);
    return Object.freeze({ ...facts, content, isError: false });
  }
  const output = toOutput(returned);
  return frozenCopy({
    ...facts,
    content: typeof output.content === "string" ? [{ type: "text", text: output.content } as const] : output.content,
    ...(output.value === undefined ? {} : { value: output.value }),
    ...(output.details === undefined ? {} : { details: output.details }),
    ...(output.command === undefined ? {} : { command: output.command }),
    ...(output.terminate === undefined ? {} : { terminate: output.terminate }),
    ...(output.usage === undefined ? {} : { usage: output.usage }),
    ...(output.provider === undefined ? {} : { provider: output.provider }),
    ...(output.artifacts === undefined ? {} : { drafts: draftsOf(output.artifacts) }),
    ...(output.isError === true
      ? { error: { kind: "failed", disposition: "repair", message: textOfBlocks(output.content) } as const }
      : {}),
    isError: output.isError === true,
  });
}

/** The result of an attempt that was stopped and then still answered: its own words, with the kind of what stopped it. */
export function resultOfStopped(stop: ToolError, result: ToolResult): ToolResult {
  const message = result.error?.message ?? textOfBlocks(result.content);
  const error = { kind: stop.kind, disposition: stop.disposition, message };
  return deepFreeze({ ...result, isError: true, error });
}

/** A failure as the tool's policy has it: the run fails for it, or the model reads what the policy says in place of it. */
export function underPolicy(result: ToolResult, policy: ToolErrorPolicy): ToolResult {
  const { error } = result;
  if (error === undefined || error.disposition === "control" || policy === "return") return result;
  if (policy === "fail") return deepFreeze({ ...result, error: { ...error, disposition: "fail" } });
  return deepFreeze({ ...result, content: [{ type: "text", text: policy.message } as const] });
}

/** The result of a failure: an answer that the model reads under the same id. */
export function resultOfError(error: ToolError, facts: ResultFacts): ToolResult {
  return deepFreeze({
    ...facts,
    content: [{ type: "text", text: error.modelMessage } as const],
    ...(error.details === undefined ? {} : { details: error.details }),
    isError: true,
    error: { kind: error.kind, disposition: error.disposition, message: error.userMessage },
  });
}

/**
 * A return value as an output: an object with `content` is one already, also when it spells an image or a failure as other
 * systems do; other data becomes JSON text and `value`. An error that is returned counts as one that is thrown: it is thrown.
 */
export function toOutput(returned: unknown): ToolOutput {
  if (returned === undefined) return { content: "" };
  if (typeof returned === "string") return { content: returned };
  if (isError(returned)) throw toToolError(returned);
  if (!isPlainObject(returned) || isDataWithContent(returned)) return dataOutput(returned);
  const content = contentOf(returned["content"]);
  const { error } = returned;
  if (content === undefined) {
    if (isError(error)) throw toToolError(error);
    if (returned["isError"] !== true) return dataOutput(returned);
    return {
      ...(returned as Partial<ToolOutput>),
      content: failureTextOf(error ?? returned["message"] ?? returned["content"]),
      isError: true,
    };
  }
  const isFailure = returned["isError"] === true || saysFailed(error);
  return { ...(returned as Partial<ToolOutput>), content, ...(isFailure ? { isError: true } : {}) };
}

/** What an output may have beside a text as its content, a failure as other systems spell it, and a result of ours. */
const outputKeys: ReadonlySet<string> = new Set([
  ...["content", "value", "details", "command", "isError", "terminate", "usage", "provider", "artifacts"],
  ...["error", "message"],
]);

/** Data that has a text under `content`, such as a file with its path: of an output the model would read that text alone. */
function isDataWithContent(returned: Readonly<Record<string, unknown>>): boolean {
  if (typeof returned["content"] !== "string" || "isError" in returned || "callId" in returned) return false;
  return Object.keys(returned).some((key) => !outputKeys.has(key));
}

function dataOutput(returned: unknown): ToolOutput {
  return { content: [{ type: "json", value: jsonOf(returned) }], value: returned };
}

/** An `error` beside content: an error, what it says, or just that there was one. */
function saysFailed(error: unknown): boolean {
  return isError(error) || error === true || (typeof error === "string" && error !== "");
}

function failureTextOf(error: unknown): string {
  if (isError(error)) return describeThrown(error);
  if (typeof error === "string" && error !== "") return error;
  return typeof error === "object" && error !== null
    ? JSON.stringify(jsonOf(error))
    : "The tool failed without saying why";
}

/** Content that a model can read, blocks as we spell them; undefined for what is no content. Throws for a broken block. */
function contentOf(content: unknown): ToolOutput["content"] | undefined {
  if (typeof content === "string") return content;
  if (!isBlocks(content)) return undefined;
  return content.map((given, index) => {
    const block = given["type"] === "image" ? imageOf(given) : given;
    if (isContentBlock(block)) return block;
    throw new ToolError("invalid_output", `The tool returned ${wrongBlock(block, index + 1)}.`);
  });
}

const blockTypes: readonly unknown[] = ["text", "image", "file", "json", "artifact"];

function wrongBlock({ type }: Readonly<Record<string, unknown>>, number: number): string {
  if (blockTypes.includes(type)) return `a broken content block (number ${number}), of the kind "${type}"`;
  const known = blockTypes.join(", ");
  return `a content block of the unknown kind ${describeValue(type)} (number ${number}); known are ${known}`;
}

/** An image as we spell it, where another system's spelling was used: one that is not known would be dropped later, by one provider only. */
function imageOf(block: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (mediaIssue(block) === undefined) return block;
  const source = isPlainObject(block["source"]) ? block["source"] : block;
  const mimeType = mimeTypeNames.map((name) => source[name]).find((given) => typeof given === "string");
  const data = source["data"] ?? source["base64"] ?? source["Data"];
  return mimeType === undefined || typeof data !== "string" ? block : { type: "image", mimeType, data };
}

const mimeTypeNames = ["mimeType", "media_type", "mediaType", "mime_type", "mime", "MIMEType"];

/** Tell whether a value is a result: what an around or an after hook must give back. */
export function isResult(value: unknown): value is ToolResult {
  return (
    isPlainObject(value) &&
    typeof value["isError"] === "boolean" &&
    Array.isArray(value["content"]) &&
    value["content"].every((block) => isContentBlock(block))
  );
}

/** The data as the model will read it; a date is its text, what JSON has no word for is not there. */
function jsonOf(value: unknown): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new ToolError("invalid_output", "The tool returned a value that is not plain data.", { cause });
  }
  if (text === undefined)
    throw new ToolError("invalid_output", `The tool returned a ${typeof value}, which is not data.`);
  // Most data has no empty object, so that nobody need look.
  const lost = text.includes("{}") ? collectionIn(value, 0) : undefined;
  if (lost !== undefined)
    throw new ToolError(
      "invalid_output",
      `The tool returned a ${lost}, of which JSON says nothing; return a list or an object.`,
    );
  return JSON.parse(text) as Json;
}

/** A collection in the data that would read as {}. */
function collectionIn(value: unknown, level: number): "Map" | "Set" | undefined {
  if (typeof value !== "object" || value === null || level > deepestLevel) return undefined;
  if (value instanceof Map) return "Map";
  if (value instanceof Set) return "Set";
  const parts = Array.isArray(value) ? value : isPlainObject(value) ? Object.values(value) : [];
  for (const part of parts) {
    const lost = collectionIn(part, level + 1);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

function isBlocks(content: unknown): content is readonly Record<string, unknown>[] {
  return Array.isArray(content) && content.every((block) => isPlainObject(block) && typeof block["type"] === "string");
}

function isContentBlock(block: unknown): block is ContentBlock {
  if (!isPlainObject(block)) return false;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "image":
    case "file":
      return mediaIssue(block) === undefined;
    case "json":
      return block["value"] !== undefined;
    case "artifact":
      return isPlainObject(block["ref"]) && typeof block["preview"] === "string";
    default:
      return false;
  }
}

/** Content as one text; of blocks that are none, their kind. */
export function textOfBlocks(content: string | readonly ContentBlock[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
