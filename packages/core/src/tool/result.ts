/** Results of tools: what a tool may return, and the one shape that it becomes. */
import { deepFreeze, frozenCopy, isPlainObject, type Json } from "../base/json.ts";
import type { ContentBlock, Usage } from "../model/message.ts";
import { ToolError, type ToolErrorDisposition, type ToolErrorKind } from "./tool-error.ts";

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
  const output = toOutput(returned);
  return frozenCopy({
    ...facts,
    content: typeof output.content === "string" ? [{ type: "text", text: output.content } as const] : output.content,
    ...(output.value === undefined ? {} : { value: output.value }),
    ...(output.details === undefined ? {} : { details: output.details }),
    ...(output.command === undefined ? {} : { command: output.command }),
    ...(output.terminate === undefined ? {} : { terminate: output.terminate }),
    ...(output.usage === undefined ? {} : { usage: output.usage }),
    ...(output.isError === true
      ? { error: { kind: "failed", disposition: "repair", message: textOfBlocks(output.content) } as const }
      : {}),
    isError: output.isError === true,
  });
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

/** A return value as an output: an object with `content` is one already; other data becomes JSON text and `value`. */
export function toOutput(returned: unknown): ToolOutput {
  if (returned === undefined) return { content: "" };
  if (typeof returned === "string") return { content: returned };
  if (isOutput(returned)) return returned;
  if (isPlainObject(returned) && isBlocks(returned["content"])) {
    const broken = returned["content"].findIndex((block) => !isContentBlock(block));
    throw new ToolError("invalid_output", `The tool returned a broken content block (number ${broken + 1}).`);
  }
  return { content: [{ type: "json", value: jsonOf(returned) }], value: returned };
}

/** Whether a value has content that a model can read; the parts beside it are looked at where they are used. */
function isOutput(value: unknown): value is ToolOutput {
  if (!isPlainObject(value)) return false;
  const content = value["content"];
  return typeof content === "string" || (isBlocks(content) && content.every((block) => isContentBlock(block)));
}

/** Tell whether a value is a result: what an around or an after hook must give back. */
export function isResult(value: unknown): value is ToolResult {
  return (
    isPlainObject(value) &&
    typeof value["isError"] === "boolean" &&
    Array.isArray(value["content"]) &&
    value["content"].every(isContentBlock)
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
  return JSON.parse(text) as Json;
}

function isBlocks(content: unknown): content is readonly Record<string, unknown>[] {
  return Array.isArray(content) && content.every((block) => isPlainObject(block) && typeof block["type"] === "string");
}

function isContentBlock(block: unknown): boolean {
  if (!isPlainObject(block)) return false;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "image":
    case "file":
      return typeof block["data"] === "string" && typeof block["mimeType"] === "string";
    case "json":
      return block["value"] !== undefined;
    case "artifact":
      return isPlainObject(block["ref"]) && typeof block["preview"] === "string";
    default:
      return false;
  }
}

function textOfBlocks(content: string | readonly ContentBlock[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
