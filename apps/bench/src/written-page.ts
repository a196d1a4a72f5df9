/** Generated part of a docs page, between two markers. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/**
 * Replaces the text between the markers of a command; the rest of the page is unchanged. Throws for a page without
 * the markers.
 */
export function writeBetweenMarks(page: URL, command: string, text: string): void {
  const begin = `<!-- Written by ${command}: begin -->`;
  const end = `<!-- Written by ${command}: end -->`;
  const pageText = existsSync(page) ? readFileSync(page, "utf8") : "";
  const [before, rest] = pageText.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined)
    throw new Error(`${page.pathname}: expected the markers of "${command}", got none. Add ${begin} and ${end}.`);
  writeFileSync(page, `${before}${begin}\n\n${text}\n\n${end}${after}`);
}
