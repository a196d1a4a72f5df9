/** Output of the examples, and the text of a partial result. */
import type { ToolOutput } from "statewright";

/** Prints text as it is, including line breaks. */
export type Print = (text: string) => void;

/** Returns the text of a partial result, or undefined if its first block is not text. */
export function getUpdateText({ content }: ToolOutput): string | undefined {
  if (typeof content === "string") return content;
  const [first] = content;
  return first?.type === "text" ? first.text : undefined;
}
