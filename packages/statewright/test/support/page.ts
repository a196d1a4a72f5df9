/** Program output quoted in a page of the docs: blocks indented by four spaces, and Mermaid diagrams. */
import { readFileSync } from "node:fs";

/** Returns the quoted output of a page in order, as one text; blank lines count only inside a block. */
export function printedOn(page: string): string {
  const text = readFileSync(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");
  const blocks = text.matchAll(/^```(\w*)\n([\s\S]*?)^```$|^(?: {4}.*\n)(?:(?: {4}.*)?\n)*/gm);
  const printed = [...blocks].flatMap(([block, language, fenced = ""]) => {
    if (language !== undefined) return language === "mermaid" ? [fenced] : [];
    return [`${block.replaceAll(/^ {4}/gm, "").trimEnd()}\n`];
  });
  return printed.join("");
}
