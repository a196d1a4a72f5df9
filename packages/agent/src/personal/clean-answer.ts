/** Redacts JSON answers by their decoded values, because JSON escapes can hide personal data. */
import { cleanData, type TextTransform } from "../output/clean-result.ts";

const openings: ReadonlySet<string> = new Set(["", "```", "```json"]);
const closings: ReadonlySet<string> = new Set(["", "```"]);

/** Cleans an answer; a JSON answer, plain or in a code fence, is cleaned by its values. */
export function cleanAnswer(clean: TextTransform, text: string): string {
  const start = text.search(/[{[]/);
  const end = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]")) + 1;
  const before = text.slice(0, Math.max(start, 0));
  const after = text.slice(end);
  if (start < 0 || end < start || !openings.has(before.trim()) || !closings.has(after.trim())) return clean(text);
  try {
    const value: unknown = JSON.parse(text.slice(start, end));
    const cleaned = JSON.stringify(cleanData(clean, value));
    return clean(cleaned === JSON.stringify(value) ? text : `${before}${cleaned}${after}`);
  } catch {
    return clean(text);
  }
}

/**
 * Returns whether a streaming text may be JSON, plain or in a code fence; undefined before the first characters
 * decide. Only the complete text can be cleaned.
 */
export function isLikelyJson(text: string): boolean | undefined {
  const trimmed = text.trimStart();
  if (trimmed === "" || trimmed === "`" || trimmed === "``") return undefined;
  return trimmed.startsWith("{") || trimmed.startsWith("[") || trimmed.startsWith("```");
}
