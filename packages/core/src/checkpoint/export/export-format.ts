/**
 * Text format of a thread export: one JSON object per line. The first line is a header with the format, its version
 * and the graph, then a single line per row; the last line has the row count and the SHA-256 of all previous lines.
 *
 * The hash detects accidental changes only: an attacker can compute a new hash. Import a thread only from sources
 * trusted like a store file.
 */
import { createSha256 } from "../../base/sha256.ts";

export const exportFormat = "statewright.thread";
export const exportVersion = 1;

/** Row count and hash of the lines of a text. */
export interface LineSummary {
  /** Adds text in order; a piece may contain several lines, and a line may have several pieces. */
  add(text: string): void;
  /** Creates the last line of the text. */
  createLastLine(): string;
}

export function createLineSummary(): LineSummary {
  const hash = createSha256();
  const encoder = new TextEncoder();
  let rows = 0;
  return {
    add: (text) => {
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) rows += 1;
      hash.add(encoder.encode(text));
    },
    createLastLine: () => `${JSON.stringify({ row: "end", rows, sha256: hash.finish() })}\n`,
  };
}
