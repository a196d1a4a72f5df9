/** Request and result types shared by both search implementations. */
import type { FileKind } from "@statewright/host";

/** Matching line. */
export interface SearchHit {
  /** Path relative to the workspace, with `/`. */
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Search request. */
export interface SearchRequest {
  readonly pattern: string;
  readonly glob?: string;
  /** Matches a path against `glob`; absent for a search in all files. */
  readonly matchesGlob?: ((path: string) => boolean) | undefined;
  /** Real path of the searched file or folder, relative to the workspace; empty for the workspace itself. */
  readonly searchPath: string;
  readonly kind: FileKind;
  readonly maxHits: number;
  readonly signal: AbortSignal;
  readonly onHit: (hit: SearchHit) => void;
  /** Called periodically with the number of searched files. */
  readonly onFiles: (count: number) => void;
}

/** Result of a search. */
export interface SearchReport {
  /** True when more lines match than `maxHits`. */
  readonly isTruncated: boolean;
  /** Number of files that could not be searched. */
  readonly skippedFiles: number;
}

/** Maximum characters of a shown line. */
const maxLineCharacters = 300;

/** Formats a line without its line end, truncated when long. */
export function formatLine(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (text.length <= maxLineCharacters) return text;
  const end = /[\uD800-\uDBFF]/.test(text[maxLineCharacters - 1] ?? "") ? maxLineCharacters - 1 : maxLineCharacters;
  return `${text.slice(0, end)} [… line truncated]`;
}
