/** Suggestions for a path without a file: files with similar names, and the nearest existing folder. */
import { type Dirent, existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { StatewrightError } from "@statewright/core";
import { listNames } from "../rows/list-names.ts";

/** Maximum number of suggested files. */
const maxSuggestions = 5;

/** Maximum number of folders in which a file is searched. */
const maxSearchedFolders = 200;

/** Files that stores create beside a database. */
const companion = /-(?:wal|shm|journal|owner-\d+|reserve-\d+|partial-[\d-]+)$/;

/** Throws `store_missing` unless a file exists at the path. */
export function refuseMissingFile(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === false) return;
  const isFolder = found !== undefined;
  const folder = isFolder ? path : findExistingFolder(dirname(path));
  const near = isFolder ? listDatabases(path) : listSimilarFiles(folder, basename(path));
  const hasFolder = isFolder || folder === dirname(path);
  throw new StatewrightError("store_missing", {
    what: isFolder
      ? `"${path}" is a folder, not a database file`
      : hasFolder
        ? `there is no file "${path}"`
        : `there is no folder "${dirname(path)}", and so no file "${path}"; the nearest existing folder is "${folder}"`,
    next: near.length === 0 ? "Correct the path" : `Correct the path; near files: ${near.join(", ")}`,
    details: { path, folder, near },
  });
}

/** Throws `store_failed` for a new file whose folder does not exist. */
export function refuseMissingFolder(path: string): void {
  const folder = findExistingFolder(dirname(path));
  if (folder === dirname(path)) return;
  throw new StatewrightError("store_failed", {
    what: `the folder "${dirname(path)}" does not exist; the nearest existing folder is "${folder}"`,
    next: "Create the folder, or correct the path",
    details: { path, folder },
  });
}

function findExistingFolder(folder: string): string {
  const parent = dirname(folder);
  return parent === folder || statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
    ? folder
    : findExistingFolder(parent);
}

/**
 * Lists files whose names differ from a name in few characters, or in the extension of a database, most similar first;
 * without such files those of this name in the folders below, or the databases of the folder.
 */
function listSimilarFiles(folder: string, name: string): readonly string[] {
  const limit = Math.max(3, Math.floor(name.replace(databaseExtension, "").length / 3));
  const similar = listFiles(folder)
    .map((file) => ({ file, distance: measureNameDistance(file.toLowerCase(), name.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .sort((left, right) => left.distance - right.distance || (left.file < right.file ? -1 : 1))
    .slice(0, maxSuggestions)
    .map(({ file }) => join(folder, file));
  if (similar.length > 0) return similar;
  const below = listBelow(folder, name);
  return below.length > 0 ? below : listDatabases(folder);
}

/** Lists the files of a name in the folders directly below a folder: another folder was meant. */
function listBelow(folder: string, name: string): readonly string[] {
  return listEntries(folder)
    .filter((entry) => entry.isDirectory())
    .slice(0, maxSearchedFolders)
    .map((entry) => join(folder, entry.name, name))
    .filter((path) => existsSync(path))
    .sort()
    .slice(0, maxSuggestions);
}

const databaseExtension = /\.(?:db|db3|sqlite|sqlite3)$/i;

/** Number of different characters; another extension of a database counts as one. */
function measureNameDistance(left: string, right: string): number {
  const whole = measureDistance(left, right);
  if (!databaseExtension.test(left)) return whole;
  return Math.min(
    whole,
    1 + measureDistance(left.replace(databaseExtension, ""), right.replace(databaseExtension, "")),
  );
}

function listDatabases(folder: string): readonly string[] {
  return listFiles(folder)
    .filter((file) => databaseExtension.test(file))
    .sort()
    .slice(0, maxSuggestions)
    .map((file) => join(folder, file));
}

function listFiles(folder: string): readonly string[] {
  return listEntries(folder).flatMap((entry) =>
    entry.isDirectory() || companion.test(entry.name) ? [] : [entry.name],
  );
}

/** Lists the entries of a folder; empty for an unreadable folder. */
function listEntries(folder: string): readonly Dirent[] {
  return listNames(folder).length === 0 ? [] : readdirSync(folder, { withFileTypes: true });
}

/** Number of characters to insert, remove or replace between two texts. */
function measureDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (const [index, character] of [...left].entries()) {
    const next = [index + 1];
    for (let column = 0; column < right.length; column++) {
      const replaced = (row[column] ?? 0) + (character === right[column] ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
