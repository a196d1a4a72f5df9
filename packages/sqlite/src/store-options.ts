/** Options of the SQLite store. */

import { type LongTermVectors, StatewrightError, type World } from "@statewright/core";
import { longTermRules, storeRules } from "@statewright/core/store";
import type { Encryption } from "./encryption/cipher.ts";
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
  /** Embedding of items in the long-term store, for similarity search. */
  readonly longTerm?: LongTermVectors;
}

/** Space for the tables of a new file, with a margin. */
const minFileBytes = 128 * 1024;

/** Throws `invalid_option` for an invalid path or option. */
export function checkOptions(path: string, options: SqliteStoreOptions): void {
  storeRules.checkKeys("sqliteStore", options, [
    "durability",
    "world",
    "maxBytes",
    "fileSystem",
    "encryption",
    "longTerm",
  ]);
  if (typeof path !== "string" || path.trim() === "" || path.includes("\0") || path.startsWith("file:"))
    throw createOptionError(
      `\`path\` must be a file path, got ${formatValue(path)}`,
      'Pass the path of a file, or ":memory:"',
    );
  const { durability = "full", maxBytes, fileSystem = "local", encryption } = options;
  longTermRules.checkVectors("sqliteStore", options.longTerm);
  checkEncryption(encryption);
  if (durability !== "full" && durability !== "normal")
    throw createOptionError(
      `\`durability\` must be "full" or "normal", got ${formatValue(durability)}`,
      'Use "full" or "normal"',
    );
  if (fileSystem !== "local" && fileSystem !== "any")
    throw createOptionError(
      `\`fileSystem\` must be "local" or "any", got ${formatValue(fileSystem)}`,
      'Use "local" or "any"',
    );
  if (maxBytes !== undefined && !(Number.isInteger(maxBytes) && maxBytes >= minFileBytes))
    throw createOptionError(
      `\`maxBytes\` must be an integer ≥ ${minFileBytes}, got ${formatValue(maxBytes)}`,
      `Pass an integer of at least ${minFileBytes}`,
    );
}

function checkEncryption(encryption: Encryption | undefined): void {
  if (encryption !== undefined && typeof encryption?.keys !== "function")
    throw createOptionError(
      "`encryption.keys` must be a function",
      "Pass encryption: { keys: (thread) => [{ id, key }] }",
    );
  if (encryption?.longTerm !== undefined && typeof encryption.longTerm !== "function")
    throw createOptionError("`encryption.longTerm` must be a function", "Pass longTerm: (namespace) => [{ id, key }]");
}

/** Formats any value for a message, because callers without types can pass anything. */
function formatValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

/** Creates the error for an invalid option of `sqliteStore`. */
export function createOptionError(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `sqliteStore: ${what}`, next });
}
