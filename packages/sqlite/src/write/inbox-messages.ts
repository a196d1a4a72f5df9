/**
 * The rows of inboxes. A letter waits until a run takes it in; from then on its row says which one, until that run has
 * ended: a run that is taken back gives back what it took.
 */
import type { LetterRow } from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Payload, Seals } from "../encryption/cipher.ts";
import { letterColumns, readLetter } from "../encryption/encrypted-rows.ts";
import type { LetterColumns } from "../rows/rows.ts";

/** A branch whose inbox is written. */
export interface InboxLine {
  readonly thread: string;
  readonly key: number;
  readonly name: string;
  readonly seals: Seals | undefined;
}

export interface Letters {
  write(line: InboxLine, row: LetterRow): void;
  /** A run takes letters in; those that do not wait are passed over. */
  take(line: InboxLine, ids: readonly string[], run: string): void;
  /** What a run took in waits again, each at its old place. */
  giveBack(line: InboxLine, run: string): void;
  /** A run has ended: what it took in is gone. */
  drop(line: number, run: string): void;
}

interface Keyed extends Omit<LetterColumns, "branch"> {
  readonly key: number;
}

export function createLetters(db: Database): Letters {
  const add = db.prepare<[number, string, string, number, string, number, Payload]>(
    "INSERT INTO letters (branch, id, kind, at, taken, sum, messages) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const waiting = db.prepare<[number, string], Keyed>(
    "SELECT key, id, kind, at, taken, sum, messages FROM letters WHERE branch = ? AND taken = '' AND id = ?",
  );
  const takenBy = db.prepare<[number, string], Keyed>(
    "SELECT key, id, kind, at, taken, sum, messages FROM letters WHERE branch = ? AND taken = ? ORDER BY key",
  );
  // One that was sent again under its id, and taken again, is one letter.
  const mark = db.prepare<[string, number, number]>("UPDATE OR REPLACE letters SET taken = ?, sum = ? WHERE key = ?");
  const dropOne = db.prepare<[number]>("DELETE FROM letters WHERE key = ?");
  const dropAll = db.prepare<[number, string]>("DELETE FROM letters WHERE branch = ? AND taken = ?");

  function marked({ thread, name, seals }: InboxLine, row: Keyed, run: string | undefined): void {
    const { taken: _, ...letter } = readLetter(seals, thread, { ...row, branch: name });
    const { sum } = letterColumns(seals, run === undefined ? letter : { ...letter, taken: run });
    mark.run(run ?? "", sum, row.key);
  }

  return {
    write: ({ key, seals }, row) => {
      const { sum, messages } = letterColumns(seals, row);
      add.run(key, row.id, row.kind, row.at, row.taken ?? "", sum, messages);
    },
    take: (line, ids, run) => {
      for (const id of ids) {
        const row = waiting.get(line.key, id);
        if (row !== undefined) marked(line, row, run);
      }
    },
    giveBack: (line, run) => {
      for (const row of takenBy.all(line.key, run)) {
        if (waiting.get(line.key, row.id) === undefined) marked(line, row, undefined);
        else dropOne.run(row.key);
      }
    },
    drop: (line, run) => {
      dropAll.run(line, run);
    },
  };
}
