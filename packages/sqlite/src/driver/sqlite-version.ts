/** Versions of SQLite. */

/** Older versions have a bug in their write-ahead log. */
export const oldestSqlite = "3.51.3";

/** Compares two versions: negative if the first is older, 0 if equal. */
export function compareVersions(versionA: string, versionB: string): number {
  const [left, right] = [versionA.split(".").map(Number), versionB.split(".").map(Number)];
  for (const [index, part] of left.entries()) if (part !== (right[index] ?? 0)) return part - (right[index] ?? 0);
  return 0;
}
