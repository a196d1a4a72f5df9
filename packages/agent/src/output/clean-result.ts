/**
 * Applies a text transformation to all texts of a tool result: content, values, details, errors and artifact drafts.
 */
import type { ArtifactDraft, ContentBlock, Json, ToolOutput, ToolResult } from "@statewright/core";

/** Cleans a whole tool result. */
export function cleanResult(clean: TextTransform, result: ToolResult): ToolResult {
  const { error, drafts } = result;
  return {
    ...result,
    ...cleanOutput(clean, result),
    content: result.content.map((block) => cleanBlock(clean, block)),
    ...(error === undefined ? {} : { error: { ...error, message: clean(error.message) } }),
    ...(drafts === undefined ? {} : { drafts: drafts.map((draft) => cleanDraft(clean, draft)) }),
  };
}

/** Transformation of a text, such as redaction. */
export type TextTransform = (text: string) => string;

/** Cleans content, value and details of a tool output. */
export function cleanOutput<Output extends Pick<ToolOutput, "content" | "value" | "details">>(
  clean: TextTransform,
  output: Output,
): Output {
  const { content, value, details } = output;
  return {
    ...output,
    content: typeof content === "string" ? clean(content) : content.map((block) => cleanBlock(clean, block)),
    ...(value === undefined ? {} : { value: cleanData(clean, value) }),
    ...(details === undefined ? {} : { details: cleanData(clean, details) }),
  };
}

/** Cleans the text of a content block. */
export function cleanBlock(clean: TextTransform, block: ContentBlock): ContentBlock {
  switch (block.type) {
    case "text":
      return { ...block, text: clean(block.text) };
    case "json":
      return { ...block, value: cleanData(clean, block.value) as Json };
    case "artifact":
      return { ...block, preview: clean(block.preview) };
    default:
      return block;
  }
}

/** Cleans an artifact draft. Binary bodies, and text bodies with `redact: false`, stay unchanged. */
function cleanDraft(clean: TextTransform, draft: ArtifactDraft): ArtifactDraft {
  const { name, body, redact } = draft;
  return { ...draft, name: clean(name), body: typeof body === "string" && redact !== false ? clean(body) : body };
}

/** Cleans all strings in plain data, including object keys. Other values, such as class instances, stay unchanged. */
export function cleanData(clean: TextTransform, value: unknown): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((item) => cleanData(clean, item));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const names = cleanNames(clean, Object.keys(value));
  return Object.fromEntries(Object.values(value).map((item, index) => [names[index], cleanData(clean, item)]));
}

/** Cleans object keys. Numbers keys that become equal, so that no entry is lost. */
function cleanNames(clean: TextTransform, names: readonly string[]): readonly string[] {
  const usedNames = new Set(names.filter((name) => clean(name) === name));
  /** Next number to try per cleaned name; avoids quadratic search over thousands of equal names. */
  const nextNumbers = new Map<string, number>();
  return names.map((name) => {
    const cleaned = clean(name);
    if (cleaned === name) return name;
    let uniqueName = cleaned;
    let suffix = nextNumbers.get(cleaned) ?? 2;
    while (usedNames.has(uniqueName)) uniqueName = `${cleaned} (${suffix++})`;
    nextNumbers.set(cleaned, suffix);
    usedNames.add(uniqueName);
    return uniqueName;
  });
}
