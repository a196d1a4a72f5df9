/**
 * Bytes of a new file: `node packages/sqlite/test/golden/make-empty-file.ts` writes `src/new-file/empty-file.ts` after a
 * change of the schema.
 */
import { Buffer } from "node:buffer";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { applicationId, migrations, pageBytes } from "../../src/file/schema.ts";

const source = join(import.meta.dirname, "../../src/new-file/empty-file.ts");

/** Header bytes with the versions of the file format for writes and reads: 2 with a write-ahead log. */
const formatBytes = [18, 19] as const;

/** First header byte of the version of the SQLite library that wrote the file, in four bytes. */
export const libraryVersionByte = 96;

/** Executes the statements of the schema; returns the bytes of the file in WAL mode. */
export function createEmptyFile(): Buffer {
  const db = new Database(":memory:");
  db.pragma(`page_size = ${pageBytes}`);
  db.exec(`BEGIN; ${migrations.flat().join(";\n")}; COMMIT`);
  db.pragma(`application_id = ${applicationId}`);
  db.pragma(`user_version = ${migrations.length}`);
  const bytes = db.serialize();
  db.close();
  for (const offset of formatBytes) bytes[offset] = 2;
  return bytes;
}

/** Encodes bytes for `decodeRuns`. A run of fewer than 5 zero bytes is longer than its bytes. */
export function encodeRuns(bytes: Uint8Array): string {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  const runs: Uint8Array[] = [length];
  let at = 0;
  while (at < bytes.length) {
    const start = at;
    while (at < bytes.length && bytes[at] === 0 && at - start < 0xffff) at += 1;
    const first = at;
    while (at < bytes.length && !isZeroRun(bytes, at) && at - first < 0xffff) at += 1;
    const counts = Buffer.alloc(4);
    counts.writeUInt16BE(first - start, 0);
    counts.writeUInt16BE(at - first, 2);
    runs.push(counts, bytes.subarray(first, at));
  }
  return Buffer.concat(runs).toString("base64");
}

function isZeroRun(bytes: Uint8Array, at: number): boolean {
  for (let end = at; end < at + 5 && end < bytes.length; end++) if (bytes[end] !== 0) return false;
  return true;
}

if (import.meta.main) {
  const lines = encodeRuns(createEmptyFile()).match(/.{1,118}/g) ?? [];
  writeFileSync(
    source,
    `/**
 * Bytes of an empty database with the tables of the newest format, for \`createFile\`. Written by
 * \`node packages/sqlite/test/golden/make-empty-file.ts\`.
 */
export const emptyFile: string = \`
${lines.join("\n")}
\`;
`,
  );
}
