/** Result codes of SQLite in errors of each driver, as names such as `SQLITE_BUSY`. */

const primaryCodes: readonly string[] = [
  "OK",
  "ERROR",
  "INTERNAL",
  "PERM",
  "ABORT",
  "BUSY",
  "LOCKED",
  "NOMEM",
  "READONLY",
  "INTERRUPT",
  "IOERR",
  "CORRUPT",
  "NOTFOUND",
  "FULL",
  "CANTOPEN",
  "PROTOCOL",
  "EMPTY",
  "SCHEMA",
  "TOOBIG",
  "CONSTRAINT",
  "MISMATCH",
  "MISUSE",
  "NOLFS",
  "AUTH",
  "FORMAT",
  "RANGE",
  "NOTADB",
];

/** Extended codes that the store distinguishes: the primary code is the low byte. */
const extendedCodes: ReadonlyMap<number, string> = new Map([
  [778, "SQLITE_IOERR_WRITE"],
  [1034, "SQLITE_IOERR_FSYNC"],
  [4874, "SQLITE_IOERR_SHMSIZE"],
  [264, "SQLITE_READONLY_RECOVERY"],
  [520, "SQLITE_READONLY_CANTLOCK"],
  [776, "SQLITE_READONLY_ROLLBACK"],
  [1288, "SQLITE_READONLY_CANTINIT"],
  [1544, "SQLITE_READONLY_DIRECTORY"],
  [261, "SQLITE_BUSY_RECOVERY"],
  [517, "SQLITE_BUSY_SNAPSHOT"],
]);

/** Returns the code of an error: of SQLite by name, else of the system (`ENOSPC`); `""` without a code. */
export function getErrorCode(thrown: unknown): string {
  if (!(thrown instanceof Error) || !("code" in thrown)) return "";
  if (thrown.code !== "ERR_SQLITE_ERROR" || !("errcode" in thrown) || typeof thrown.errcode !== "number")
    return String(thrown.code);
  return extendedCodes.get(thrown.errcode) ?? `SQLITE_${primaryCodes[thrown.errcode & 0xff] ?? "ERROR"}`;
}
