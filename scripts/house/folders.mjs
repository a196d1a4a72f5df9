// Counts the files of folders.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { listFolders } from "./sources.mjs";

const GROUPS = [
  ["packages", "src"],
  ["packages", "test"],
  ["apps", "src"],
];

/** Lists the folders in packages/*\/src, packages/*\/test and apps/*\/src with the files directly in them, the largest first. */
export function listFolderSizes(root) {
  const tops = GROUPS.flatMap(([group, part]) =>
    listFolders(join(root, group))
      .filter((name) => listFolders(join(root, group, name)).includes(part))
      .map((name) => `${group}/${name}/${part}`),
  );
  return tops.flatMap((top) => countFiles(root, top)).sort((one, other) => other.files - one.files);
}

function countFiles(root, path) {
  const files = readdirSync(join(root, path), { withFileTypes: true }).filter((entry) => entry.isFile()).length;
  return [{ path, files }, ...listFolders(join(root, path)).flatMap((name) => countFiles(root, `${path}/${name}`))];
}
