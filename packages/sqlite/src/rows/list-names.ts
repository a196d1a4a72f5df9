/** What lies in a folder, as far as it can be listed. */
import { readdirSync } from "node:fs";

/** The names in a folder; none of one that may be written and not listed, in which leftovers stay. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
