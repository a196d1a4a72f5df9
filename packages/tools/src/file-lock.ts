/** Lock keys of files: a key per file, independent of the path. */
import { resolveRealPathInside } from "@statewright/host";

/**
 * Returns the lock keys of a file below a root; empty for a path outside the root, which the file operation rejects.
 */
export async function getFileLock(root: string, path: string): Promise<readonly string[]> {
  const realPath = await resolveRealPathInside(root, path);
  return realPath === undefined ? [] : [`file:${realPath}`];
}
