/** Results of tools with every text in them cleaned: what the model reads, values, details, errors, and what is kept of them. */
import type { ArtifactDraft, ContentBlock, Json, ToolOutput, ToolResult } from "@statewright/core";

/** A result, cleaned whole. */
export function cleanResult(clean: Clean, result: ToolResult): ToolResult {
  const { error, drafts } = result;
  return {
    ...result,
    ...cleanOutput(clean, result),
    content: result.content.map((block) => cleanBlock(clean, block)),
    ...(error === undefined ? {} : { error: { ...error, message: clean(error.message) } }),
    ...(drafts === undefined ? {} : { drafts: drafts.map((draft) => cleanDraft(clean, draft)) }),
  };
}

/** What is left of a text. */
export type Clean = (text: string) => string;

/** What a tool gave, with every text that is shown of it cleaned. */
export function cleanOutput<Output extends Pick<ToolOutput, "content" | "value" | "details">>(
  clean: Clean,
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

/** A block with its text cleaned. */
export function cleanBlock(clean: Clean, block: ContentBlock): ContentBlock {
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

/** Bytes stay as they are, and text of which the tool says so. */
function cleanDraft(clean: Clean, draft: ArtifactDraft): ArtifactDraft {
  const { name, body, redact } = draft;
  return { ...draft, name: clean(name), body: typeof body === "string" && redact !== false ? clean(body) : body };
}

/** Data with every text in it cleaned, names of keys too. What is no plain data stays as it is. */
export function cleanData(clean: Clean, value: unknown): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((item) => cleanData(clean, item));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const names = cleanNames(clean, Object.keys(value));
  return Object.fromEntries(Object.values(value).map((item, index) => [names[index], cleanData(clean, item)]));
}

/** Names that become the same are numbered, so that no entry is lost. */
function cleanNames(clean: Clean, names: readonly string[]): readonly string[] {
  const taken = new Set(names.filter((name) => clean(name) === name));
  /** By name the number that is tried next: of thousands that become the same, none tries all before it. */
  const numbers = new Map<string, number>();
  return names.map((name) => {
    const cleaned = clean(name);
    if (cleaned === name) return name;
    let free = cleaned;
    let nth = numbers.get(cleaned) ?? 2;
    while (taken.has(free)) free = `${cleaned} (${nth++})`;
    numbers.set(cleaned, nth);
    taken.add(free);
    return free;
  });
}
