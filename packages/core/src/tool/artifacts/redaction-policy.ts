/** A tool's own redaction: what it masks in its arguments, and what it takes out of what it says. */

import { renamedKeys } from "../../base/dedupe-keys.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepestLevel, describeValue, isPlainObject, type Json } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { ContentBlock } from "../../model/message.ts";
import type { ToolOutput, ToolResult } from "../result.ts";

/** Declared with a tool, as `safety.redact`. */
export interface RedactionPolicy {
  /**
   * Paths in the arguments, such as `card.number`, that events and questions about the call do not show. The model's own
   * message keeps what the model wrote.
   */
  readonly args?: readonly string[];
  /**
   * The text without what nobody may see. It is given whole texts: of content, errors, progress and partial results,
   * each text in data, and the text of artifacts before they are kept.
   */
  readonly result?: (text: string) => string;
}

/** What stands in the place of an argument. */
const masked = "[redacted]";

/** Throws `invalid_tool` for a policy that is none. */
export function checkRedaction(owner: string, policy: unknown): void {
  if (policy === undefined) return;
  checkOptions(`the redaction of ${owner}`, policy, ["args", "result"], "invalid_tool");
  const { args, result } = policy as { readonly args?: unknown; readonly result?: unknown };
  const arePaths = args === undefined || (Array.isArray(args) && args.every((path) => typeof path === "string"));
  if (arePaths && (result === undefined || typeof result === "function")) return;
  throw new StatewrightError("invalid_tool", {
    what: `the redaction of ${owner} has ${arePaths ? `${describeValue(result)} as result` : `${describeValue(args)} as args`}`,
    next: "Give { args: [paths], result: (text) => text }",
  });
}

/** Arguments as they may be shown; those themselves where nothing is masked. */
export function maskedArgs(policy: RedactionPolicy | undefined, args: Json): Json {
  return (policy?.args ?? []).reduce((shown, path) => maskedAt(shown, path.split(".")), args);
}

function maskedAt(value: Json, [first, ...rest]: readonly string[]): Json {
  if (first === undefined) return masked;
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return items.map((item, index) => (first === "*" || first === String(index) ? maskedAt(item, rest) : item));
  }
  if (!isPlainObject(value)) return value;
  const entries: readonly (readonly [string, Json])[] = Object.entries(value as Readonly<Record<string, Json>>);
  return Object.fromEntries(
    entries.map(([key, item]) => [key, first === "*" || first === key ? maskedAt(item, rest) : item]),
  );
}

/** A result with nothing left of what the policy takes out: in its content, value, details and error. */
export function redactedResult(redact: (text: string) => string, result: ToolResult): ToolResult {
  const { error, value, details } = result;
  return {
    ...result,
    content: result.content.map((block) => redactedBlock(redact, block)),
    ...(value === undefined ? {} : { value: redactedData(redact, value, 0) }),
    ...(details === undefined ? {} : { details: redactedData(redact, details, 0) }),
    ...(error === undefined ? {} : { error: { ...error, message: textFrom(redact, error.message) } }),
  };
}

/** A partial result, as {@link redactedResult}. */
export function redactedPartial(redact: (text: string) => string, partial: ToolOutput): ToolOutput {
  const { content, value, details } = partial;
  return {
    ...partial,
    content:
      typeof content === "string" ? textFrom(redact, content) : content.map((block) => redactedBlock(redact, block)),
    ...(value === undefined ? {} : { value: redactedData(redact, value, 0) }),
    ...(details === undefined ? {} : { details: redactedData(redact, details, 0) }),
  };
}

/** What the policy made of a text. Throws where that is no text. */
export function textFrom(redact: (text: string) => string, text: string): string {
  const redacted: unknown = redact(text);
  if (typeof redacted === "string") return redacted;
  throw new TypeError(`the redaction gave ${describeValue(redacted)} where a text is due`);
}

function redactedBlock(redact: (text: string) => string, block: ContentBlock): ContentBlock {
  switch (block.type) {
    case "text":
      return { ...block, text: textFrom(redact, block.text) };
    case "artifact":
      return { ...block, preview: textFrom(redact, block.preview) };
    case "json":
      return redactedJson(redact, redactedData(redact, block.value, 0));
    default:
      return block;
  }
}

/** Each text of the data was redacted; the model reads the whole as JSON, which is looked at too. */
function redactedJson(redact: (text: string) => string, value: Json): ContentBlock {
  const text = JSON.stringify(value);
  const redacted = textFrom(redact, text);
  return redacted === text ? { type: "json", value } : { type: "text", text: redacted };
}

function redactedData<Value>(redact: (text: string) => string, value: Value, level: number): Value {
  if (typeof value === "string") return textFrom(redact, value) as Value & string;
  if (typeof value !== "object" || value === null || level > deepestLevel) return value;
  if (Array.isArray(value))
    return value.map((item: unknown) => redactedData(redact, item, level + 1)) as Value & unknown[];
  if (!isPlainObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, redactedData(redact, item, level + 1)] as const);
  return Object.fromEntries(renamedKeys(entries, (key) => textFrom(redact, key))) as Value & Record<string, unknown>;
}
