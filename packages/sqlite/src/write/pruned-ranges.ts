/** Cuts of lines: the anchors that retention leaves, and the deltas that later checkpoints still need. */
import { hash } from "node:crypto";
import type { CutDelta, CutImage } from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Seals } from "../encryption/cipher.ts";
import { deltaColumns, readDelta } from "../encryption/encrypted-rows.ts";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import { corrupt } from "../file/store-errors.ts";
import type { Line } from "../read/reader.ts";
import { type DeltaColumns, deltaSum } from "../rows/rows.ts";

/** A line of a thread, and what its values are sealed with. */
export interface LineAt {
  readonly thread: string;
  readonly line: Pick<Line, "key" | "name">;
  readonly seals: Seals | undefined;
}

export interface Cuts {
  /** The cuts of a line, oldest first. Throws `store_corrupt` where what is left is not what was left. */
  of(at: LineAt): readonly CutImage[];
  /** Deltas of a line at checkpoints above `after`, up to `until`, by channel and checkpoint; checked. */
  deltas(at: LineAt, after: number, until: number): readonly CutDelta[];
  /**
   * Put an anchor and the deltas that are left in the place of all that stands above `after`, up to the cut. Deltas that
   * are left as they were are those of `before`.
   */
  put(
    at: LineAt,
    after: number,
    cut: CutImage,
    anchor: { readonly hash: string; readonly before: readonly CutDelta[] },
  ): void;
}

interface AnchorColumns {
  readonly id: number;
  readonly seq: number;
  readonly kept: string;
}

export function createCuts(db: Database): Cuts {
  const anchors = db.prepare<[number, number], AnchorColumns>(
    "SELECT key & 0xffffff AS id, seq, kept FROM anchors WHERE key BETWEEN ? AND ? ORDER BY key",
  );
  // What stood between two cuts may have gone after the second: then each holds what came after the one before it.
  const newestBefore = db
    .prepare<[{ from: number; until: number }], number | null>(
      "SELECT max(key) & 0xffffff FROM (SELECT max(key) AS key FROM checkpoints WHERE key >= @from AND key < @until" +
        " UNION ALL SELECT max(key) FROM anchors WHERE key >= @from AND key < @until)",
    )
    .pluck();
  const deltasBetween = db.prepare<
    [{ line: number; after: number; until: number }],
    DeltaColumns & { checkpoint: number }
  >(
    "SELECT n.name AS channel, d.kind, d.base, d.sum, d.text, d.key & 0xffffff AS checkpoint FROM channels n" +
      " JOIN deltas d ON d.key > (n.key << 24) + @after AND d.key <= (n.key << 24) + @until WHERE n.branch = @line ORDER BY d.key",
  );
  const channelsOfLine = db.prepare<[number], { key: number; name: string }>(
    "SELECT key, name FROM channels WHERE branch = ?",
  );
  const addChannel = db.prepare<[number, string]>("INSERT INTO channels (branch, name) VALUES (?, ?)");
  const dropDelta = db.prepare<[number]>("DELETE FROM deltas WHERE key = ?");
  const addDelta = db.prepare("INSERT INTO deltas (key, kind, base, sum, text) VALUES (?, ?, ?, ?, ?)");
  const dropAnchors = db.prepare<[number, number]>("DELETE FROM anchors WHERE key > ? AND key <= ?");
  const addAnchor = db.prepare<[number, number, string, string]>(
    "INSERT INTO anchors (key, seq, hash, kept) VALUES (?, ?, ?, ?)",
  );

  function deltas({ thread, line, seals }: LineAt, after: number, until: number): readonly CutDelta[] {
    return deltasBetween.all({ line: line.key, after, until }).map((columns) => {
      const { checkpoint } = columns;
      return { ...readDelta(seals, { thread, line: line.name, checkpoint }, columns), checkpoint };
    });
  }

  return {
    deltas,
    of: (at) =>
      anchors.all(keyAt(at.line.key, 0), keyAt(at.line.key, largestCheckpoint)).map(({ id, seq, kept }) => {
        const after = newestBefore.get({ from: keyAt(at.line.key, 0), until: keyAt(at.line.key, id) }) ?? 0;
        const left = deltas(at, after, id);
        if (keptHash(at.seals, at.line.name, left) === kept) return { id, seq, deltas: left };
        throw corrupt(`what is left before the cut at checkpoint ${id} is not what was left`, {
          thread: at.thread,
          branch: at.line.name,
        });
      }),
    put: ({ thread, line, seals }, after, { id, seq, deltas: left }, anchor) => {
      const channels = new Map(channelsOfLine.all(line.key).map(({ key, name }) => [name, key]));
      const [stays, was] = [new Set(left), new Set(anchor.before)];
      for (const row of anchor.before) {
        const key = stays.has(row) ? undefined : channels.get(row.channel);
        if (key !== undefined) dropDelta.run(keyAt(key, row.checkpoint));
      }
      for (const row of left) {
        if (was.has(row)) continue;
        const key = channels.get(row.channel) ?? Number(addChannel.run(line.key, row.channel).lastInsertRowid);
        channels.set(row.channel, key);
        const { sum, text } = deltaColumns(seals, { thread, line: line.name, checkpoint: row.checkpoint }, row);
        addDelta.run(keyAt(key, row.checkpoint), row.kind, row.base ? 1 : 0, sum, text);
      }
      dropAnchors.run(keyAt(line.key, after), keyAt(line.key, id));
      addAnchor.run(keyAt(line.key, id), seq, anchor.hash, keptHash(seals, line.name, left));
    },
  };
}

/** The hash of which deltas are left, in whatever order they come; what is sealed in them carries its own proof. */
export function keptHash(seals: Seals | undefined, line: string, left: readonly CutDelta[]): string {
  const rows = left.map((row) =>
    JSON.stringify([
      row.channel,
      row.checkpoint,
      row.kind,
      row.base,
      seals === undefined ? deltaSum(line, row.checkpoint, row) : undefined,
    ]),
  );
  const text = rows.toSorted().join("\n");
  return seals === undefined ? hash("sha256", text, "base64") : seals.hash(text);
}
