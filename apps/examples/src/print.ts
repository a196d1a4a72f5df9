/** Where examples write, and how a partial result reads as one line. */
import type { ToolOutput } from "statewright";

/** Takes text as it comes; line ends are in it. */
export type Print = (text: string) => void;

/** The text that a partial result begins with; undefined when it begins with something else. */
export function textOfUpdate({ content }: ToolOutput): string | undefined {
  if (typeof content === "string") return content;
  const [first] = content;
  return first?.type === "text" ? first.text : undefined;
}
