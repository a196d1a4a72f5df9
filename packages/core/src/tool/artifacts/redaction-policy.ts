/** Redaction policy of a tool: redacted arguments and a redaction function for its output. */

import { dedupeKeys } from "../../base/dedupe-keys.ts";
import { StatewrightError } from "../../base/errors.ts";
import { describeValue, isPlainObject, type Json, maxDepth } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { ContentBlock } from "../../model/message.ts";
import type { ToolOutput, ToolResult } from "../result.ts";

/** Declared with a tool, as `safety.redact`. */
export interface RedactionPolicy {
  /**
   * Paths in the arguments, such as `card.number`, that events and interrupts of the call hide. The model's own
   * message stays unchanged.
   */
  readonly args?: readonly string[];
  /**
   * Redacts a text. Receives complete texts: of content, errors, progress and partial results, each string in data,
   * and the text of artifacts before storage.
   */
  readonly result?: (text: string) => string;
}

/** Replacement of a hidden argument. */
const redactedArg = "[redacted]";

/** Throws `invalid_tool` for an invalid policy. */
export function checkRedaction(owner: string, policy: unknown): void {
  if (policy === undefined) return;
  checkOptions(`the redaction of ${owner}`, policy, ["args", "result"], { code: "invalid_tool" });
  const { args, result } = policy as { readonly args?: unknown; readonly result?: unknown };
  const arePaths = args === undefined || (Array.isArray(args) && args.every((path) => typeof path === "string"));
  if (arePaths && (result === undefined || typeof result === "function")) return;
  throw new StatewrightError("invalid_tool", {
    what: `the redaction of ${owner} has ${arePaths ? `${describeValue(result)} as result` : `${describeValue(args)} as args`}`,
    next: "Use { args: [paths], result: (text) => text }",
  });
}

/** Redacts arguments for events and interrupts; returns the same arguments without a match. */
export function redactArgs(policy: RedactionPolicy | undefined, args: Json): Json {
  return (policy?.args ?? []).reduce((redacted, path) => redactPath(redacted, path.split(".")), args);
}

function redactPath(value: Json, [first, ...rest]: readonly string[]): Json {
  if (first === undefined) return redactedArg;
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return items.map((item, index) => (first === "*" || first === String(index) ? redactPath(item, rest) : item));
  }
  if (!isPlainObject(value)) return value;
  const entries: readonly (readonly [string, Json])[] = Object.entries(value as Readonly<Record<string, Json>>);
  return Object.fromEntries(
    entries.map(([key, item]) => [key, first === "*" || first === key ? redactPath(item, rest) : item]),
  );
}

/** Applies the policy to the content, value, details and error of a result. */
export function redactResult(redact: (text: string) => string, result: ToolResult): ToolResult {
  const { error, value, details } = result;
  return {
    ...result,
    content: result.content.map((block) => redactBlock(redact, block)),
    ...(value === undefined ? {} : { value: redactData(redact, value, 0) }),
    ...(details === undefined ? {} : { details: redactData(redact, details, 0) }),
    ...(error === undefined ? {} : { error: { ...error, message: applyRedaction(redact, error.message) } }),
  };
}

/** Applies the policy to a partial result. */
export function redactPartialResult(redact: (text: string) => string, partial: ToolOutput): ToolOutput {
  const { content, value, details } = partial;
  return {
    ...partial,
    content:
      typeof content === "string"
        ? applyRedaction(redact, content)
        : content.map((block) => redactBlock(redact, block)),
    ...(value === undefined ? {} : { value: redactData(redact, value, 0) }),
    ...(details === undefined ? {} : { details: redactData(redact, details, 0) }),
  };
}

/** Applies the redaction function to a text. Throws a TypeError when the function does not return a string. */
export function applyRedaction(redact: (text: string) => string, text: string): string {
  const redacted: unknown = redact(text);
  if (typeof redacted === "string") return redacted;
  throw new TypeError(`redact.result: expected a string, got ${describeValue(redacted)}`);
}

function redactBlock(redact: (text: string) => string, block: ContentBlock): ContentBlock {
  switch (block.type) {
    case "text":
      return { ...block, text: applyRedaction(redact, block.text) };
    case "artifact":
      return { ...block, preview: applyRedaction(redact, block.preview) };
    case "json":
      return redactJson(redact, redactData(redact, block.value, 0));
    default:
      return block;
  }
}

/** Redacts the serialized JSON too, because the model reads the JSON text; strings are redacted before. */
function redactJson(redact: (text: string) => string, value: Json): ContentBlock {
  const text = JSON.stringify(value);
  const redacted = applyRedaction(redact, text);
  return redacted === text ? { type: "json", value } : { type: "text", text: redacted };
}

function redactData<Value>(redact: (text: string) => string, value: Value, level: number): Value {
  if (typeof value === "string") return applyRedaction(redact, value) as Value & string;
  if (typeof value !== "object" || value === null || level > maxDepth) return value;
  if (Array.isArray(value))
    return value.map((item: unknown) => redactData(redact, item, level + 1)) as Value & unknown[];
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, redactData(redact, item, level + 1)] as const);
  return Object.fromEntries(dedupeKeys(entries, (key) => applyRedaction(redact, key))) as Value &
    Record<string, unknown>;
}
