/** Options of the SQLite store. */

import type { LongTermVectors, World } from "@statewright/core";
import { checkChoice, checkCount, checkFlag, invalidOption } from "@statewright/core/adapter";
import { type ArtifactBodies, longTermRules, type Ownership, storeRules } from "@statewright/core/store";
import type { Encryption } from "@statewright/store-kit";
import { driverNames } from "./driver/choose-driver.ts";
import type { DriverName } from "./driver/driver.ts";
import type { Durability } from "./file/durability.ts";

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /**
   * Durability after a power failure: `full` loses no acknowledged commit; `normal` may lose the last commits.
   * Default: `full`.
   */
  readonly durability?: Durability;
  /** World for scheduling commits and waits. Default: the system's. */
  readonly world?: World;
  /** Maximum size of the file in bytes; larger writes throw `store_full`. No limit by default. */
  readonly maxBytes?: number;
  /**
   * Allowed location of the file: a `local` disk, or `any` file system, including network file systems. Default:
   * `local`.
   */
  readonly fileSystem?: "local" | "any";
  /**
   * Encrypts the content of threads with keys of 32 bytes: the first of `keys` for a thread encrypts, all of them
   * decrypt. Word search is not available for encrypted items.
   */
  readonly encryption?: Encryption;
  /**
   * Opens an existing file for reading: no byte of the file or of its log changes, and each write throws
   * `store_read_only`. Works beside stores that write. Default: false.
   */
  readonly readOnly?: boolean;
  /** Throws `store_missing`, with the names of near files, instead of creating a file. Default: `readOnly`. */
  readonly mustExist?: boolean;
  /**
   * SQLite library: `better-sqlite3`, or `node:sqlite` of Node 24.15, Node 26 and newer. Default: the one with which
   * this process has the file open already, else `better-sqlite3`.
   */
  readonly driver?: DriverName | undefined;
  /**
   * Place of artifact bodies outside of the file, such as `folderArtifactBodies(path)`. Bodies are put before the commit
   * that names them, and swept when no artifact names them for a day. Default: in the file.
   */
  readonly artifactBodies?: ArtifactBodies;
  /**
   * Owner of the work on the threads: `store` for engines and callers, `orchestrator` for a system that delivers all
   * work with `deliver`. The first process that opens the file records it; another ownership throws `store_mixed`.
   * Ignored with `readOnly`. Default: `store`.
   */
  readonly ownership?: Ownership;
  /** Embedding of items in the long-term store, for similarity search. */
  readonly longTerm?: LongTermVectors;
}

/** Space for the tables of a new file, with a margin. */
const minFileBytes = 128 * 1024;

/** Throws `invalid_option` for an invalid path. */
export function checkPath(where: string, path: unknown): void {
  if (typeof path !== "string" || path.trim() === "" || path.includes("\0") || path.startsWith("file:"))
    throw invalidOption({
      where,
      option: "path",
      expected: "a file path",
      got: path,
      fix: 'Pass the path of a file, or ":memory:"',
    });
}

/** Throws `invalid_option` for an invalid path or option. */
export function checkOptions(path: string, options: SqliteStoreOptions): void {
  storeRules.checkKeys("sqliteStore", options, [
    "durability",
    "world",
    "maxBytes",
    "fileSystem",
    "encryption",
    "longTerm",
    "driver",
    "artifactBodies",
    "ownership",
    "readOnly",
    "mustExist",
  ]);
  checkPath("sqliteStore", path);
  const { durability = "full", maxBytes, fileSystem = "local", encryption, driver = "better-sqlite3" } = options;
  longTermRules.checkVectors("sqliteStore", options.longTerm);
  checkEncryption(encryption);
  checkBodies(options.artifactBodies);
  checkChoice("sqliteStore", { durability }, ["full", "normal"]);
  checkChoice("sqliteStore", { fileSystem }, ["local", "any"]);
  checkChoice("sqliteStore", { driver }, driverNames);
  checkChoice("sqliteStore", { ownership: options.ownership ?? "store" }, ["store", "orchestrator"]);
  checkExistence(path, options);
  checkCount("sqliteStore", { maxBytes }, minFileBytes);
}

function checkBodies(bodies: ArtifactBodies | undefined): void {
  if (bodies === undefined) return;
  for (const method of ["put", "read", "delete"] as const) {
    const found: unknown = bodies?.[method];
    if (typeof found !== "function")
      throw invalidOption({
        where: "sqliteStore",
        option: `artifactBodies.${method}`,
        expected: "a function",
        got: found,
        fix: "Pass folderArtifactBodies(path), or an object with put, read and delete",
      });
  }
}

function checkExistence(path: string, { readOnly = false, mustExist = readOnly }: SqliteStoreOptions): void {
  checkFlag("sqliteStore", { readOnly, mustExist });
  if (path.trim() === ":memory:" && (readOnly || mustExist))
    throw invalidOption({
      where: "sqliteStore",
      option: readOnly ? "readOnly" : "mustExist",
      expected: "absent for a store in memory",
      found: "true",
      fix: "Pass the path of a file",
    });
}

function checkEncryption(encryption: Encryption | undefined): void {
  if (encryption === undefined) return;
  const keys: unknown = encryption?.keys;
  if (typeof keys !== "function")
    throw invalidOption({
      where: "sqliteStore",
      option: "encryption.keys",
      expected: "a function",
      got: keys,
      fix: "Pass encryption: { keys: (thread) => [{ id, key }] }",
    });
  const { longTerm } = encryption;
  if (longTerm !== undefined && typeof longTerm !== "function")
    throw invalidOption({
      where: "sqliteStore",
      option: "encryption.longTerm",
      expected: "a function",
      got: longTerm,
      fix: "Pass longTerm: (namespace) => [{ id, key }]",
    });
}
