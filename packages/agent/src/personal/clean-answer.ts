/** Answers that are JSON: what stands in their texts is found behind the escapes in which JSON writes it. */
import { type Clean, cleanData } from "../output/clean-result.ts";

const openings: ReadonlySet<string> = new Set(["", "```", "```json"]);
const closings: ReadonlySet<string> = new Set(["", "```"]);

/** Clean an answer; one that is JSON, alone or between fences, by the values that it says. */
export function cleanAnswer(clean: Clean, text: string): string {
  const start = text.search(/[{[]/);
  const end = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]")) + 1;
  const before = text.slice(0, Math.max(start, 0));
  const after = text.slice(end);
  if (start < 0 || end < start || !openings.has(before.trim()) || !closings.has(after.trim())) return clean(text);
  try {
    const given: unknown = JSON.parse(text.slice(start, end));
    const cleaned = JSON.stringify(cleanData(clean, given));
    return clean(cleaned === JSON.stringify(given) ? text : `${before}${cleaned}${after}`);
  } catch {
    return clean(text);
  }
}

/**
 * Whether a text that comes in pieces may be JSON, or JSON between fences: `undefined` until it has begun. What it says
 * is known when it is whole.
 */
export function beginsAsJson(text: string): boolean | undefined {
  const begun = text.trimStart();
  if (begun === "" || begun === "`" || begun === "``") return undefined;
  return begun.startsWith("{") || begun.startsWith("[") || begun.startsWith("```");
}
