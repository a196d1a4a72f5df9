/** Removing a file that nobody needs any more. */
import { rmSync } from "node:fs";

/** Remove a file where that is possible: on a disk that takes no more changes it stays, and harms nobody. */
export function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // What could not be removed is tried again by whoever comes upon it next.
  }
}
