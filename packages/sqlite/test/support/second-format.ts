/** A second file format, as a later version might add it. */
import process from "node:process";
import type { Migrations } from "../../src/file/migrate.ts";
import { migrations } from "../../src/file/schema.ts";

const statements: readonly string[] = [
  "CREATE TABLE notes (\n  key INTEGER PRIMARY KEY,\n  thread INTEGER NOT NULL,\n  text TEXT NOT NULL\n) STRICT",
  "INSERT INTO notes (thread, text) SELECT key, 'of ' || id FROM threads",
  "CREATE INDEX notes_of_thread ON notes (thread)",
  "ALTER TABLE threads ADD COLUMN note TEXT",
  "UPDATE threads SET note = (SELECT text FROM notes WHERE notes.thread = threads.key)",
  "SELECT count(*) FROM notes",
];

/** Number of statements of the migration. */
export const secondSteps: number = statements.length;

/** Migrations of the format; the process kills itself at statement `killedAt` of the second one, counted from 1. */
export function createSecondFormat(killedAt = 0): Migrations {
  if (killedAt === 0) return [...migrations, statements];
  const deadly: string[] = [];
  const insertKill = (number: number, statement: string): string => {
    if (number === killedAt) process.kill(process.pid, "SIGKILL");
    return statement;
  };
  for (const [index, statement] of statements.entries())
    Object.defineProperty(deadly, index, { enumerable: true, get: () => insertKill(index + 1, statement) });
  return [...migrations, deadly];
}
