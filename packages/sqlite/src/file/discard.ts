/** Best-effort removal of files. */
import { rmSync } from "node:fs";

/** Removes a file, ignoring errors (e.g. a read-only disk). */
export function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A remaining file is removed by a later attempt.
  }
}
