/** The part of a page of the docs that a command writes: it stands between two marks. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** Put a text between the marks of a command; what people wrote around them stays. Throws where the page has no such marks. */
export function writeBetweenMarks(page: URL, command: string, text: string): void {
  const begin = `<!-- Written by ${command}: begin -->`;
  const end = `<!-- Written by ${command}: end -->`;
  const whole = existsSync(page) ? readFileSync(page, "utf8") : "";
  const [before, rest] = whole.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined)
    throw new Error(`${page.pathname} has no part that "${command}" writes`);
  writeFileSync(page, `${before}${begin}\n\n${text}\n\n${end}${after}`);
}
