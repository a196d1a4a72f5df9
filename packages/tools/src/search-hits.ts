/** What a search looks for and finds, whoever does it. */
import type { FileKind } from "@statewright/host";

/** A line that was found. */
export interface SearchHit {
  /** From the workspace, with `/`. */
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** What to look for, and where. */
export interface SearchRequest {
  readonly pattern: string;
  readonly glob?: string;
  /** Where to look, as it really is; empty for the workspace itself. */
  readonly place: string;
  readonly kind: FileKind;
  readonly maxHits: number;
  readonly signal: AbortSignal;
  readonly onHit: (hit: SearchHit) => void;
  /** Called now and then with how many files were searched. */
  readonly onFiles: (count: number) => void;
}

/** How a search ended. */
export interface SearchReport {
  /** Whether there are more lines than were asked for. */
  readonly isCut: boolean;
  /** Files that were not searched though they should have been. */
  readonly unread: number;
}

/** How much of a line is shown, in characters. */
const mostLine = 300;

/** A line as it is shown: without its end, and cut when it is long. */
export function shownLine(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (text.length <= mostLine) return text;
  const end = /[\uD800-\uDBFF]/.test(text[mostLine - 1] ?? "") ? mostLine - 1 : mostLine;
  return `${text.slice(0, end)} [… the line goes on]`;
}
