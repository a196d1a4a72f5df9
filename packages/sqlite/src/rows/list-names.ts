/** Best-effort listing of a folder. */
import { readdirSync } from "node:fs";

/** Lists the names in a folder; empty for an unreadable folder, where temporary files remain. */
export function listNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
