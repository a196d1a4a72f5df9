/** One name for a file, whatever path leads to it: what two writers of the same file wait for. */
import { realPlaceInside } from "@statewright/host";

/** The lock of a file below a root; none for a path that leads out, which is refused anyway. */
export async function fileLock(root: string, path: string): Promise<readonly string[]> {
  const place = await realPlaceInside(root, path);
  return place === undefined ? [] : [`file:${place}`];
}
