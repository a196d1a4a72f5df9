/** Artifact bodies as files of a folder. */
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import process from "node:process";
import { threadId } from "node:worker_threads";
import { invalidOption } from "@statewright/core/adapter";
import type { ArtifactBodies } from "@statewright/core/store";

let counter = 0;

/**
 * Stores artifact bodies in a folder, one file per body, for the option `artifactBodies` of `sqliteStore`. The folder
 * belongs to one database file: another store would sweep its bodies. Each body and its name are on the disk before
 * the commit that names the body. Throws `invalid_option` for an empty path.
 *
 * @param path Folder; created with the first body.
 * @example
 * const store = sqliteStore("agent.db", { artifactBodies: folderArtifactBodies("agent-artifacts") });
 */
export function folderArtifactBodies(path: string): ArtifactBodies {
  if (typeof path !== "string" || path.trim() === "")
    throw invalidOption({ where: "folderArtifactBodies", option: "path", expected: "the path of a folder", got: path });
  const root = resolve(path);
  const prepare = createFolderPreparation(root);
  return {
    put: async (key, body) => {
      const file = toFile(root, key);
      await prepare(dirname(file));
      await putFile(file, body);
    },
    read: (key) => readFile(toFile(root, key)).catch(toUndefined),
    delete: async (key) => {
      const file = toFile(root, key);
      await rm(file, { force: true });
      for (const partial of await listPartialFiles(file)) await rm(partial, { force: true });
      await syncFolder(dirname(file)).catch(toUndefined);
    },
  };
}

/** Returns the file of a body; 256 folders keep each of them small. Throws for another text than a key. */
function toFile(root: string, key: string): string {
  if (!/^[0-9a-f]{64}$/.test(key)) throw new TypeError(`folderArtifactBodies: expected 64 hex digits, got "${key}"`);
  return join(root, key.slice(0, 2), key.slice(2));
}

/** Writes the file under a temporary name, and syncs the file and its folder around the rename. */
async function putFile(file: string, body: Uint8Array): Promise<void> {
  const tempFile = `${file}-partial-${process.pid}-${threadId}-${++counter}`;
  try {
    const handle = await open(tempFile, "wx");
    try {
      await handle.writeFile(body);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(tempFile, file);
  } catch (thrown) {
    await rm(tempFile, { force: true });
    throw thrown;
  }
  await syncFolder(dirname(file));
}

/** Lists the files that killed processes left of a body. */
async function listPartialFiles(file: string): Promise<readonly string[]> {
  const folder = dirname(file);
  const names = (await readdir(folder).catch(toUndefined)) ?? [];
  return names.filter((name) => name.startsWith(`${basename(file)}-partial-`)).map((name) => join(folder, name));
}

/** Returns a function that creates a folder below the root once, and resolves when its name is on the disk. */
function createFolderPreparation(root: string): (folder: string) => Promise<void> {
  const prepared = new Map<string, Promise<void>>();
  const create = async (folder: string): Promise<void> => {
    const first = await mkdir(folder, { recursive: true });
    // Another call may have created a parent, and not synced its name yet.
    for (const parent of [root, dirname(root)]) await syncFolder(parent);
    if (first === undefined || first.length >= root.length) return;
    for (let parent = dirname(root); parent.length >= first.length; parent = dirname(parent))
      await syncFolder(dirname(parent));
  };
  return async (folder) => {
    const creation = prepared.get(folder) ?? create(folder);
    prepared.set(folder, creation);
    try {
      await creation;
    } catch (thrown) {
      prepared.delete(folder);
      throw thrown;
    }
  };
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder; its file system keeps names by a journal.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function toUndefined(thrown: unknown): undefined {
  if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
  throw thrown;
}
